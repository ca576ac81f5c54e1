"""The catalog: every tool the client offered, once, under a name that is valid, unique, stable and leads back to it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.capabilities import ProviderCapabilities, ToolSupport
from isthmus.bridge.tools.catalog import (
    build_tool_catalog,
    create_provider_name_allocator,
    default_tool_name_codec,
    name_past_call,
)
from isthmus.bridge.tools.restore import find_identity
from isthmus.bridge.tools.survey import plan_tools, survey_tools


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


VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
UNLIMITED = ProviderCapabilities(tools=ToolSupport(max=None))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("get_weather-2", "get_weather-2", id="already-valid"),
        pytest.param("files.read/all", "files_read_all", id="others-become-underscores"),
        pytest.param("wétter", "w_tter", id="non-ascii"),
        pytest.param("x" * 80, "x" * 64, id="cut-to-64"),
        pytest.param("", "tool", id="empty"),
    ],
)
def test_codec(name: str, expected: str) -> None:
    assert default_tool_name_codec(name) == expected


def test_the_allocator_numbers_duplicates() -> None:
    allocate = create_provider_name_allocator()
    assert [allocate(name) for name in ("a", "a.", "a_", "a", "a")] == ["a", "a_", "a__2", "a_2", "a_3"]


def test_numbered_names_stay_within_64() -> None:
    allocate = create_provider_name_allocator()
    assert allocate("n" * 70) == "n" * 64
    assert allocate("n" * 70) == "n" * 62 + "_2"


def test_the_allocator_takes_another_codec() -> None:
    assert create_provider_name_allocator(codec=str.upper)("a") == "A"


def planned_names(*tools: dict[str, object]) -> list[str]:
    return [identity.provider_name for identity in survey_tools(list(tools), (), None, UNLIMITED).identities]


def space(name: str, *children: str) -> dict[str, object]:
    return {"type": "namespace", "name": name, "tools": [{"type": "function", "name": child} for child in children]}


def test_a_namespaced_tool_always_carries_its_namespace() -> None:
    assert planned_names(space("mcp__demo", "echo")) == ["mcp__demo__echo"]


def test_the_default_namespace_keeps_bare_names() -> None:
    assert planned_names(space("functions", "exec")) == ["exec"]


def test_long_siblings_are_told_apart_by_a_tail_that_depends_on_their_name_only() -> None:
    long = "server_" * 10
    both = planned_names(space(long, "read_everything", "write_everything"))
    alone = planned_names(space(long, "write_everything"))
    assert both[1] == alone[0]
    assert len(set(both)) == 2
    assert all(len(name) == 64 for name in both)


def test_a_tool_that_is_added_later_renames_no_earlier_one() -> None:
    before = planned_names(space("a", "x"), {"type": "function", "name": "y"})
    after = planned_names(space("a", "x"), {"type": "function", "name": "y"}, space("b", "x", "y"), space("a", "z"))
    assert after[: len(before)] == before


@pytest.mark.parametrize(
    ("name", "namespace", "expected"),
    [
        pytest.param("a.b", None, "a_b_2", id="declared"),
        pytest.param("echo", "demo", "demo__echo", id="declared-in-a-namespace"),
        pytest.param("wait", None, "wait", id="declared-in-the-default-namespace"),
        pytest.param("a.b", "functions", "a_b_2", id="default-namespace-written-out"),
        pytest.param("gone", "demo", "demo__gone", id="not-declared-any-more"),
        pytest.param("go.ne", None, "go_ne", id="never-declared"),
    ],
)
def test_past_calls_get_the_name_that_their_tool_has_or_would_have(
    name: str, namespace: str | None, expected: str
) -> None:
    tools = [
        {"type": "function", "name": "a_b"},
        {"type": "function", "name": "a.b"},
        space("demo", "echo"),
        space("functions", "wait"),
    ]
    assert name_past_call(name, namespace, survey_tools(tools, (), None, UNLIMITED).identities) == expected


any_name = st.text(min_size=1, max_size=90)
any_tool = st.tuples(st.one_of(st.none(), any_name), any_name, st.sampled_from(["function", "custom"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(any_tool, min_size=1, max_size=200, unique=True))
def test_every_name_makes_the_round_trip(wanted: list[tuple[str | None, str, str]]) -> None:
    tools = [
        {"type": kind, "name": name}
        if outer is None
        else {"type": "namespace", "name": outer, "tools": [{"type": kind, "name": name}]}
        for outer, name, kind in wanted
    ]
    plan = plan_tools(survey_tools(tools, (), None, UNLIMITED))
    assert len(plan.identities) == len(wanted)
    for (outer, name, kind), declaration in zip(wanted, plan.declarations, strict=True):
        assert declaration.identity is not None
        provider_name = declaration.identity.provider_name
        assert VALID.fullmatch(provider_name)
        back = find_identity(provider_name, plan.identities)
        assert back is not None
        assert (back.namespace, back.requested_name, back.requested_type) == (outer, name, kind)


@settings(max_examples=60, deadline=None)
@given(st.lists(any_tool, min_size=1, max_size=30, unique=True), st.lists(any_tool, max_size=10, unique=True))
def test_appending_tools_never_renames(
    first: list[tuple[str | None, str, str]], more: list[tuple[str | None, str, str]]
) -> None:
    def plan(wanted: list[tuple[str | None, str, str]]) -> list[str]:
        return planned_names(*({**space(o or "functions", n)} for o, n, _ in wanted))

    assert plan([*first, *more])[: len(plan(first))] == plan(first)
