"""What surrounds the bridge decides what becomes of fields that only a gateway can honour."""

from __future__ import annotations

import pytest

from isthmus.bridge.bounds import DEFAULT_BOUNDS
from isthmus.bridge.host import LIBRARY, Host
from isthmus.errors import RequestRefused
from isthmus.testing.fold import plan_for

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
