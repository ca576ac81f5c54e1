"""Knocking at real sockets: what each answer says of the address and of the key, and that no key is ever told."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.testing import (
    Answer,
    RecordedRequest,
    ScriptedUpstream,
    Step,
    drop,
    error,
    html_error,
    malformed_json,
    reply,
    silence,
)
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.knock import SOUND, Knock, Verdict, knock

KEY = "sk-knocking-4f1b9c27aa"
LISTED = reply({"data": [{"id": "a"}, {"id": "b"}]})
HEADERS = {"authorization": f"Bearer {KEY}"}


def guarded(request: RecordedRequest) -> Answer:
    """A vendor that looks at the key."""
    return LISTED if request.headers.get("authorization") == f"Bearer {KEY}" else error(401, f"bad key {KEY}")


async def at(upstream: ScriptedUpstream, *paths: str, within: float = 10.0, **more: Any) -> Knock:
    endpoint = Endpoint("mine", f"{upstream.base_url}/chat/completions", credential="the key in `$MINE`", **more)
    return await knock(endpoint, upstream.base_url, paths or ("models",), within=within)


async def test_a_list_that_others_are_refused_proves_the_key() -> None:
    async with ScriptedUpstream(routes={"/v1/models": guarded}) as upstream:
        met = await at(upstream, headers=HEADERS)
        shown = ["authorization" in request.headers for request in upstream.requests]
    assert (met.verdict, met.models, met.told) == ("ready", ("a", "b"), "takes the key, and lists 2 models")
    assert met.seconds > 0
    assert shown == [True, False]


async def test_a_list_for_everybody_proves_nothing_about_the_key() -> None:
    async with ScriptedUpstream(routes={"/v1/models": LISTED}) as upstream:
        met = await at(upstream, headers=HEADERS)
    assert met.verdict == "unproven"
    assert "to everybody" in met.told


async def test_another_of_its_pages_may_prove_it() -> None:
    """llama.cpp shows its models to everybody, and its properties to those with the key."""
    props = reply({"default_generation_settings": {"n_ctx": 4096}})
    guard = lambda request: props if "authorization" in request.headers else error(401)  # noqa: E731
    async with ScriptedUpstream(routes={"/v1/models": LISTED, "/props": guard}) as upstream:
        assert (await at(upstream, "models", "/props", headers=HEADERS)).verdict == "ready"
        assert (await at(upstream, "models", "/props")).verdict == "key_refused"


async def test_without_a_key_a_list_is_enough_and_asked_for_once() -> None:
    async with ScriptedUpstream(routes={"/v1/models": LISTED}) as upstream:
        met = await at(upstream)
        assert len(upstream.requests) == 1
    assert (met.verdict, met.told) == ("ready", "lists 2 models")


ANSWERS: dict[str, tuple[Step, Verdict]] = {
    "401": (error(401, f"bad key {KEY}"), "key_refused"),
    "403": (error(403), "key_refused"),
    "400 about the key": (error(400, f"Incorrect API key provided: {KEY[:12]}***"), "key_refused"),
    "Gemini's 400": (error(400, "API key not valid. Please pass a valid API key."), "key_refused"),
    "another 400": (error(400, "no such parameter"), "strange"),
    "a key without that right": (error(403, "Missing scopes: api.model.read"), "unproven"),
    "402": (error(402), "spent"),
    "429": (error(429), "limited"),
    "429 without money": (error(429, "You exceeded your current quota", code="insufficient_quota"), "spent"),
    "404": (error(404), "not_found"),
    "405": (error(405), "not_found"),
    "500": (error(500), "failing"),
    "503": (error(503), "failing"),
    "a proxy's page": (html_error(), "failing"),
    "a page": (reply(b"<html>hello</html>"), "strange"),
    "other JSON": (reply({"hello": "world"}), "strange"),
    "broken JSON": (malformed_json(), "strange"),
    "a redirect": (Answer(status=302, headers={"Location": "http://elsewhere.example/"}), "strange"),
    "no answer": (drop(), "unreachable"),
}


@pytest.mark.parametrize(("answer", "verdict"), ANSWERS.values(), ids=list(ANSWERS))
async def test_what_an_answer_says(answer: Step, verdict: Verdict) -> None:
    async with ScriptedUpstream(routes={"/v1/models": answer}) as upstream:
        met = await at(upstream, headers=HEADERS)
    assert met.verdict == verdict, met.told
    assert met.models is None
    assert KEY[:8] not in met.told
    assert "provider `mine`" not in met.told, "the name stands beside it"


@pytest.mark.parametrize("status", [400, 401])
async def test_a_refused_key_is_named_by_its_place(status: int) -> None:
    async with ScriptedUpstream(routes={"/v1/models": error(status, "invalid api key")}) as upstream:
        met = await at(upstream, headers=HEADERS)
    assert met.told == f"refused our credentials (HTTP {status}); it was sent the key in `$MINE`"


async def test_silence_is_waited_for_no_longer_than_said() -> None:
    async with ScriptedUpstream(routes={"/v1/models": silence()}) as upstream:
        met = await at(upstream, within=0.2)
        await upstream.requests[0].closed.waited(10)
    assert (met.verdict, met.told) == ("timeout", "did not answer within 0.2 s")


async def test_nobody_there() -> None:
    address = "http://127.0.0.1:1/v1"
    met = await knock(Endpoint("mine", address), address, ("models",), within=10.0)
    assert met.verdict == "unreachable"
    assert "cannot be reached" in met.told


async def test_who_has_no_list_is_only_connected_to() -> None:
    async with ScriptedUpstream() as upstream:
        endpoint = Endpoint("mine", upstream.base_url, HEADERS)
        met = await knock(endpoint, upstream.base_url, (), within=10.0)
        assert upstream.requests == upstream.questions == []
    assert met.verdict == "unproven"
    gone = await knock(endpoint, "http://127.0.0.1:1", (), within=10.0)
    assert gone.verdict == "unreachable"


async def test_trouble_without_the_key_says_nothing_about_it() -> None:
    flaky = lambda request: LISTED if "authorization" in request.headers else drop()  # noqa: E731
    async with ScriptedUpstream(routes={"/v1/models": flaky}) as upstream:
        assert (await at(upstream, headers=HEADERS)).verdict == "unproven"


def test_only_what_can_be_used_is_sound() -> None:
    assert {"ready", "unproven"} == SOUND
