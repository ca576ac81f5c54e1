"""Google's tokens over a real socket: fetched once, shared by all, renewed in the background, told when they fail."""

from __future__ import annotations

import asyncio
import builtins
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isthmus.errors import ConfigError
from isthmus.testing import Gate, ScriptedUpstream, error, reply, silence
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.sign import CannotSign
from isthmus.upstream.sign.google import GoogleSigner, open_google
from isthmus.upstream.sign.open import open_signer
from strict_clouds import TokenServer, service_account

SCOPE = {"scope": "https://www.googleapis.com/auth/cloud-platform"}


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "no-gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream.running(strict=False) as upstream:
        account = service_account(tmp_path, f"{upstream.base_url}/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
        yield upstream


def signer_for(wait: float = 30.0) -> GoogleSigner:
    endpoint = Endpoint("vertex", "http://127.0.0.1:9/v1", trust_env=False, patience=Patience(connect=wait))
    signer = open_signer("google", SCOPE, endpoint, {})
    assert isinstance(signer, GoogleSigner)
    return signer


async def sign(signer: GoogleSigner) -> str:
    return (await signer.sign("POST", "http://127.0.0.1:9/v1", {}, b"{}"))["authorization"]


def test_one_token_is_fetched_for_many_requests(server: ScriptedUpstream) -> None:
    tokens = TokenServer()
    server.push(tokens)

    async def ask() -> list[str]:
        signer = signer_for()
        first = await asyncio.gather(*(sign(signer) for _ in range(5)))
        last = await sign(signer)
        await signer.aclose()
        assert [secret.value for secret in signer.secrets] == tokens.issued
        return [*first, last]

    assert set(asyncio.run(ask())) == {"Bearer ya29.token-0001"}
    assert len(server.requests) == 1
    assert server.requests[0].headers["content-type"] == "application/x-www-form-urlencoded"


def test_an_old_token_is_used_while_the_next_one_comes(server: ScriptedUpstream) -> None:
    gate = Gate()
    tokens = TokenServer(lifetime=200)  # google-auth calls one old that has less than 225 s left
    server.push(tokens, reply({"access_token": "ya29.second", "expires_in": 3600}, after=gate))

    async def ask() -> list[str]:
        signer = signer_for()
        seen = [await sign(signer), await sign(signer)]
        gate.open()
        while seen[-1] != "Bearer ya29.second":
            await asyncio.sleep(0.001)
            seen.append(await sign(signer))
        await signer.aclose()
        return seen

    assert asyncio.run(ask())[:2] == ["Bearer ya29.token-0001"] * 2
    assert len(server.requests) == 2


def test_a_token_server_that_does_not_answer_is_waited_for_only_so_long(server: ScriptedUpstream) -> None:
    server.push(silence())

    async def ask() -> None:
        signer = signer_for(wait=0.2)
        try:
            await sign(signer)
        finally:
            await signer.aclose()

    with pytest.raises(CannotSign) as failure:
        asyncio.run(ask())
    assert failure.value.code in ("upstream_timeout", "upstream_unreachable")


REFUSALS: dict[str, tuple[Any, str, str]] = {
    "the account is gone": (
        reply({"error": "invalid_grant", "error_description": "account deleted"}, status=400),
        "upstream_unauthorized",
        "gcloud auth application-default login",
    ),
    "a broken server": (error(500, "boom"), "upstream_unauthorized", "Google refuses a token"),
}


@pytest.mark.parametrize(("answer", "code", "words"), REFUSALS.values(), ids=list(REFUSALS))
def test_a_refusal_says_what_to_do_and_is_no_retry(
    server: ScriptedUpstream, answer: Any, code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("google.auth._exponential_backoff.time.sleep", lambda seconds: None)
    server.push(*[answer] * 5)

    async def ask() -> None:
        await sign(signer_for())

    with pytest.raises(CannotSign) as failure:
        asyncio.run(ask())
    assert failure.value.code == code
    assert words in failure.value.words
    assert "PRIVATE KEY" not in failure.value.words


def test_a_background_refusal_is_logged_and_the_old_token_still_used(
    server: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = TokenServer(lifetime=200)
    server.push(tokens, reply({"error": "invalid_grant"}, status=400))

    async def ask() -> str:
        signer = signer_for()
        await sign(signer)
        shown = await sign(signer)
        assert signer._refreshing is not None
        await asyncio.wait([signer._refreshing])
        assert "provider.token.failed" in caplog.text
        await signer.aclose()
        return shown

    assert asyncio.run(ask()) == "Bearer ya29.token-0001"
    assert "ya29" not in caplog.text


def test_without_credentials_the_way_to_some_is_told() -> None:
    async def ask() -> None:
        await sign(signer_for())

    with pytest.raises(CannotSign, match="GOOGLE_APPLICATION_CREDENTIALS") as failure:
        asyncio.run(ask())
    assert failure.value.code == "upstream_unauthorized"


def test_without_the_package_one_sentence_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "isthmus.upstream.sign.google.find_spec", lambda name: None if name == "google.auth" else found(name)
    )

    async def fetch(*_: Any) -> Any:
        raise AssertionError

    with pytest.raises(ConfigError, match=r"pip install 'isthmus\[vertex\]'") as failure:
        open_google("vertex", "s", fetch, 1.0)
    assert failure.value.param == "providers.vertex"


def test_nothing_is_imported_before_a_token_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []
    real = builtins.__import__

    def record(name: str, *rest: Any, **more: Any) -> Any:
        imported.append(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", record)
    signer_for()
    assert not [name for name in imported if name.startswith(("google.auth", "botocore"))]
