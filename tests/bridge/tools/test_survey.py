"""What a first look at the tools says; and the whole plan: made once, the same every time, and complete."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.capabilities import MessageRules, ProviderCapabilities, ToolChoiceSupport, ToolSupport
from isthmus.bridge.diagnostics import refuse_rejected
from isthmus.bridge.tools.choice import render_provider_tool_choice
from isthmus.bridge.tools.declare import render_provider_tool_declarations
from isthmus.bridge.tools.survey import plan_tools, survey_tools
from isthmus.bridge.types.tools import ToolIdentity, ToolIdentityMap, ToolPlan
from isthmus.errors import BRIDGE_REQUEST_UNSUPPORTED_PARAMETER, RequestRefused

LOOK: dict[str, Any] = {"type": "function", "name": "look"}
PAINT: dict[str, Any] = {"type": "image_generation"}
PLAIN = ProviderCapabilities(tools=ToolSupport(native=frozenset({"function", "web_search"})))


def test_a_tool_that_nobody_is_told_of_is_declared_but_not_offered() -> None:
    survey = survey_tools([PAINT], (), "auto", PLAIN)
    assert [plan.decision.action for plan in survey.declared] == ["ignored"]
    assert (survey.offered, survey.sends) == ((), False)


ELSEWHERE: tuple[dict[str, Any], ...] = (
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"type": "file_search", "vector_store_ids": ["vs_1"]},
    {"type": "shell", "environment": {"type": "container_auto"}},
)


@pytest.mark.parametrize("tool", ELSEWHERE, ids=lambda tool: tool["type"])
def test_what_only_openai_runs_is_left_out_beside_others_and_refused_alone(tool: dict[str, Any]) -> None:
    beside = survey_tools([tool, LOOK], (), None, PLAIN)
    assert [plan.decision.action for plan in beside.declared] == ["ignored", "supported"]
    alone = survey_tools([tool, PAINT], (), None, PLAIN)
    assert [plan.decision.action for plan in alone.declared] == ["rejected", "ignored"]
    with pytest.raises(RequestRefused, match=r"there (are|is) no"):
        refuse_rejected(plan_tools(alone).decisions)
    forced = plan_tools(survey_tools([tool, LOOK], (), {"type": tool["type"]}, PLAIN))
    with pytest.raises(RequestRefused) as refused:
        refuse_rejected(forced.decisions)
    assert refused.value.param == "tool_choice"


@pytest.mark.parametrize("kind", ["computer", "computer_use_preview"])
def test_a_computer_is_a_function_for_models_that_see(kind: str) -> None:
    seeing = msgspec.structs.replace(PLAIN, messages=MessageRules(input=frozenset({"image"})))
    (plan,) = survey_tools([{"type": kind}], (), None, seeing).offered
    assert (plan.decision.action, plan.identity and plan.identity.provider_type) == ("degraded", "function")
    (blind,) = survey_tools([{"type": kind}], (), None, PLAIN).declared
    assert (blind.decision.action, blind.identity) == ("ignored", None)
    assert "takes no images" in blind.decision.reason


def test_the_choice_none_sends_nothing() -> None:
    survey = survey_tools([LOOK], (), "none", PLAIN)
    assert (len(survey.offered), survey.sends) == (1, False)


@pytest.mark.parametrize("choice", ["none", {"type": "none"}], ids=["word", "object"])
def test_words_and_objects_say_the_same(choice: Any) -> None:
    assert survey_tools([LOOK], (), choice, PLAIN).choice.mode == "none"


ENTRY = {"type": "function", "name": "look"}


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        pytest.param(None, None, id="unset"),
        pytest.param("auto", None, id="auto"),
        pytest.param("required", "required", id="required"),
        pytest.param({"type": "required"}, "required", id="required as an object"),
        pytest.param(ENTRY, "function", id="named"),
        pytest.param({"type": "function", "function": {"name": "look"}}, "function", id="named as in chat"),
        pytest.param({"type": "custom", "name": "exec"}, "function", id="what stands for it"),
        pytest.param({"type": "web_search_preview"}, "web_search", id="a hosted one"),
        pytest.param({"type": "function", "name": "ghost"}, None, id="nobody"),
        pytest.param({"type": "image_generation"}, None, id="an ignored one"),
        pytest.param({"type": "allowed_tools", "mode": "required", "tools": [ENTRY]}, "required", id="allowed, flat"),
        pytest.param(
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [ENTRY]}},
            "required",
            id="allowed, nested",
        ),
        pytest.param({"type": "allowed_tools", "tools": [ENTRY]}, None, id="allowed, free"),
        pytest.param("sometimes", None, id="nonsense"),
    ],
)
def test_what_is_forced(choice: Any, forced: str | None) -> None:
    tools = [LOOK, {"type": "custom", "name": "exec"}, {"type": "web_search"}, PAINT]
    assert survey_tools(tools, (), choice, PLAIN).forced == forced


def test_nothing_is_forced_where_no_tool_is_left() -> None:
    assert survey_tools([PAINT], (), "required", PLAIN).forced is None


def test_stored_items_are_told_apart_from_the_clients_own() -> None:
    carrier = {"type": "additional_tools", "tools": [LOOK]}
    other = {"type": "additional_tools", "tools": [{**LOOK, "name": "listen"}]}
    survey = survey_tools(None, [carrier, other], None, PLAIN, stored=1)
    assert [plan.source.path for plan in survey.declared] == ["history[0].tools[0]", "input[0].tools[0]"]


# -- the plan --

CAPABILITIES = ProviderCapabilities(
    tool_choice=ToolChoiceSupport(supported=frozenset({"auto", "none", "required", "function"}))
)
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}},
    {"type": "custom", "name": "exec"},
    {"type": "image_generation"},
]
ITEMS: list[dict[str, Any]] = [
    {
        "type": "additional_tools",
        "tools": [{"type": "namespace", "name": "clock", "tools": [{"type": "function", "name": "sleep"}]}],
    }
]


def sent(plan: ToolPlan) -> list[str]:
    return [d.identity.provider_name for d in plan.declarations if d.identity]


def test_one_decision_per_tool_one_for_the_list_one_for_the_choice() -> None:
    plan = plan_tools(survey_tools(TOOLS, ITEMS, "auto", CAPABILITIES))
    assert [(decision.path, decision.action) for decision in plan.decisions] == [
        ("tools[0]", "supported"),
        ("tools[1]", "degraded"),
        ("tools[2]", "ignored"),
        ("input[0].tools[0].tools[0]", "supported"),
        ("tools", "supported"),
        ("tool_choice", "supported"),
    ]
    summary = next(decision for decision in plan.decisions if decision.path == "tools")
    assert summary.reason == "3 sent, 1 degraded, 1 ignored"
    assert sent(plan) == ["look", "exec", "clock__sleep"]
    assert plan.choice.keep is None


def test_without_tools_and_choice_there_is_nothing_to_decide() -> None:
    plan = plan_tools(survey_tools(None, [], None, CAPABILITIES))
    assert plan.decisions == ()
    assert plan.declarations == ()


def test_an_empty_list_that_was_sent_gets_its_decision() -> None:
    assert [decision.path for decision in plan_tools(survey_tools([], [], None, CAPABILITIES)).decisions] == ["tools"]


def test_none_sends_nothing_but_keeps_the_names_for_the_history() -> None:
    plan = plan_tools(survey_tools(TOOLS, ITEMS, "none", CAPABILITIES))
    assert plan.declarations == ()
    assert render_provider_tool_choice(plan.choice) is None
    assert plan.identities.by_request("sleep", "clock") is not None
    assert plan.choice.keep == frozenset()


def test_allowed_tools_are_a_hard_limit() -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "exec"}]}
    plan = plan_tools(survey_tools(TOOLS, ITEMS, choice, CAPABILITIES))
    assert sent(plan) == ["exec"]
    assert plan.choice.keep == frozenset({"exec"})
    assert len(plan.identities) == 3


def test_a_choice_that_can_only_be_said_in_words_narrows_and_instructs() -> None:
    cannot_force = ProviderCapabilities()
    plan = plan_tools(
        survey_tools(TOOLS, ITEMS, {"type": "function", "name": "sleep", "namespace": "clock"}, cannot_force)
    )
    assert sent(plan) == ["clock__sleep"]
    assert "clock__sleep" in plan.choice.instruction


def test_thinking_restricts_the_choice() -> None:
    support = ToolChoiceSupport(supported=frozenset({"auto", "required"}), while_thinking=frozenset({"auto"}))
    capabilities = ProviderCapabilities(tool_choice=support)
    assert plan_tools(survey_tools(TOOLS, (), "required", capabilities)).choice.mode == "required"
    assert plan_tools(survey_tools(TOOLS, (), "required", capabilities), thinking=True).choice.mode == "auto"


def test_a_rejected_choice_stops_the_request() -> None:
    plan = plan_tools(survey_tools(TOOLS, (), {"type": "function", "name": "ghost"}, CAPABILITIES))
    with pytest.raises(RequestRefused, match="ghost") as refused:
        refuse_rejected(plan.decisions)
    assert refused.value.code == BRIDGE_REQUEST_UNSUPPORTED_PARAMETER
    assert refused.value.param == "tool_choice"


def many(count: int) -> list[dict[str, Any]]:
    return [{"type": "function", "name": f"f{index}"} for index in range(count)]


def test_too_many_tools_are_refused() -> None:
    plan_tools(survey_tools(many(128), (), None, CAPABILITIES))
    with pytest.raises(RequestRefused, match="129 tools") as refused:
        plan_tools(survey_tools(many(129), (), None, CAPABILITIES))
    assert refused.value.code == BRIDGE_REQUEST_UNSUPPORTED_PARAMETER
    assert refused.value.param == "tools"


@pytest.mark.parametrize("choice", [None, "auto", "required", {"type": "auto"}])
def test_of_plain_functions_too_many_are_refused_before_any_is_looked_into(choice: Any) -> None:
    class Unread(dict[str, Any]):
        """A schema that nobody may look into."""

        def __iter__(self) -> Any:
            raise AssertionError("it was read")

        items = keys = values = __iter__

    tools = [{**tool, "parameters": Unread(type="object")} for tool in many(500)]
    with pytest.raises(RequestRefused, match="500 tools for a provider that takes 128"):
        survey_tools(tools, (), choice, CAPABILITIES)


@pytest.mark.parametrize(
    "tools",
    [
        [*many(128), *many(128)],  # each twice
        [*many(127), {"type": "function", "name": "late", "defer_loading": True}, {"type": "tool_search"}],
        [*many(127), {"type": "namespace", "name": "n", "tools": []}, {"type": "web_search"}],
    ],
)
def test_where_it_is_not_certain_the_plan_counts_what_is_sent(tools: list[dict[str, Any]]) -> None:
    assert len(sent(plan_tools(survey_tools(tools, (), None, CAPABILITIES)))) <= 128


KINDS: list[dict[str, Any]] = [
    *({"type": "function", "name": name} for name in "abc"),
    {"type": "function", "name": "a", "description": "another"},
    {"type": "function", "name": "late", "defer_loading": True},
    {"type": "tool_search"},
    {"type": "custom", "name": "c"},
    {"type": "web_search"},
    {"type": "image_generation"},
    {"type": "local_shell"},
    {"type": "computer_use_preview"},
    {"type": "mcp", "server_label": "wiki", "server_url": "https://wiki.example"},
    {"type": "namespace", "name": "n", "tools": []},
    {"type": "namespace", "name": "n", "tools": [LOOK, {"type": "custom", "name": "d"}]},
]
WAYS: list[Any] = [None, "auto", "required", "none", "odd", LOOK, {"type": "allowed_tools", "tools": [LOOK]}]


@given(
    tools=st.lists(st.sampled_from(KINDS), max_size=8),
    brought=st.lists(st.sampled_from(KINDS), max_size=3),
    choice=st.sampled_from(WAYS),
    most=st.integers(0, 6),
    sees=st.booleans(),
)
def test_what_is_refused_early_is_what_would_be_refused_once_all_is_planned(
    tools: list[dict[str, Any]], brought: list[dict[str, Any]], choice: Any, most: int, sees: bool
) -> None:
    degraded = {"custom": "function", "local_shell": "function", "tool_search": "function"}
    support = ToolSupport(native=frozenset({"function", "web_search"}), degraded=degraded, max=most)
    rules = MessageRules(input=frozenset({"image"} if sees else ()))
    bounded = ProviderCapabilities(tools=support, messages=rules)
    free = ProviderCapabilities(tools=msgspec.structs.replace(support, max=None), messages=rules)
    items = [{"type": "additional_tools", "tools": brought}] if brought else []

    def late() -> ToolPlan:
        return plan_tools(msgspec.structs.replace(survey_tools(tools, items, choice, free), most=most))

    def early() -> ToolPlan:
        return plan_tools(survey_tools(tools, items, choice, bounded))

    assert _outcome(early) == _outcome(late)


def _outcome(plan: Callable[[], ToolPlan]) -> str:
    try:
        return f"sent {sent(plan())}"
    except RequestRefused as refused:
        return f"refused {refused.message}"


def test_only_tools_that_are_sent_count_towards_the_limit() -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f1"}]}
    assert sent(plan_tools(survey_tools(many(200), (), choice, CAPABILITIES))) == ["f1"]
    assert (
        sent(plan_tools(survey_tools(many(200), (), None, ProviderCapabilities(tools=ToolSupport(max=None)))))[199]
        == "f199"
    )


def test_two_tools_can_never_share_a_provider_name() -> None:
    first = ToolIdentity("a.b", "function", "a_b", "function")
    ToolIdentityMap((first, first))
    with pytest.raises(RequestRefused, match="a_b") as refused:
        ToolIdentityMap((first, ToolIdentity("a/b", "function", "a_b", "function")))
    assert refused.value.code == BRIDGE_REQUEST_UNSUPPORTED_PARAMETER


def test_the_identity_map_has_all_four_fields_in_both_directions() -> None:
    plan = plan_tools(
        survey_tools([{"type": "local_shell"}, {"type": "function", "name": "a.b"}], (), None, CAPABILITIES)
    )
    shell, named = plan.identities
    assert (shell.requested_name, shell.provider_name, shell.requested_type, shell.provider_type) == (
        "local_shell",
        "local_shell",
        "local_shell",
        "function",
    )
    assert plan.identities.by_provider_name("a_b") is named
    assert plan.identities.by_request("a.b") is named


def test_planning_is_deterministic_and_changes_nothing() -> None:
    tools, items = copy.deepcopy(TOOLS), copy.deepcopy(ITEMS)
    first, second = (plan_tools(survey_tools(tools, items, "auto", CAPABILITIES)) for _ in range(2))
    assert (tools, items) == (TOOLS, ITEMS)
    assert first.decisions == second.decisions
    rendered = [msgspec.json.encode(render_provider_tool_declarations(plan.declarations)) for plan in (first, second)]
    assert rendered[0] == rendered[1]


def test_planning_again_over_what_was_rendered_keeps_every_name() -> None:
    plan = plan_tools(survey_tools(TOOLS, ITEMS, None, CAPABILITIES))
    rendered = [shape["function"] for shape in render_provider_tool_declarations(plan.declarations)]
    again = plan_tools(survey_tools([{"type": "function", **shape} for shape in rendered], (), None, CAPABILITIES))
    assert sent(again) == sent(plan)
