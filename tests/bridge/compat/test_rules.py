"""Fields that nobody knows: a slip gets the name that was meant, anything else does not."""

from __future__ import annotations

import pytest

from isthmus.bridge.compat.rules import without_rule


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("temprature", "temperature"),
        ("Temperature", "temperature"),
        ("max_output_token", "max_output_tokens"),
        ("previous_response", "previous_response_id"),
        ("reasoning.efort", "reasoning.effort"),
        ("text.verbocity", "text.verbosity"),
        ("max_completion_tokns", "max_completion_tokens"),
        ("stop_sequenses", "stop_sequences"),
    ],
)
def test_a_slip_gets_the_name_that_was_meant(path: str, meant: str) -> None:
    decision = without_rule(path, 1)
    assert (decision.action, decision.sends) == ("ignored", {})
    assert f"did you mean `{meant}`?" in decision.reason


@pytest.mark.parametrize("path", ["thinking_budget", "top_k", "x", "temperature", "reasoning.depth", "other.efort"])
def test_another_name_gets_no_guess(path: str) -> None:
    assert "did you mean" not in without_rule(path, 1).reason
