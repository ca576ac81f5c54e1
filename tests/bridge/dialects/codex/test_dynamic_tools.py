from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.dialects.codex.dynamic_tools import (
    CODEX_TOOL_NAMES,
    assign_names,
    build_dynamic_tools,
    build_tool_call_delta_from_dynamic_request,
    build_tool_reply,
)
from isthmus.bridge.dialects.codex.wire import complete_tool
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Target
from isthmus.providers import load_provider


def _chat(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {}, **fields}}


class TestDynamicToolsMapping:
    def test_maps_function_tools_to_dynamic_tools(self) -> None:
        tools = [
            {"type": "function", "function": {"name": "lookup", "description": "d", "parameters": {"type": "object"}}}
        ]
        assert build_dynamic_tools(tools, "auto") == [
            {"name": "lookup", "description": "d", "inputSchema": {"type": "object"}}
        ]

    def test_honors_tool_choice_none(self) -> None:
        assert build_dynamic_tools([_chat("lookup")], "none") == []

    def test_honors_forced_tool_choice(self) -> None:
        forced = {"type": "function", "function": {"name": "b"}}
        # No `description` key is this language's `undefined`; the schema layer adds what the wire demands.
        assert build_dynamic_tools([_chat("a"), _chat("b")], forced) == [{"name": "b", "inputSchema": {}}]


class TestDynamicToolCallRequestMapping:
    def test_builds_tool_calls_delta_from_dynamic_tool_call_request(self) -> None:
        payload = {"tool": "lookup", "arguments": {"id": 1}, "callId": "call_1"}
        assert build_tool_call_delta_from_dynamic_request(payload) == {
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": '{"id":1}'}}
            ]
        }

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            ('{"a" :  1}', '{"a" :  1}'),
            (None, "{}"),
            ({}, "{}"),
            ([1, 2], "[1,2]"),
            ({"stadt": "Köln"}, '{"stadt":"Köln"}'),
        ],
        ids=["string-verbatim", "missing", "empty", "list", "unicode"],
    )
    def test_arguments_become_text(self, arguments: Any, text: str) -> None:
        delta = build_tool_call_delta_from_dynamic_request({"tool": "t", "arguments": arguments, "call_id": "c"})
        call = delta["tool_calls"][0]
        assert (call["id"], call["function"]["arguments"]) == ("c", text)

    def test_the_clients_own_name_is_restored(self) -> None:
        codex_name = assign_names(["apply_patch"])["apply_patch"]
        back = {codex_name: "apply_patch"}
        delta = build_tool_call_delta_from_dynamic_request({"tool": codex_name, "callId": "c"}, back)
        assert codex_name != "apply_patch"
        assert delta["tool_calls"][0]["function"]["name"] == "apply_patch"


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (None, ["a", "b"]),
        ("auto", ["a", "b"]),
        ("required", ["a", "b"]),
        ("none", []),
        ({"type": "function", "function": {"name": "a"}}, ["a"]),
    ],
    ids=["absent", "auto", "required", "none", "forced"],
)
def test_every_choice_offers_what_it_allows(choice: Any, names: list[str]) -> None:
    assert [tool["name"] for tool in build_dynamic_tools([_chat("a"), _chat("b")], choice)] == names


def test_the_writer_declares_what_this_builds() -> None:
    tool = {"type": "function", "name": "exec_command", "description": "d", "parameters": {"type": "object"}}
    target = Target("codex", "m", load_provider("codex").capabilities("m"))
    body = plan_request(parse_request({"input": "Hi", "tools": [tool]}), target).body
    declared = _chat("exec_command", description="d", parameters={"type": "object", "properties": {}})
    names = {"exec_command": "client_exec_command"}
    assert body["dynamicTools"] == [complete_tool(built) for built in build_dynamic_tools([declared], "auto", names)]


@pytest.mark.parametrize(
    ("names", "assigned"),
    [
        (["ok-1", "Ok_2"], ["ok-1", "Ok_2"]),
        (["exec_command"], ["client_exec_command"]),
        (["mcp__server__tool"], ["client_mcp__server__tool"]),
        (["a.b", "a_b"], ["a_b_2", "a_b"]),
        (["a.b", "a/b"], ["a_b", "a_b_2"]),
        (["größe"], ["gr__e"]),
        (["x" * 200], ["x" * 128]),
        (["y" * 129, "y" * 130], ["y" * 128, "y" * 126 + "_2"]),
        (["client_shell", "shell"], ["client_shell", "client_shell_2"]),
    ],
    ids=["kept", "built-in", "reserved", "exact-first", "twins", "unicode", "long", "long-twins", "prefix-taken"],
)
def test_names_become_valid_and_free(names: list[str], assigned: list[str]) -> None:
    assert [assign_names(names)[name] for name in names] == assigned


@given(st.lists(st.text(min_size=1, max_size=150) | st.sampled_from(sorted(CODEX_TOOL_NAMES)), max_size=12))
@settings(max_examples=150, deadline=None)
def test_assigned_names_are_always_valid_unique_and_reversible(names: list[str]) -> None:
    assigned = assign_names(names)
    told = list(assigned.values())
    assert len(set(told)) == len(told)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name) and name not in CODEX_TOOL_NAMES for name in told)
    assert not any(name.startswith("mcp__") for name in told)
    assert set(assigned) == set(names)


@pytest.mark.parametrize(
    ("output", "items"),
    [
        ("21C", [{"type": "inputText", "text": "21C"}]),
        ("", [{"type": "inputText", "text": ""}]),
        (
            [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:x"}],
            [{"type": "inputText", "text": "a"}, {"type": "inputImage", "imageUrl": "data:x"}],
        ),
    ],
    ids=["text", "empty", "parts"],
)
def test_a_tool_reply_has_the_one_shape_that_codex_reads(output: Any, items: list[dict[str, str]]) -> None:
    assert build_tool_reply(output) == {"contentItems": items, "success": True}
