"""Web search on models whose provider has none: from the client's bytes to the engine's and back, by every door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from isthmus.testing import ScriptedUpstream, Step, chat, error, reply
from serving import running_gateway_server
from strict_search import KEY, strict
from talking import Reply, Talk

MODEL = "deepseek/deepseek-v4-pro"
ASK: Step = chat(None, calls=[("call_1", "web_search", {"query": "otters"})])
SAY: Step = chat("Fish, says [What they eat](https://docs.otters.example/food).")
CONFIG = """
[server]
port = 0
[store]
url = "memory:"
[models]
demo = false
[providers.{provider}]
base_url = "{url}"
api_key = "x"
retries = 0
[search]
{search}
"""


class House:
    def __init__(self, talk: Talk, model: ScriptedUpstream, engine: ScriptedUpstream) -> None:
        self._talk, self.model, self.engine = talk, model, engine

    def ask(self, tool: dict[str, Any] | None = None, **fields: Any) -> Reply:
        body = {"model": MODEL, "input": "what do otters eat?", "tools": [{"type": "web_search", **(tool or {})}]}
        return self._talk.post("/v1/responses", {**body, **fields})

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        return self._talk.post(path, {"model": MODEL, **body})

    @property
    def read(self) -> str:
        """What the model read of its search."""
        return str(self.model.requests[-1].json["messages"][-1]["content"])


@contextmanager
def house(
    *steps: Step, engine: Step | None = None, backend: str = "searxng", more: str = "", provider: str = "deepseek"
) -> Iterator[House]:
    with (
        ScriptedUpstream.running(default=engine or strict(backend)) as searched,
        ScriptedUpstream.running(steps or (ASK, SAY)) as model,
    ):
        search = f'backend = "{backend}"\nurl = "{searched.url}"\napi_key = "{KEY}"\n{more}'
        text = CONFIG.format(provider=provider, url=model.base_url, search=search)
        with running_gateway_server(text) as gateway:
            yield House(Talk(gateway.url), model, searched)


@pytest.mark.parametrize("backend", ["searxng", "brave", "tavily", "exa", "zhipu"])
def test_every_engine_answers_every_model(backend: str) -> None:
    with house(backend=backend) as it:
        response = it.ask().json
        assert response["status"] == "completed"
        assert "[1] Otters at play\nhttps://otters.example/play" in it.read
    (call,) = [item for item in response["output"] if item["type"] == "web_search_call"]
    assert (call["status"], call["action"]["query"]) == ("completed", "otters")
    (citation,) = response["output"][-1]["content"][0]["annotations"]
    assert citation["url"] == "https://docs.otters.example/food"
    assert response["tool_usage"]["web_search"] == {"num_requests": 1}


def test_filters_hold_whatever_the_engine_finds_and_what_it_cannot_be_told_is_said() -> None:
    tool = {
        "filters": {"allowed_domains": ["otters.example"], "blocked_domains": ["docs.otters.example"]},
        "user_location": {"type": "approximate", "country": "DE"},
    }
    with house() as it:
        response = it.ask(tool, include=["web_search_call.action.sources"]).json
        (request,) = it.engine.requests
        assert request.query["q"] == ["otters site:otters.example -site:docs.otters.example"]
        assert "rivers.example" not in it.read
        assert "docs.otters.example" not in it.read.partition("Results")[2]
    sources = response["output"][0]["action"]["sources"]
    assert [source["url"] for source in sources] == ["https://otters.example/play"]
    told = [each for each in response["isthmus"]["diagnostics"] if "user_location" in each["message"]]
    assert [each["action"] for each in told] == ["degraded"]
    with house(backend="brave") as it:
        assert it.ask(tool).json["isthmus"]["diagnostics"] == []
        assert it.engine.requests[0].headers["x-loc-country"] == "DE"


def test_a_client_without_external_access_has_no_way_out() -> None:
    with house(chat("I know without.")) as it:
        response = it.ask({"external_web_access": False}).json
        assert it.engine.requests == []
        assert "tools" not in it.model.requests[0].json
    assert any("external_web_access" in each["message"] for each in response["isthmus"]["diagnostics"])
    with house(more='offline = "index"') as it:
        it.ask({"external_web_access": False})
        assert len(it.engine.requests) == 1


DOORS = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "?"}], "web_search_options": {}}),
    "messages": (
        "/v1/messages",
        {
            "max_tokens": 100,
            "messages": [{"role": "user", "content": "?"}],
            "tools": [{"type": "web_search_20250305", "name": "web_search", "blocked_domains": ["rivers.example"]}],
        },
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_the_other_doors_search_too(door: str) -> None:
    path, body = DOORS[door]
    with house() as it:
        answer = it.post(path, body)
        assert answer.status == 200
        assert "https://docs.otters.example/food" in it.read
        assert ("rivers.example" in it.read) is (door == "chat")
    assert "https://docs.otters.example/food" in json.dumps(answer.json)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (error(500), "HTTP 500"),
        (reply({"error": {"detail": f"bad token {KEY}"}}, status=422), "HTTP 422: bad token <redacted>"),
        (reply(b"<html>"), "its answer is no JSON"),
    ],
)
def test_a_search_that_fails_is_a_failed_call_and_words_for_the_model(engine: Step, words: str) -> None:
    with house(backend="brave", engine=engine) as it:
        response = it.ask().json
        assert words in it.read
        assert KEY not in it.read + json.dumps(response)
    assert (response["status"], response["output"][0]["status"]) == ("completed", "failed")


@pytest.mark.parametrize("target", ["http://127.0.0.1:{port}/", "http://localhost:{port}/", "https://169.254.169.254/"])
def test_a_page_that_a_model_names_never_leads_to_this_machine(target: str) -> None:
    with ScriptedUpstream.running(strict=False) as inside:
        call = chat(None, calls=[("call_1", "web_search", {"url": target.format(port=inside.port)})])
        with house(call, chat("No."), more=f"open_pages = true\npage_ports = [{inside.port}]") as it:
            response = it.ask().json
            assert "leads to this machine, or into a private network" in it.read
        assert inside.requests == []
    assert response["output"][0]["action"]["type"] == "open_page"
    assert response["output"][0]["status"] == "failed"


def test_where_pages_are_closed_the_model_is_not_offered_them_and_gets_none() -> None:
    call = chat(None, calls=[("call_1", "web_search", {"url": "https://otters.example/"})])
    with house(call, chat("No.")) as it:
        it.ask()
        properties = it.model.requests[0].json["tools"][0]["function"]["parameters"]["properties"]
        assert set(properties) == {"query", "queries"}
        assert "search.open_pages" in it.read


def test_a_provider_with_a_search_of_its_own_uses_it_unless_the_operator_prefers_ours() -> None:
    native, ours = chat("Native."), (ASK, SAY)
    with house(native, provider="zhipu", backend="searxng") as it:
        it.ask(model="zhipu/glm-5.3")
        assert [tool["type"] for tool in it.model.requests[0].json["tools"]] == ["web_search"]
        assert it.engine.requests == []
    with house(*ours, provider="zhipu", more='prefer = "here"') as it:
        it.ask(model="zhipu/glm-5.3")
        assert [tool["type"] for tool in it.model.requests[0].json["tools"]] == ["function"]
        assert len(it.engine.requests) == 1
