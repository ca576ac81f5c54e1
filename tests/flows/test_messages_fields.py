"""Fields of a Messages request and of its answer, from the client's bytes to the upstream's, in every dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from claude_requests import recorded
from flowing import Flow, lent
from flowing_providers import provider_flow
from isthmus.testing import chat
from speaking_messages import claude, said
from speaking_responses import native
from strict_anthropic import strictly
from talking import ANTHROPIC

Json = dict[str, Any]
PROVIDERS = {
    "anthropic": "uses = 'anthropic'",
    "deepseek": "uses = 'deepseek'\ndialect = 'chat'",
    "openai": "uses = 'openai'",
}
OPUS, HAIKU = "anthropic/claude-opus-5-5", "anthropic/claude-haiku-4-5"
DEEPSEEK, GPT = "deepseek/deepseek-v4-pro", "openai/gpt-5.6"
HI: Json = {"role": "user", "content": "hi"}
LOOK = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
SAYS = {OPUS: strictly(claude(said("a"))), HAIKU: strictly(claude(said("a"))), DEEPSEEK: chat("a"), GPT: native("a")}


@pytest.fixture(scope="module")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with provider_flow(tmp_path_factory.mktemp("fields"), PROVIDERS) as house:
        yield house


@pytest.fixture
def flow(_house: Flow) -> Iterator[Flow]:
    with lent(_house) as mine:
        yield mine


def sent(flow: Flow, model: str, **fields: Any) -> Json:
    """The body that the upstream gets for a message with these fields."""
    flow.script(SAYS[model])
    flow.message({"model": model, "messages": [HI], "max_tokens": 60_000, **fields})
    body: Json = flow.sent[-1]
    return body


def effort_of(body: Json) -> Any:
    """How hard the model is asked to think, wherever the dialect says so."""
    named = body.get("output_config", {}).get("effort") or body.get("reasoning", {}).get("effort")
    return named or body.get("reasoning_effort") or body.get("thinking", {}).get("budget_tokens")


@pytest.mark.parametrize(
    ("model", "budget", "effort"),
    [
        (OPUS, 2_000, "low"),
        (OPUS, 31_999, "high"),
        (GPT, 2_000, "low"),
        (GPT, 10_000, "medium"),
        (GPT, 40_000, "xhigh"),
        (DEEPSEEK, 2_000, "low"),
        (DEEPSEEK, 31_999, "high"),
    ],
)
def test_a_budget_of_thinking_is_the_effort_that_comes_closest(
    flow: Flow, model: str, budget: int, effort: Any
) -> None:
    assert effort_of(sent(flow, model, thinking={"type": "enabled", "budget_tokens": budget})) == effort


@pytest.mark.parametrize("model", [OPUS, GPT, DEEPSEEK])
def test_the_last_instruction_between_the_turns_says_how_hard_to_think(flow: Flow, model: str) -> None:
    softly = {"role": "system", "content": "Softly.", "output_config": {"effort": "low"}}
    body = sent(flow, model, messages=[HI, softly], thinking={"type": "adaptive"}, output_config={"effort": "high"})
    assert effort_of(body) == "low"


def test_the_prompt_cache_of_claude_is_marked_unasked(flow: Flow) -> None:
    """The last tool, the system prompt, and the last two turns of the user: an agent pays for what is new."""
    turns = [HI, {"role": "assistant", "content": "a"}, HI, {"role": "assistant", "content": "a"}, HI]
    body = sent(flow, OPUS, messages=turns, tools=[LOOK, {**LOOK, "name": "see"}], system="Be kind.")
    mark = {"type": "ephemeral"}
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, mark]
    assert body["system"][-1]["cache_control"] == mark
    users = [turn["content"][-1].get("cache_control") for turn in body["messages"] if turn["role"] == "user"]
    assert users == [None, mark, mark]


def test_marks_that_live_for_an_hour_live_as_long_upstream(flow: Flow) -> None:
    hour = {"type": "ephemeral", "ttl": "1h"}
    marked = [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": hour}]}]
    assert sent(flow, OPUS, messages=marked)["messages"][0]["content"][0]["cache_control"] == hour
    assert sent(flow, GPT, messages=marked)["prompt_cache_retention"] == "24h"


CACHED = {
    OPUS: (10, 20, 3),
    DEEPSEEK: (30, 70, 0),
}


@pytest.mark.parametrize("model", CACHED)
def test_what_a_cache_had_to_do_with_is_counted_apart_to_the_client(flow: Flow, model: str) -> None:
    fresh, read, written = CACHED[model]
    spent = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 70}
    flow.script(*[SAYS[model] if model == OPUS else chat("a", usage=spent)] * 2)
    usage = flow.messages({"model": model, "messages": [HI]})["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"]) == (fresh, read)
    assert usage["cache_creation_input_tokens"] == written


@pytest.mark.parametrize("model", [OPUS, GPT, DEEPSEEK])
def test_who_asks_is_told_as_a_digest_alone(flow: Flow, model: str) -> None:
    ids = {"device_id": "d3v1ce", "account_uuid": "acc0unt", "session_id": "5e5510n"}
    bodies = [sent(flow, model, metadata={"user_id": json.dumps(ids)}) for _ in range(2)]
    other = sent(flow, model, metadata={"user_id": json.dumps({**ids, "account_uuid": "an0ther"})})
    assert not any(word in json.dumps(body) for body in (*bodies, other) for word in ("d3v1ce", "acc0unt", "an0ther"))
    assert _who(bodies[0]) == _who(bodies[1]) != _who(other)


def _who(body: Json) -> Any:
    who = body.get("safety_identifier") or body.get("user_id") or body["metadata"]["user_id"]
    assert who.startswith("user_"), who
    return who


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
def test_the_newest_version_of_the_api_takes_no_sampling(flow: Flow, name: str) -> None:
    newest = {**ANTHROPIC, "anthropic-version": "2026-10-21"}
    body = {"model": DEEPSEEK, "max_tokens": 9, "messages": [HI], name: 1}
    refused = flow.post("/v1/messages", body, newest)
    assert refused.status == 400
    assert f"`{name}`" in refused.json["error"]["message"]
    flow.script(SAYS[DEEPSEEK])
    assert flow.post("/v1/messages", body, ANTHROPIC).status == 200


@pytest.mark.parametrize("model", [OPUS, HAIKU, GPT, DEEPSEEK])
def test_no_tool_is_declared_that_the_client_has_not_loaded(flow: Flow, model: str) -> None:
    """`DeferredToolPlaceholder` stands for them; those that it has loaded are declared like any other."""
    loaded = {**LOOK, "name": "mcp__shop__price", "defer_loading": True}
    held = {"name": "DeferredToolPlaceholder", "input_schema": {"type": "object"}, "defer_loading": True}
    body = sent(flow, model, tools=[LOOK, loaded, held])
    names = [tool.get("name") or tool["function"]["name"] for tool in body["tools"]]
    assert names == ["look", "mcp__shop__price"]
    assert "defer_loading" not in json.dumps(body)


def test_a_title_is_asked_for_as_claude_code_does(flow: Flow) -> None:
    """`tools: []` and a format, on a model that has no schemas: the words keep the promise."""
    asked = recorded("title-json-schema").body
    flow.script(*[chat('Here:\n```json\n{"title": "Tides"}\n```')] * 2)
    message = flow.messages({**asked, "model": DEEPSEEK, "stream": False})
    assert json.loads(message["content"][-1]["text"]) == {"title": "Tides"}
    assert "tools" not in flow.sent[0]
    assert flow.sent[0]["response_format"] == {"type": "json_object"}


def test_a_schema_for_claude_has_no_open_objects(flow: Flow) -> None:
    """The vendor refuses them; what the client asked for is still what its answer is checked against."""
    inner = {"type": "object", "properties": {"n": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"inner": inner}, "required": ["inner"]}
    flow.script(strictly(claude(said('{"inner": {"n": 1}}'))))
    form = {"format": {"type": "json_schema", "schema": schema}}
    flow.message({"model": OPUS, "messages": [HI], "output_config": form})
    written = flow.sent[0]["output_config"]["format"]["schema"]
    assert written["additionalProperties"] is False
    assert written["properties"]["inner"]["additionalProperties"] is False
