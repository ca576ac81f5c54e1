"""A plan answers for its parts; what surrounds the bridge decides about fields that only a gateway can honour."""

from __future__ import annotations

import pytest

from isthmus.bridge.bounds import DEFAULT_BOUNDS
from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.clients import ANY_CLIENT, CODEX
from isthmus.bridge.types.plan import LIBRARY, NO_CONTRACT, Host, Plan, Target
from isthmus.errors import RequestRefused
from isthmus.testing.fold import plan_for


def planned(**fields: object) -> Plan:
    request = parse_request({"model": "m", "input": "hi", **fields})
    return plan_request(request, Target("p", "m", ProviderCapabilities(provider="p", model="m")))


def test_the_preamble_holds_the_words_for_choice_and_format() -> None:
    tool = {"type": "function", "name": "f"}
    both = planned(tools=[tool], tool_choice="required", text={"format": {"type": "json_object"}})
    assert both.tools.choice.instruction
    assert both.contract.instruction
    assert both.preamble == f"{both.tools.choice.instruction}\n\n{both.contract.instruction}"
    assert planned().preamble == ""


def test_decisions_and_diagnostics_are_those_of_its_compatibility() -> None:
    plan = planned(seed=7)
    assert plan.decisions is plan.compatibility.decisions
    assert [told.path for told in plan.diagnostics] == ["seed"]


def test_without_a_word_nobody_is_treated_otherwise() -> None:
    assert (ANY_CLIENT.leaves_cut_items_open, ANY_CLIENT.final_code) == (False, "")
    assert CODEX.leaves_cut_items_open
    assert (planned().client, planned().contract.mode) == (ANY_CLIENT, NO_CONTRACT.mode)


BODY = {"metadata": {"a": "b"}}


def test_a_bare_library_call_honours_nothing_and_says_so() -> None:
    assert (LIBRARY.honours, LIBRARY.strict, LIBRARY.bounds) == (frozenset(), False, DEFAULT_BOUNDS)
    said = [diagnostic for diagnostic in plan_for(BODY, host=LIBRARY).diagnostics if diagnostic.path == "metadata"]
    assert [diagnostic.action for diagnostic in said] == ["ignored"]


def test_what_the_host_honours_needs_no_word_and_is_not_sent() -> None:
    plan = plan_for(BODY, host=Host(honours=frozenset({"metadata"})))
    assert not [diagnostic for diagnostic in plan.diagnostics if diagnostic.path == "metadata"]
    assert "metadata" not in plan.body


def test_a_strict_host_refuses_what_it_would_ignore() -> None:
    with pytest.raises(RequestRefused, match="metadata"):
        plan_for(BODY, host=Host(strict=True))


def test_the_repair_budget_is_the_hosts() -> None:
    assert plan_for(host=Host(repair_budget=3)).repair_budget == 3
