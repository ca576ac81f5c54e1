"""Requests that are signed: once for every time that bytes go out, and never a word of the secrets to anybody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from isthmus.errors import CredentialsRefused, UpstreamFailed, specify
from isthmus.scrub import Secret
from isthmus.testing import ScriptedUpstream, drop, reply
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.sign import CannotSign
from isthmus.upstream.wire import Wire


class Counting:
    """Shows how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self.closed = False

    @property
    def secrets(self) -> Sequence[Secret]:
        return (Secret(f"secret-token-{len(self.asked)}", "authorization"),)

    async def sign(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        assert headers["content-type"] == "application/json"
        self.asked.append((method, url, body))
        return {"authorization": f"Signed secret-token-{len(self.asked)}"}

    async def aclose(self) -> None:
        self.closed = True


class Unable(Counting):
    async def sign(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        raise CannotSign("was not asked: nobody knows who we are; sign in")


def shown(upstream: ScriptedUpstream) -> list[str | None]:
    return [request.headers.get("authorization") for request in upstream.requests]


async def test_every_request_is_signed_as_it_goes_out() -> None:
    signer = Counting()
    with ScriptedUpstream.running([reply({}), reply({}), drop(), reply({})]) as upstream:
        endpoint = Endpoint("cloud", f"{upstream.base_url}/x", query={"a": "b c"}, trust_env=False, signer=signer)
        wire = Wire(endpoint)
        for _ in range(3):  # the third finds its connection dead: it is sent, and signed, again
            incoming = await wire.send(b"{}")
            await incoming.whole()
            incoming.close()
        await wire.aclose()
        assert shown(upstream) == [f"Signed secret-token-{number}" for number in (1, 2, 3, 4)]
        assert {request.target for request in upstream.requests} == {"/v1/x?a=b+c"}
        assert signer.asked == [("POST", f"{upstream.base_url}/x?a=b+c", b"{}")] * 4
    assert signer.closed


async def test_what_was_signed_with_is_scrubbed_from_words() -> None:
    signer = Counting()
    with ScriptedUpstream.running([reply({})]) as upstream:
        wire = Wire(Endpoint("cloud", upstream.base_url, trust_env=False, signer=signer))
        (await wire.send(b"{}")).close()
        assert "secret-token-1" not in wire.failed("you said secret-token-1").message
        await wire.aclose()


async def test_what_cannot_be_signed_is_not_sent_and_names_the_provider() -> None:
    with ScriptedUpstream.running() as upstream:
        wire = Wire(Endpoint("cloud", upstream.base_url, trust_env=False, signer=Unable()))
        with pytest.raises(UpstreamFailed) as failure:
            await wire.send(b"{}")
        await wire.aclose()
        assert upstream.requests == []
    assert failure.value.message == "provider `cloud` was not asked: nobody knows who we are; sign in"
    assert isinstance(specify(failure.value), CredentialsRefused)
    assert failure.value.provider == "cloud"
    assert failure.value.__cause__ is None


@pytest.mark.parametrize("name", ["content-type", "Content-Type", "USER-AGENT"])
async def test_a_header_of_the_user_replaces_ours_whatever_its_case(name: str) -> None:
    with ScriptedUpstream.running([reply({})]) as upstream:
        wire = Wire(Endpoint("cloud", upstream.base_url, {name: "mine"}, trust_env=False))
        (await wire.send(b"{}")).close()
        await wire.aclose()
        assert upstream.requests[0].headers[name.lower()] == "mine"
