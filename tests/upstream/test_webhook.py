"""What a receiver of webhooks is sent, how it says that it has it, and where nothing is ever sent to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from isthmus.ports import Notice, Refused
from isthmus.scrub import Secret
from isthmus.testing import Answer, ScriptedUpstream, drop, error, reply
from isthmus.testing.script import HANG
from isthmus.upstream.webhook import WebhookMessenger
from raw_server import raw_server

KEY = b"the key of the receiver, long enough"
OLD = b"the key that it had before, long enough"
NOTICE = Notice("wh_1", "hook", "response.completed", "resp_1", '{"id":"evt_1","data":{"id":"resp_ü"}}'.encode())


def messenger(url: str, *keys: bytes, anywhere: bool = True, **options: Any) -> WebhookMessenger:
    return WebhookMessenger(
        "hook", url, keys or (KEY,), **{"timeout": 30.0, "at_once": 2, "anywhere": anywhere, **options}
    )


async def send(url: str, *keys: bytes, **options: Any) -> Refused | None:
    made = messenger(url, *keys, **options)
    try:
        return await made.send(NOTICE)
    finally:
        await made.aclose()


async def test_it_is_signed_as_the_standard_says() -> None:
    async with ScriptedUpstream([reply({})]) as receiver:
        assert await send(f"{receiver.url}/hook") is None
    (request,) = receiver.requests
    assert request.body == NOTICE.body
    assert request.headers["webhook-id"] == "wh_1"
    assert Webhook(KEY).verify(request.body, request.headers)["data"] == {"id": "resp_ü"}
    for changed in ({"webhook-id": "wh_2"}, {"webhook-timestamp": str(int(request.headers["webhook-timestamp"]) + 1)}):
        with pytest.raises(WebhookVerificationError):
            Webhook(KEY).verify(request.body, {**request.headers, **changed})
    with pytest.raises(WebhookVerificationError):
        Webhook(KEY).verify(request.body + b" ", request.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(request.body, request.headers)


async def test_each_attempt_has_its_own_time_and_the_same_id() -> None:
    clock = iter([1_800_000_000.7, 1_800_000_060.2])
    async with ScriptedUpstream([error(500), reply({})]) as receiver:
        made = messenger(receiver.url, now=lambda: next(clock))
        assert await made.send(NOTICE) == Refused("it answered HTTP 500")
        assert await made.send(NOTICE) is None
        await made.aclose()
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert [each.headers["webhook-timestamp"] for each in (first, second)] == ["1800000000", "1800000060"]
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]


async def test_while_a_secret_changes_both_can_verify() -> None:
    async with ScriptedUpstream([reply({})]) as receiver:
        assert await send(receiver.url, KEY, OLD) is None
    (request,) = receiver.requests
    assert len(request.headers["webhook-signature"].split(" ")) == 2
    for key in (KEY, OLD):
        assert Webhook(key).verify(request.body, request.headers)["id"] == "evt_1"


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_it_is_taken_with_any_2xx(status: int) -> None:
    async with ScriptedUpstream([Answer(status=status)]) as receiver:
        assert await send(receiver.url) is None


@pytest.mark.parametrize("status", [300, 304, 400, 401, 404, 409, 422, 429, 500, 502, 503])
async def test_it_is_not_taken_with_anything_else(status: int) -> None:
    said = () if status == 304 else (b"whatever it says",)
    async with ScriptedUpstream([Answer(said, status=status)]) as receiver:
        assert await send(receiver.url) == Refused(f"it answered HTTP {status}")


async def test_gone_is_final_and_a_wait_is_heard() -> None:
    async with ScriptedUpstream([error(410), error(503, retry_after=90)]) as receiver:
        assert await send(receiver.url) == Refused("it answered HTTP 410", final=True)
        assert await send(receiver.url) == Refused("it answered HTTP 503", wait=90.0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    async with ScriptedUpstream() as elsewhere:
        away = Answer(status=status, headers={"Location": f"{elsewhere.url}/latest/meta-data"})
        async with ScriptedUpstream([away]) as receiver:
            assert await send(receiver.url) == Refused(f"it answered HTTP {status}")
        assert elsewhere.requests == []


async def test_what_is_said_beside_the_status_is_not_read() -> None:
    """However long it is, and however slowly it comes: it was taken."""
    async with ScriptedUpstream([Answer((b"x" * 100_000, HANG), framing="chunked")]) as receiver:
        async with asyncio.timeout(20):
            assert await send(receiver.url) is None
        await receiver.requests[0].closed.waited()
    flood = b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n"
    with raw_server(flood, endless=b"10000\r\n" + b"x" * 65536 + b"\r\n") as server:
        async with asyncio.timeout(20):
            assert await send(f"http://{server.host}/") == Refused("it answered HTTP 500")


async def test_a_receiver_that_is_not_there_or_leaves_is_told_in_words() -> None:
    async with ScriptedUpstream([drop(reset=True)]) as receiver:
        refused = await send(receiver.url)
        port = receiver.port
    assert refused is not None
    assert refused.reason.startswith("receiver `hook` cannot be reached")
    gone = await send(f"http://127.0.0.1:{port}/")
    assert gone is not None
    assert (gone.reason.startswith("receiver `hook` cannot be reached"), gone.final) == (True, False)


async def test_words_hold_no_secret() -> None:
    with raw_server(b"HTTP/1.1 the-very-secret-text\r\n\r\n") as server:
        refused = await send(f"http://{server.host}/?k=1", more_secrets=[Secret("the-very-secret-text", "secret")])
    assert refused is not None
    assert "the-very-secret-text" not in refused.reason


async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedUpstream() as proxy, ScriptedUpstream([reply({})]) as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("no_proxy", "")
        assert await send(receiver.url) is None
        assert proxy.requests == []


# ── where nothing is sent to ───────────────────────────────────────────────────────────────────────────


class Names:
    """A name server of the test's own: each question has its next answer."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = iter(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append((host, port))
        return next(self._answers)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every address that somebody tries to connect to; nobody gets there."""
    seen: list[str] = []

    async def refuse(addresses: Sequence[str], port: int) -> Any:
        seen.extend(addresses)
        raise ConnectionRefusedError("the test's own")

    monkeypatch.setattr("isthmus.upstream.lean.dial.connect_first", refuse)
    return seen


PRIVATE = [
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1"),
    *("2002:7f00:1::", "2002:a9fe:a9fe::1", "not-an-address", ""),
]


@pytest.mark.parametrize("address", PRIVATE)
async def test_a_name_that_leads_into_a_private_place_is_not_followed(address: str, connected: list[str]) -> None:
    names = Names([address])
    refused = await send("https://hooks.example/hook", anywhere=False, lookup=names)
    assert refused is not None
    assert "`hooks.example` leads to one address, none of which may be called" in refused.reason
    assert names.asked == [("hooks.example", 443)]
    assert connected == []


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "64:ff9b::808:808"])
async def test_a_name_that_leads_into_the_internet_is_followed(address: str, connected: list[str]) -> None:
    refused = await send("https://hooks.example/hook", anywhere=False, lookup=Names([address]))
    assert refused is not None
    assert connected == [address]


async def test_of_several_addresses_only_public_ones_are_connected_to(connected: list[str]) -> None:
    names = Names(["127.0.0.1", "93.184.216.34", "fd00::1"])
    await send("https://hooks.example/hook", anywhere=False, lookup=names)
    assert connected == ["93.184.216.34"]


async def test_what_was_looked_at_is_what_is_connected_to(connected: list[str]) -> None:
    """A name that changes its mind between the look and the connection (DNS rebinding) gains nothing."""
    async with ScriptedUpstream() as inside:
        url = f"http://hooks.example:{inside.port}/"
        names = Names(["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"])
        first = await send(url, anywhere=False, lookup=names)
        assert connected == ["93.184.216.34"]
        assert len(names.asked) == 1, "nobody asks a second time before connecting"
        second = await send(url, anywhere=False, lookup=names)
        assert connected == ["93.184.216.34"]
        assert first is not None
        assert second is not None
        assert "none of which may be called" in second.reason
        assert inside.requests == []


async def test_a_host_that_was_named_may_lead_anywhere() -> None:
    async with ScriptedUpstream([reply({})]) as inside:
        assert await send(f"http://localhost:{inside.port}/", anywhere=True) is None


async def test_numbers_that_only_look_like_a_name_lead_nowhere(connected: list[str]) -> None:
    for host in ("2130706433", "127.1", "0x7f.0.0.1", "017700000001"):
        refused = await send(f"https://{host}/", anywhere=False)
        assert refused is not None
    assert connected == []
