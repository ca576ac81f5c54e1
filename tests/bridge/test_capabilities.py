"""What a provider file may say: cautious without a word, and nothing that nobody reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.bridge.capabilities import ProviderCapabilities


def read(facts: dict[str, Any]) -> ProviderCapabilities:
    return msgspec.convert(facts, ProviderCapabilities)


def test_of_an_unknown_model_little_is_believed() -> None:
    facts = read({})
    assert facts.tools.native == {"function"}
    assert facts.tool_choice.supported == {"auto", "none"}
    assert facts.response_formats.supported == {"text"}
    assert (facts.reasoning.effort, facts.messages.replay, facts.messages.input) == ("none", "never", frozenset())
    assert facts.parameters == {}


def test_tools_without_a_counterpart_become_functions_in_every_file() -> None:
    assert read({"tools": {"max": 4}}).tools.degraded["apply_patch"] == "function"
    assert read({"tools": {"degraded": {}}}).tools.degraded == {}


@pytest.mark.parametrize(
    "facts",
    [
        {"colour": "red"},
        {"parameters": {"temperature": {"lowest": 0}}},
        {"messages": {"input": ["smell"]}},
        {"reasoning": {"effort": "some"}},
    ],
)
def test_a_fact_that_nobody_reads_is_an_error(facts: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(facts)
