"""`tool_choice`: each row of the two tables, and what lies between them."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ToolChoiceSupport, ToolSupport
from isthmus.bridge.tools.catalog import build_tool_catalog, create_provider_name_allocator
from isthmus.bridge.tools.choice import plan_provider_tool_choice, read_tool_choice, render_provider_tool_choice
from isthmus.bridge.tools.declare import plan_tool_declaration
from isthmus.bridge.types.tools import ToolChoicePlan, ToolDeclarationPlan

SUPPORT = ToolSupport(native=frozenset({"function", "web_search", "mcp"}))
TOOLS = [
    {"type": "function", "name": "look"},
    {"type": "custom", "name": "exec"},
    {"type": "shell"},
    {"type": "mcp", "server_label": "wiki"},
    {"type": "web_search"},
    {
        "type": "namespace",
        "name": "agents",
        "tools": [{"type": "function", "name": "spawn"}, {"type": "function", "name": "stop"}],
    },
    {"type": "namespace", "name": "others", "tools": [{"type": "function", "name": "stop"}]},
]


def declarations(tools: list[dict[str, Any]] = TOOLS) -> list[ToolDeclarationPlan]:
    allocate = create_provider_name_allocator()
    return [plan_tool_declaration(tool, SUPPORT, allocate) for tool in build_tool_catalog(tools)]


def choose(choice: Any, *supported: str, thinking: bool = False, while_thinking: Any = None) -> ToolChoicePlan:
    support = ToolChoiceSupport(supported=frozenset(supported), while_thinking=while_thinking)
    return plan_provider_tool_choice(read_tool_choice(choice), declarations(), support, thinking)


def action(plan: ToolChoicePlan) -> str | None:
    return plan.decision.action if plan.decision else None


ALL = ("auto", "none", "required", "function", "web_search", "mcp")


@pytest.mark.parametrize(
    ("choice", "supported", "expected_action", "rendered"),
    [
        pytest.param("none", ALL, "supported", None, id="none-sends-no-choice"),
        pytest.param("auto", ("auto",), "supported", "auto", id="auto-on-auto-is-supported"),
        pytest.param("required", ("required",), "supported", "required", id="required-on-required-is-supported"),
        pytest.param("required", ("auto",), "degraded", "auto", id="required-on-auto-only-is-degraded"),
        pytest.param("required", (), "rejected", None, id="required-on-neither-is-rejected"),
        pytest.param("auto", (), "rejected", None, id="auto-on-nothing-is-rejected"),
        pytest.param(
            {"type": "function", "name": "look"},
            ("auto", "function"),
            "supported",
            {"type": "function", "function": {"name": "look"}},
            id="named-function-that-can-be-forced-is-supported",
        ),
        pytest.param(
            {"type": "custom", "name": "exec"},
            ("auto", "function"),
            "supported",
            {"type": "function", "function": {"name": "exec"}},
            id="named-custom-that-can-be-forced-is-supported",
        ),
        pytest.param(
            {"type": "function", "name": "look"},
            ("auto",),
            "degraded",
            "auto",
            id="named-function-not-forcible",
        ),
        pytest.param({"type": "custom", "name": "exec"}, ("auto",), "degraded", "auto", id="named-custom-not-forcible"),
        pytest.param({"type": "function", "name": "nope"}, ALL, "rejected", None, id="named-function-unknown-rejected"),
        pytest.param({"type": "custom", "name": "nope"}, ALL, "rejected", None, id="named-custom-unknown-is-rejected"),
        pytest.param(
            {"type": "shell"}, ALL, "supported", {"type": "function", "function": {"name": "shell"}}, id="builtin"
        ),
        pytest.param({"type": "apply_patch"}, ALL, "rejected", None, id="builtin-not-declared-is-rejected"),
        pytest.param({"type": "web_search"}, ALL, "supported", {"type": "web_search"}, id="hosted"),
        pytest.param({"type": "web_search_preview"}, ALL, "supported", {"type": "web_search"}, id="hosted-by-family"),
        pytest.param({"type": "web_search"}, ("auto", "function"), "degraded", "auto", id="hosted-not-forcible"),
        pytest.param(
            {"type": "mcp", "server_label": "wiki"},
            ALL,
            "supported",
            {"type": "mcp", "mcp": {"server_label": "wiki"}},
            id="mcp",
        ),
        pytest.param(
            {"type": "mcp", "server_label": "wiki", "name": "ask"},
            ALL,
            "degraded",
            {"type": "mcp", "mcp": {"server_label": "wiki"}},
            id="mcp-one-tool-of-it",
        ),
        pytest.param({"type": "mcp", "server_label": "nope"}, ALL, "rejected", None, id="mcp-unknown-is-rejected"),
        pytest.param(
            {"type": "function", "function": {"name": "look"}},
            ALL,
            "supported",
            {"type": "function", "function": {"name": "look"}},
            id="chat-spelling",
        ),
        pytest.param({"type": "auto"}, ("auto",), "supported", "auto", id="mode-as-object"),
        pytest.param("any", ALL, "rejected", None, id="unknown-word-is-rejected"),
        pytest.param({"name": "look"}, ALL, "rejected", None, id="object-without-type-is-rejected"),
        pytest.param(None, ALL, None, None, id="nothing-asked-nothing-sent"),
    ],
)
def test_choice_table(choice: Any, supported: tuple[str, ...], expected_action: str | None, rendered: Any) -> None:
    plan = choose(choice, *supported)
    assert action(plan) == expected_action
    assert render_provider_tool_choice(plan) == rendered
    if plan.decision is not None:
        assert plan.decision.path == "tool_choice"
        assert plan.decision.code == "bridge.tool.compatibility"
        assert plan.decision.reason


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ({"type": "function", "name": "spawn", "namespace": "agents"}, "agents__spawn"),
        ({"type": "function", "name": "stop", "namespace": "others"}, "others__stop"),
        ({"type": "function", "name": "spawn"}, "agents__spawn"),
        ({"type": "function", "name": "agents__stop"}, "agents__stop"),
        ({"type": "custom", "name": "look"}, "look"),
    ],
    ids=["namespace", "namespace-decides", "unique-child", "flat-name", "type-does-not-matter"],
)
def test_named_tools_are_found(choice: dict[str, Any], name: str) -> None:
    identity = choose(choice, *ALL).identity
    assert identity is not None
    assert identity.provider_name == name


@pytest.mark.parametrize(
    "choice",
    [{"type": "function", "name": "stop"}, {"type": "function", "name": "look", "namespace": "agents"}],
    ids=["ambiguous-child", "wrong-namespace"],
)
def test_named_tools_that_are_not_certain_are_rejected(choice: dict[str, Any]) -> None:
    assert action(choose(choice, *ALL)) == "rejected"


def test_a_function_and_a_custom_tool_of_one_name_are_told_apart_by_type() -> None:
    both = declarations([{"type": "function", "name": "x"}, {"type": "custom", "name": "x"}])
    support = ToolChoiceSupport(supported=frozenset({"function"}))
    plan = plan_provider_tool_choice(read_tool_choice({"type": "custom", "name": "x"}), both, support)
    assert plan.identity is not None
    assert plan.identity.provider_name == "x_2"


@pytest.mark.parametrize(("supported", "mode"), [(("auto",), "auto"), (("auto", "required"), "required"), ((), "omit")])
def test_a_tool_that_cannot_be_forced_is_left_as_the_only_one(supported: tuple[str, ...], mode: str) -> None:
    plan = choose({"type": "function", "name": "look"}, *supported)
    assert action(plan) == "degraded"
    assert plan.mode == mode
    assert plan.keep == frozenset({"look"})
    assert "`look`" in plan.instruction


def test_required_that_is_degraded_says_it_in_words() -> None:
    assert choose("required", "auto").instruction


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "look"}], ids=["required", "named"])
def test_restrictions_while_thinking_apply_only_while_thinking(choice: Any) -> None:
    only_auto = frozenset({"auto", "none"})
    assert action(choose(choice, *ALL, while_thinking=only_auto)) == "supported"
    thinking = choose(choice, *ALL, thinking=True, while_thinking=only_auto)
    assert action(thinking) == "degraded"
    assert render_provider_tool_choice(thinking) == "auto"
    assert thinking.decision is not None
    assert "thinks" in thinking.decision.reason
    assert action(choose(choice, *ALL, thinking=True)) == "supported"


# -- allowed_tools -------------------------------------------------------------------------------------------------


def allowed(*tools: dict[str, Any], mode: Any = "auto") -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": list(tools)}


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_allowed_tools_narrow_the_list_and_keep_the_mode(mode: str) -> None:
    choice = allowed({"type": "function", "name": "look"}, {"type": "custom", "name": "exec"}, mode=mode)
    plan = choose(choice, *ALL)
    assert action(plan) == "supported"
    assert plan.mode == mode
    assert plan.keep == frozenset({"look", "exec"})


def test_allowed_tools_in_the_chat_spelling() -> None:
    tools = [{"type": "function", "function": {"name": "look"}}]
    plan = choose({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": tools}}, *ALL)
    assert (plan.mode, plan.keep) == ("required", frozenset({"look"}))


def test_a_whole_namespace_can_be_allowed() -> None:
    plan = choose(allowed({"type": "namespace", "name": "agents"}, {"type": "web_search"}), *ALL)
    assert plan.keep == frozenset({"agents__spawn", "agents__stop", "web_search"})


def test_allowed_tools_whose_mode_is_not_taken_are_degraded_but_stay_narrow() -> None:
    plan = choose(allowed({"type": "function", "name": "look"}, mode="required"), "auto")
    assert action(plan) == "degraded"
    assert plan.keep == frozenset({"look"})
    assert plan.instruction


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        pytest.param(allowed(), "no tool", id="empty"),
        pytest.param({"type": "allowed_tools", "mode": "auto"}, "no tool", id="missing"),
        pytest.param(
            allowed({"type": "function", "name": "ghost"}, {"type": "shell"}, {"type": "mcp", "server_label": "m"}),
            "function `ghost`, mcp `m`",
            id="unknown-names-are-named",
        ),
        pytest.param(allowed({"type": "shell"}, mode="maybe"), "`maybe`", id="unknown-mode"),
    ],
)
def test_allowed_tools_that_cannot_be_kept_are_rejected(choice: dict[str, Any], words: str) -> None:
    plan = choose(choice, *ALL)
    assert action(plan) == "rejected"
    assert plan.decision is not None
    assert words in plan.decision.reason


# -- without tools -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "expected"), [("auto", "supported"), ("required", "rejected"), ("none", "supported")]
)
def test_without_any_tool_no_choice_is_sent(choice: str, expected: str) -> None:
    plan = plan_provider_tool_choice(read_tool_choice(choice), [], ToolChoiceSupport(supported=frozenset(ALL)))
    assert action(plan) == expected
    assert render_provider_tool_choice(plan) is None
