"""More tools than a provider takes: the same refusal at every door, before anything is made of them, and traced."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import DEEPSEEK, Flow
from socketing import open_socket
from talking import ANTHROPIC
from tracing import request_id, trace_of

Json = dict[str, Any]
SCHEMA: Json = {"type": "object", "properties": {"path": {"type": "string"}}}
WORDS = "tools for a provider that takes 128; send fewer, or narrow them with `tool_choice` of type `allowed_tools`"


def functions(count: int, name: str = "f") -> list[Json]:
    return [{"type": "function", "name": f"{name}{n}", "parameters": SCHEMA} for n in range(count)]


def asked(tools: list[Json], **more: Any) -> Json:
    return {"model": DEEPSEEK, "input": "Hi", "tools": tools, **more}


def box(count: int) -> Json:
    return {"type": "namespace", "name": "box", "tools": functions(count)}


GIVEN: dict[str, tuple[Json, int]] = {
    "functions": (asked(functions(129)), 129),
    "many functions": (asked(functions(1000)), 1000),
    "inside a namespace": (asked([box(129)]), 129),
    "inside and beside a namespace": (asked([box(100), *functions(29)]), 129),
    "a namespace beside what is left out": (asked([box(130), {"type": "web_search"}]), 130),
    "custom tools": (asked([*functions(128), {"type": "custom", "name": "patch"}]), 129),
    "each twice": (asked([*functions(130), *functions(130)]), 130),
    "the conversation's, beside too many": (
        asked(functions(129), input=[{"type": "additional_tools", "tools": functions(1, "g")}]),
        130,
    ),
    "the conversation's": (
        asked(functions(100), input=[{"type": "additional_tools", "tools": functions(40, "g")}]),
        140,
    ),
}


@pytest.mark.parametrize(("body", "count"), GIVEN.values(), ids=GIVEN)
def test_the_number_is_what_the_provider_would_see(flow: Flow, body: Json, count: int) -> None:
    for more in ({}, {"stream": True}):
        answer = flow.post("/v1/responses", {**body, **more})
        assert (answer.status, answer.error["param"]) == (400, "tools")
        assert answer.error["code"] == "bridge.request.unsupported_parameter"
        assert answer.error["message"] == f"`tools` has {count} {WORDS}"
        summary = trace_of(flow, request_id(answer))["summary"]
        assert (summary["outcome"], summary["status"]) == ("refused", 400)
        assert summary["code"] == "bridge.request.unsupported_parameter"
    assert flow.sent == []


def test_over_a_socket(flow: Flow) -> None:
    with open_socket(flow.server.url) as talk:
        talk.ask(asked(functions(129)))
        told = talk.next()
    assert (told["type"], told["status"], told["error"]["param"]) == ("error", 400, "tools")
    assert told["error"]["message"] == f"`tools` has 129 {WORDS}"


def test_of_a_chat_client(flow: Flow) -> None:
    tools = [{"type": "function", "function": {"name": f"f{n}", "parameters": SCHEMA}} for n in range(129)]
    answer = flow.post("/v1/chat/completions", {"model": DEEPSEEK, "messages": HI, "tools": tools})
    assert (answer.status, answer.error["param"]) == (400, "tools")
    assert "129 tools for a provider that takes 128; send fewer" in answer.error["message"]


def test_of_a_messages_client(flow: Flow) -> None:
    tools = [{"name": f"f{n}", "input_schema": SCHEMA} for n in range(129)]
    body = {"model": DEEPSEEK, "max_tokens": 9, "messages": HI, "tools": tools}
    answer = flow.post("/v1/messages", body, headers=ANTHROPIC)
    assert answer.status == 400
    assert "129 tools for a provider that takes 128; send fewer" in answer.json["error"]["message"]


HI: list[Json] = [{"role": "user", "content": "Hi"}]


def test_a_malformed_tool_is_told_before_their_number_and_their_number_before_any_other_field(flow: Flow) -> None:
    malformed = flow.post("/v1/responses", asked([*functions(200), {"type": "function"}]))
    assert malformed.error["param"] == "tools[200].name"
    for tools in (functions(200), [box(200)]):
        other = flow.post("/v1/responses", asked(tools, input=[], n=3))
        assert other.error["param"] == "tools"
