"""Tools of a Messages request and what they become."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.doors.messages.read_tools import ToolReader
from isthmus.errors import RequestRefused

Json = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}
LOOK: Json = {"name": "look", "description": "Looks.", "input_schema": SCHEMA}
FUNCTION: Json = {
    "type": "function",
    "name": "look",
    "description": "Looks.",
    "parameters": SCHEMA,
    "strict": False,
}
PLACEHOLDER = {"name": "DeferredToolPlaceholder", "defer_loading": True, "input_schema": {"type": "object"}}


def read(*tools: Json) -> ToolReader:
    reader = ToolReader()
    reader.take(tools)
    return reader


def decided(reader: ToolReader) -> list[tuple[str, str]]:
    """Where each decision belongs in the request."""
    found = []
    for decision in reader.decisions:
        index, _, rest = decision.path.removeprefix("tools[").partition("]")
        found.append((reader.paths[int(index)] + rest, decision.action))
    return found


@pytest.mark.parametrize(
    ("tool", "made", "said"),
    [
        (LOOK, FUNCTION, []),
        ({**LOOK, "type": "custom"}, FUNCTION, []),
        ({**LOOK, "input_schema": {"$schema": "https://json-schema.org/x", **SCHEMA}}, FUNCTION, []),
        ({**LOOK, "strict": True}, {**FUNCTION, "strict": True}, []),
        ({**LOOK, "eager_input_streaming": True, "defer_loading": True}, FUNCTION, []),
        ({**LOOK, "allowed_callers": ["direct", "code"]}, FUNCTION, []),
        ({**LOOK, "allowed_callers": ["code"]}, FUNCTION, [(".allowed_callers", "rejected")]),
        ({**LOOK, "cache_control": {"type": "ephemeral"}}, FUNCTION, [(".cache_control", "ignored")]),
        (
            {**LOOK, "input_examples": [{"at": "x"}]},
            {**FUNCTION, "description": 'Looks.\n\nExamples of its input:\n{"at":"x"}'},
            [(".input_examples", "degraded")],
        ),
        (
            {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.example"], "max_uses": 8},
            {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}, "max_uses": 8},
            [],
        ),
        (
            {
                "type": "web_search_20260318",
                "name": "web_search",
                "user_location": {"type": "approximate", "city": "B"},
            },
            {"type": "web_search", "user_location": {"type": "approximate", "city": "B"}},
            [],
        ),
        (PLACEHOLDER, None, [("", "supported")]),
        ({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}, None, [("", "degraded")]),
        ({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}, None, [("", "degraded")]),
        ({"type": "web_fetch_20250910", "name": "web_fetch"}, None, [("", "rejected")]),
        ({"type": "code_execution_20250825", "name": "code_execution"}, None, [("", "rejected")]),
        ({"type": "mcp_toolset", "mcp_server_name": "x"}, None, [("", "rejected")]),
        ({"type": "advisor_20260301", "name": "advisor"}, None, [("", "rejected")]),
    ],
)
def test_each_kind_of_tool(tool: Json, made: Json | None, said: list[tuple[str, str]]) -> None:
    reader = read(tool)
    assert reader.tools == ([] if made is None else [made])
    assert decided(reader) == [(f"tools[0]{field}", action) for field, action in said]


@pytest.mark.parametrize(
    ("kind", "name", "field"),
    [
        ("bash_20250124", "bash", "command"),
        ("text_editor_20250728", "str_replace_based_edit_tool", "old_str"),
        ("memory_20250818", "memory", "path"),
        ("computer_20250124", "computer", "coordinate"),
    ],
)
def test_a_tool_that_its_vendor_publishes_becomes_a_function_of_its_name(kind: str, name: str, field: str) -> None:
    reader = read({"type": kind, "name": name})
    (tool,) = reader.tools
    assert (tool["type"], tool["name"]) == ("function", name)
    assert field in tool["parameters"]["properties"]
    assert decided(reader) == [("tools[0].type", "degraded")]


def test_a_tool_that_is_left_out_shifts_no_path() -> None:
    """The planner counts what it gets; what is said of the others still finds them."""
    reader = read(
        PLACEHOLDER, LOOK, {"type": "web_fetch_20250910", "name": "f"}, {**LOOK, "name": "b", "cache_control": {}}
    )
    assert [tool["name"] for tool in reader.tools] == ["look", "b"]
    assert reader.paths == ["tools[1]", "tools[3]", "tools[0]", "tools[2]"]
    assert decided(reader) == [
        ("tools[0]", "supported"),
        ("tools[2]", "rejected"),
        ("tools[3].cache_control", "ignored"),
    ]


@pytest.mark.parametrize(
    ("choice", "made"),
    [
        (None, {}),
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "tool", "name": "look"}, {"tool_choice": {"type": "function", "name": "look"}}),
        ({"type": "tool", "name": "web_search"}, {"tool_choice": {"type": "web_search"}}),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            {"tool_choice": "auto", "parallel_tool_calls": False},
        ),
        ({"type": "any", "disable_parallel_tool_use": False}, {"tool_choice": "required"}),
    ],
)
def test_each_choice(choice: Any, made: Json) -> None:
    reader = read(LOOK, {"type": "web_search_20250305", "name": "web_search"})
    assert reader.choose(choice) == made


def test_a_choice_without_tools_is_dropped_unless_it_asks_for_one() -> None:
    reader = read()
    assert reader.choose({"type": "auto"}) == {}
    assert [(one.path, one.action) for one in reader.decisions] == [("tool_choice", "supported")]
    assert reader.choose({"type": "any"}) == {"tool_choice": "required"}


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({"input_schema": SCHEMA}, "tools[0].name"),
        ({"name": "a", "input_schema": 3}, "tools[0].input_schema"),
        ({"name": "a", "type": 3}, "tools[0].type"),
        ("look", "tools[0]"),
    ],
)
def test_a_broken_tool_is_refused_by_name(tool: Any, param: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        read(tool)
    assert refused.value.param == param
