"""Questions to a real socket: which are asked, what is sent along, what counts as an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.providers.schema import WordFacts
from isthmus.providers.word.told import Word
from isthmus.testing import HANG, Answer, ScriptedUpstream, drop, error, html_error, reply, silence
from isthmus.upstream import asking as module
from isthmus.upstream.asking import Asking
from isthmus.upstream.endpoint import Endpoint

LISTED = reply({"data": [{"id": "m", "max_model_len": 4096}]})


def asking(upstream: ScriptedUpstream, facts: WordFacts | None = None, **more: Any) -> Asking:
    endpoint = Endpoint("mine", f"{upstream.base_url}/chat/completions", **more)
    return Asking(endpoint, upstream.base_url, facts or WordFacts(), lambda: 5.0)


async def test_what_is_told_is_heard_with_its_time() -> None:
    async with ScriptedUpstream(routes={"/v1/models": LISTED}) as upstream:
        told = await asking(upstream, headers={"authorization": "Bearer k"}, query={"v": "1"}).ask()
        (request,) = upstream.requests
    assert (told.at, told.own, told.models, dict(told.words)) == (5.0, True, ("m",), {"m": Word(context=4096)})
    assert (request.method, request.target, request.headers["authorization"]) == ("GET", "/v1/models?v=1", "Bearer k")


async def test_every_path_is_asked_and_each_model_where_that_is_the_question() -> None:
    routes = {
        "/api/tags": reply({"models": [{"name": "a:1"}, {"name": "b:2"}]}),
        "/api/show": lambda request: reply(
            {"capabilities": ["completion"], "parameters": f"num_ctx {1000 + len(request.json['model'])}"}
        ),
    }
    facts = WordFacts(paths=["/api/tags", "/props"], show="/api/show")
    async with ScriptedUpstream(routes=routes) as upstream:
        told = await asking(upstream, facts).ask()
        asked = [(request.method, request.path) for request in upstream.requests]
        assert [question.path for question in upstream.questions] == ["/props"]
    assert told.models == ("a:1", "b:2")
    assert [told.word(model).context for model in told.models] == [1003, 1003]
    assert asked == [("GET", "/api/tags"), ("POST", "/api/show"), ("POST", "/api/show")]


async def test_a_house_full_of_models_is_not_asked_about_each() -> None:
    many = reply({"models": [{"name": f"m{number}"} for number in range(100)]})
    shown = reply({"capabilities": ["completion"]})
    async with ScriptedUpstream(routes={"/api/tags": many, "/api/show": shown}) as upstream:
        await asking(upstream, WordFacts(paths=["/api/tags"], show="/api/show")).ask()
        assert len(upstream.requests) == 1 + module.MOST_SHOWN


@pytest.mark.parametrize("status", [400, 404, 405, 410, 422, 302])
async def test_a_server_that_does_not_know_the_question_says_nothing(status: int) -> None:
    async with ScriptedUpstream(routes={"/v1/models": error(status)}) as upstream:
        told = await asking(upstream).ask()
    assert not told.says


@pytest.mark.parametrize(
    "answer", [error(401), error(403), error(429), error(500), error(503), html_error(), drop()], ids=str
)
async def test_trouble_is_raised_without_our_key(answer: Answer) -> None:
    async with ScriptedUpstream(routes={"/v1/models": answer}) as upstream:
        with pytest.raises(UpstreamFailed) as caught:
            await asking(upstream, headers={"authorization": "Bearer sk-secret-1"}).ask()
    assert "sk-secret-1" not in caught.value.message
    assert "provider `mine`" in caught.value.message


@pytest.mark.parametrize("body", [b"<html>", b"", b"{}", b"[[[[", b'{"data": 3}'])
async def test_what_cannot_be_read_is_ignored_aloud(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="isthmus.upstream")
    async with ScriptedUpstream(routes={"/v1/models": reply(body)}) as upstream:
        told = await asking(upstream).ask()
    assert not told.says
    assert [record.getMessage().split()[0] for record in caplog.records] == ["word.not_read"]


async def test_too_much_is_not_read(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="isthmus.upstream")
    monkeypatch.setattr(module, "MAX_ANSWER", 1000)
    endless = Answer(
        (b'{"data": [' + b" " * 100_000, HANG), headers={"Content-Type": "application/json"}, framing="close"
    )
    async with ScriptedUpstream(routes={"/v1/models": endless}) as upstream:
        told = await asking(upstream).ask()
    assert not told.says
    assert "more than 1000 bytes" in caplog.text


async def test_all_questions_together_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    async with ScriptedUpstream(routes={"/v1/models": silence()}) as upstream:
        with pytest.raises(UpstreamFailed, match="did not tell about its models within"):
            await asking(upstream).ask()
        await asyncio.wait_for(upstream.requests[0].closed.waited(10), 10)


async def test_its_connection_is_closed_and_none_of_a_requests() -> None:
    async with ScriptedUpstream(routes={"/v1/models": LISTED}) as upstream:
        await asking(upstream).ask()
        await upstream.requests[0].closed.waited(10)


def test_a_place_is_told_apart_without_being_told() -> None:
    here, there = (
        Asking(Endpoint("mine", "x"), url, WordFacts(), lambda: 0.0)
        for url in ("http://user:secret@localhost:1/v1", "https://elsewhere.example/v1")
    )
    assert here.place != there.place
    assert "secret" not in here.place
    assert (here.own, there.own) == (True, False)
