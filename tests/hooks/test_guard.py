"""What a hook cannot change without being told."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Target
from isthmus.hooks.guard import Broken, check_reply, check_request, check_sending
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_in

ASKED = {
    "model": "m",
    "tools": [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}],
    "input": [
        {"role": "user", "content": "look"},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "seen"},
    ],
}
PROVIDERS = {"chat": "deepseek", "messages": "anthropic", "responses": "openai", "codex": "codex"}


def body_in(dialect: str) -> Any:
    capabilities = capabilities_in(load_provider(PROVIDERS[dialect]), "m", dialect)  # type: ignore[arg-type]
    assert capabilities.dialect == dialect
    return copy.deepcopy(plan_request(parse_request(ASKED), Target("p", "m", capabilities)).body)


def renamed(value: Any, names: tuple[str, ...], old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {
            name: new if name in names and each == old else renamed(each, names, old, new)
            for name, each in value.items()
        }
    return [renamed(each, names, old, new) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("dialect", PROVIDERS)
def test_a_tool_keeps_its_name_and_a_call_its_id_in_every_dialect(dialect: str) -> None:
    body = body_in(dialect)
    assert check_sending(DEFAULT_LIMITS, body, copy.deepcopy(body)) == body
    with pytest.raises(Broken, match="`look` became `other`"):
        check_sending(DEFAULT_LIMITS, body, renamed(body, ("name",), "look", "other"))
    if dialect != "codex":  # a thread of Codex knows its calls itself
        changed = renamed(body, ("id", "call_id", "tool_call_id", "tool_use_id"), "call_1", "call_2")
        assert changed != body
        one = renamed(body, ("call_id", "tool_call_id", "tool_use_id"), "call_1", "call_2")
        with pytest.raises(Broken, match="ids that join calls"):
            check_sending(DEFAULT_LIMITS, body, one)


@pytest.mark.parametrize("field", ["model", "stream"])
def test_who_is_asked_and_how_it_answers_is_settled(field: str) -> None:
    with pytest.raises(Broken, match=f"`{field}`"):
        check_sending(DEFAULT_LIMITS, {"model": "m"}, {"model": "m", field: "other"})


def test_a_body_stays_within_the_limits() -> None:
    with pytest.raises(Broken, match="too large"):
        check_sending(RequestLimits(max_values=9), {}, {"a": [1] * 9})


@pytest.mark.parametrize("field", ["stream", "background", "previous_response_id", "conversation"])
def test_what_a_door_has_settled_stays(field: str) -> None:
    with pytest.raises(Broken, match=f"`{field}`"):
        check_request(parse_request, {"input": "hi"}, {"input": "hi", field: "other"})


def test_a_request_must_be_one() -> None:
    assert check_request(parse_request, {"input": "hi"}, {"input": "ho"}) == {"input": "ho"}
    with pytest.raises(Broken, match="`input`"):
        check_request(parse_request, {"input": "hi"}, {"input": 7})


def replied() -> Any:
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c",
        "name": "look",
        "arguments": '{"a": 1}',
        "status": "completed",
    }
    part = {"type": "output_text", "text": "hello", "annotations": [], "logprobs": []}
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "output": [{**item, "content": [part]}, call],
        "output_text": "hello",
    }


def test_words_may_change_and_items_may_go() -> None:
    changed = replied()
    changed["output"][0]["content"][0]["text"] = "bye"
    assert check_reply(replied(), changed)["output_text"] == "bye"
    gone = {**replied(), "output": replied()["output"][1:]}
    assert check_reply(replied(), gone)["output_text"] == ""
    arguments = replied()
    arguments["output"][1]["arguments"] = '{"a": 2}'
    assert check_reply(replied(), arguments)["output"][1]["arguments"] == '{"a": 2}'


def _break(change: Any) -> Any:
    response = replied()
    change(response)
    return response


@pytest.mark.parametrize(
    "change",
    [
        lambda response: response.update(status="failed"),
        lambda response: response.update(id="resp_2"),
        lambda response: response.update(new=1),
        lambda response: response.update(output="x"),
        lambda response: response.update(output=["x"]),
        lambda response: response["output"].reverse(),
        lambda response: response["output"].append(dict(response["output"][0])),
        lambda response: response["output"][1].update(name="other"),
        lambda response: response["output"][1].update(call_id="other"),
        lambda response: response["output"][1].update(arguments="{"),
        lambda response: response["output"][1].update(arguments=1),
        lambda response: response["output"][0].update(type="reasoning"),
        lambda response: response["output"][0].update(content="x"),
        lambda response: response["output"][0]["content"][0].pop("text"),
        lambda response: response["output"][0]["content"][0].update(text=7),
    ],
)
def test_everything_else_is_told(change: Any) -> None:
    with pytest.raises(Broken):
        check_reply(replied(), _break(change))
