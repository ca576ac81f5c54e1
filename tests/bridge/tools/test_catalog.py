"""The catalog: every tool the client offered, once, wherever it was declared."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.tools.catalog import build_tool_catalog


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}, **more}


def names(*args: Any) -> list[tuple[str | None, str]]:
    return [(tool.namespace, tool.name) for tool in build_tool_catalog(*args)]


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        pytest.param(function("look"), "look", id="function-by-name"),
        pytest.param({"type": "custom", "name": "exec"}, "exec", id="custom-by-name"),
        pytest.param({"type": "local_shell"}, "local_shell", id="local_shell-by-type"),
        pytest.param({"type": "shell"}, "shell", id="shell-by-type"),
        pytest.param({"type": "apply_patch"}, "apply_patch", id="apply_patch-by-type"),
        pytest.param({"type": "tool_search", "execution": "client"}, "tool_search", id="tool_search-by-type"),
        pytest.param({"type": "mcp", "server_label": "wiki"}, "wiki", id="mcp-by-label"),
        pytest.param({"type": "web_search"}, "web_search", id="other-by-type"),
    ],
)
def test_each_type_is_known_by_its_name(tool: dict[str, Any], name: str) -> None:
    assert names([tool]) == [(None, name)]


def test_a_second_different_tool_of_an_unnamed_type_is_numbered() -> None:
    tools = [{"type": "web_search"}, {"type": "web_search", "search_context_size": "high"}]
    assert names(tools) == [(None, "web_search"), (None, "web_search_2")]


def test_namespaces_are_opened_and_their_words_travel_with_the_first_tool() -> None:
    space = {
        "type": "namespace",
        "name": "agents",
        "description": "Helpers.",
        "tools": [function("spawn"), {"type": "custom", "name": "tell"}],
    }
    catalog = build_tool_catalog([function("look"), space])
    assert [tool.path for tool in catalog] == ["tools[0]", "tools[1].tools[0]", "tools[1].tools[1]"]
    assert [tool.namespace for tool in catalog] == [None, "agents", "agents"]
    assert [tool.namespace_description for tool in catalog] == ["", "Helpers.", ""]


def test_namespaces_inside_namespaces_join_their_names() -> None:
    inner = {"type": "namespace", "name": "b", "tools": [function("c")]}
    assert names([{"type": "namespace", "name": "a", "tools": [inner]}]) == [("a__b", "c")]


def test_an_empty_namespace_stays_visible() -> None:
    (tool,) = build_tool_catalog([{"type": "namespace", "name": "void", "tools": []}])
    assert (tool.type, tool.name) == ("namespace", "void")


@pytest.mark.parametrize("carrier", ["additional_tools", "tool_search_output"])
def test_tools_inside_input_items_are_merged_behind_the_others(carrier: str) -> None:
    items = [
        {"type": "message", "role": "user", "content": "hi"},
        {"type": carrier, "tools": [{"type": "namespace", "name": "clock", "tools": [function("sleep")]}]},
    ]
    catalog = build_tool_catalog([function("look")], items)
    assert [(tool.namespace, tool.name, tool.path) for tool in catalog] == [
        (None, "look", "tools[0]"),
        ("clock", "sleep", "input[1].tools[0].tools[0]"),
    ]


def test_identical_declarations_collapse_also_when_only_their_loading_differs() -> None:
    items = [{"type": "tool_search_output", "tools": [function("look", defer_loading=True)]}]
    assert names([function("look"), function("look")], items) == [(None, "look")]


def test_different_declarations_under_one_name_both_stay() -> None:
    assert names([function("look"), function("look", description="better")]) == [(None, "look"), (None, "look")]


def test_no_tools_make_an_empty_catalog() -> None:
    assert build_tool_catalog(None, [{"type": "additional_tools", "tools": []}]) == ()
