"""Keys of callers' own: who is shown which, what is told of it, and what one team's key means to the others."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from failing_backend import PLAN, Scripted
from isthmus.bridge.parse import parse_request
from isthmus.config import load_config
from isthmus.config.render import render_json, render_toml
from isthmus.config.secrets import configured_secrets
from isthmus.errors import ConfigError
from isthmus.gateway.caller import Caller
from isthmus.ports import Backend, Behalf, Sent, key_for
from isthmus.testing import ScriptedUpstream, chat, error, reply
from isthmus.upstream.keyed import KeyedBackend
from one_provider import HELLO, MODEL, keys, one_provider
from serving import GatewayThread

ANN, BOB = "client-key-of-ann", "client-key-of-bob"
"""Keys that clients show."""


def _id(key: str) -> str:
    return sha256(key.encode()).hexdigest()[:8]


OWN = f"""
api_key = "sk-everybody"
retries = 0
keys_for = {{ "{_id(ANN)}" = "sk-of-ann", "team:search" = "sk-of-search" }}
[teams.sales.upstream_keys]
main = "sk-of-sales"
"""
PICTURE = {"data": [{"b64_json": b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 60).decode()}]}


async def _ask(gateway: GatewayThread, caller: Caller, **fields: Any) -> None:
    run = await gateway.gateway.create(caller, parse_request({"model": MODEL, "input": "hi", **fields}))
    await run.fold()


def _of(team: str = "", key: str = "") -> Caller:
    return Caller(owner=f"team:{team}" if team else key or "local", key=key, team=team)


@pytest.mark.parametrize(
    ("behalf", "named"),
    [
        (Behalf("a", "key_a", "search"), "key_a"),
        (Behalf("team:search", "key_b", "search"), "team:search"),
        (Behalf("team:ops", "key_b", "ops"), ""),
        (Behalf("key_c", "key_c"), ""),
        (Behalf(), ""),
    ],
)
async def test_the_key_goes_before_the_team_and_both_before_everybodys(behalf: Behalf, named: str) -> None:
    ways = {name: Scripted(name=name or "everybody") for name in ("", "key_a", "team:search")}
    backend = KeyedBackend(ways)
    async with backend.send(PLAN, {}, behalf) as answer:
        said = [delta.text async for deltas in answer for delta in deltas]  # type: ignore[union-attr]
    assert said == [named or "everybody"]
    assert (backend.key_for(behalf), key_for(backend, behalf)) == (named, named)
    await backend.aclose()
    assert all(way.closed for way in ways.values())


async def test_it_is_ready_as_long_as_anybody_can_be_served() -> None:
    class Unwell(Scripted):
        async def ready(self) -> str | None:
            return "no"

    sick: Backend = Unwell()
    assert await KeyedBackend({"": sick, "key_a": Scripted()}).ready() is None
    assert await KeyedBackend({"": sick, "key_a": sick}).ready() == "no"


def test_over_http_each_caller_goes_with_their_own_key() -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        with one_provider(upstream, f"{OWN}") as (_, gateway):
            for caller in (_of("search"), _of("sales"), _of("ops"), _of(key=_id(ANN)), _of("search", _id(ANN))):
                gateway.do(_ask(gateway, caller))
        assert keys(upstream) == ["sk-of-search", "sk-of-sales", "sk-everybody", "sk-of-ann", "sk-of-ann"]


def test_clients_that_show_keys_are_told_apart() -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        with one_provider(upstream, OWN, server=f"api_keys = ['{ANN}', '{BOB}']") as (talk, _):
            for key in (ANN, BOB):
                assert talk.post("/v1/responses", HELLO, {"authorization": f"Bearer {key}"}).status == 200
        assert keys(upstream) == ["sk-of-ann", "sk-everybody"]


def test_a_spent_key_of_one_team_rests_nobody_elses() -> None:
    spent = {"sk-of-search": error(500, "sick")}

    def answer(request: Any) -> Any:
        return spent.get(request.headers["authorization"].removeprefix("Bearer "), chat("ok"))

    with ScriptedUpstream.running(default=answer) as upstream:
        with one_provider(upstream, f"breaker = {{ failures = 2 }}\n{OWN}") as (_, gateway):
            for _ in range(2):
                with pytest.raises(Exception, match="sick"):
                    gateway.do(_ask(gateway, _of("search")))
            with pytest.raises(Exception, match="left alone"):
                gateway.do(_ask(gateway, _of("search")))
            for caller in (_of("sales"), _of("ops"), _of(key=_id(ANN))):
                gateway.do(_ask(gateway, caller))
            served = gateway.gateway.directory.served["main"]

            found: list[bool] = []

            async def look() -> None:
                found.extend(served.resting(Behalf(f"team:{team}", "", team)) for team in ("search", "sales", "ops"))

            gateway.do(look())
            assert found == [True, False, False]
        assert keys(upstream).count("sk-of-search") == 2


def test_the_facts_and_the_trace_of_a_request_name_the_key_and_never_show_it() -> None:
    heard: list[Any] = []
    with ScriptedUpstream.running(default=chat("ok")) as upstream, one_provider(upstream, OWN) as (_, gateway):
        observer: Any = gateway.gateway.observer
        tell = observer.tell

        def hear(fact: Any) -> None:
            heard.append(fact)
            tell(fact)

        observer.tell = hear
        for caller in (_of("search"), _of("ops")):
            gateway.do(_ask(gateway, caller))
    assert [fact.key for fact in heard if isinstance(fact, Sent)] == ["team:search", ""]
    assert "sk-of-search" not in repr(heard)


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/images/generations"])
def test_vectors_and_images_are_asked_for_with_it_too(path: str) -> None:
    answers = {"/v1/embeddings": {"data": [{"index": 0, "embedding": [1.0]}]}, "/v1/images/generations": PICTURE}
    asked = {"model": "main/m", "input": "hi"} if "embed" in path else {"prompt": "a cat"}
    images = f"{OWN}[images]\nprovider = 'main'\nmodel = 'm'\n"
    with ScriptedUpstream.running(default=reply(answers[path])) as upstream:
        with one_provider(upstream, images, uses="openai", server=f"api_keys = ['{ANN}', '{BOB}']") as (talk, _):
            for key in (ANN, BOB):
                answer = talk.post(path, asked, {"authorization": f"Bearer {key}"})
                assert answer.status == 200, answer.body
        assert keys(upstream) == ["sk-of-ann", "sk-everybody"]


def test_places_with_keys_of_their_own_are_shown_the_callers() -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        places = f"endpoints = [{{ base_url = {upstream.base_url!r}, api_key = 'sk-place' }}]\n"
        with one_provider("", f"{places}{OWN}") as (_, gateway):
            for caller in (_of("search"), _of("ops")):
                gateway.do(_ask(gateway, caller))
        assert keys(upstream) == ["sk-of-search", "sk-place"]


# ── the configuration ──────────────────────────────────────────────────────────────────────────────

FILE = """
[models]
demo = false
[providers.main]
uses = "openai-compatible"
base_url = "http://127.0.0.1:9/v1"
api_key = "sk-everybody"
keys_for = { "team:search" = "plain-word", key_0123 = "${OTHER}" }
[teams.sales.upstream_keys]
main = "another-plain-word"
"""


def _load(tmp_path: Path, text: str = FILE) -> Any:
    file = tmp_path / "isthmus.toml"
    file.write_text(text)
    file.chmod(0o600)
    return load_config(file, environ={"OTHER": "from-outside", "HOME": str(tmp_path)})


def test_they_are_secrets_wherever_they_are_shown(tmp_path: Path) -> None:
    reading = _load(tmp_path)
    assert {"plain-word", "from-outside", "another-plain-word"} <= {
        each.value for each in configured_secrets(reading.config)
    }
    for shown in (render_toml(reading), render_json(reading), repr(reading.config)):
        assert "plain-word" not in shown
        assert "from-outside" not in shown
    assert '"team:search" = "<redacted>"' in render_toml(reading)
    assert 'key_0123 = "${OTHER}"' in render_toml(reading)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ('keys_for = { "team:" = "k" }', "names nobody"),
        ('keys_for = { "team:a" = "" }', "is empty"),
        ('keys_for = { "team:a" = "two\\nlines" }', "line break"),
        ('keys_for = { "team:a" = "k" }\nheaders = { authorization = "Bearer x" }', "covered"),
        ('keys_for = { "team:a" = "k" }\n[teams.a.upstream_keys]\nmain = "k2"', "twice"),
        ('[teams.a.upstream_keys]\nmian = "k2"', "did you mean `main`"),
        ('[teams.a.upstream_keys]\nmain = ""', "is empty"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, wrong: str, words: str) -> None:
    start = FILE.index("keys_for")
    with pytest.raises(ConfigError, match=words):
        _load(tmp_path, f"{FILE[:start]}{wrong}\n")
