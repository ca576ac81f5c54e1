"""The Messages endpoint of a provider that also speaks chat, as capabilities."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import (
    MessageRules,
    ParameterRule,
    ProviderCapabilities,
    ReasoningSupport,
    TokenLimits,
    ToolChoiceSupport,
    ToolSupport,
)
from isthmus.providers.messages import DEFAULT_OUTPUT, messages_capabilities
from isthmus.providers.schema import MessagesFacts

THINKS: dict[str, Any] = {
    "on": {"thinking": {"type": "enabled", "clear": False}},
    "off": {"thinking": {"type": "disabled", "clear": False}},
    "default_on": True,
}


def made(facts: MessagesFacts | None = None, **chat: Any) -> ProviderCapabilities:
    return messages_capabilities(ProviderCapabilities(provider="p", model="m", **chat), facts or MessagesFacts())


def test_only_what_the_endpoint_names_has_a_rule() -> None:
    chat = {"temperature": ParameterRule(low=0, high=2), "seed": ParameterRule()}
    assert set(made(parameters=chat).parameters) == {"max_output_tokens"}
    wide = MessagesFacts(
        parameters=frozenset({"temperature", "top_p", "stop_sequences", "metadata", "disable_parallel_tool_use"})
    )
    rules = made(wide, parameters=chat).parameters
    assert set(rules) == {
        *("max_output_tokens", "temperature", "top_p", "stop"),
        *("parallel_tool_calls", "user", "safety_identifier"),
    }
    assert (rules["temperature"].high, rules["top_p"].high, rules["stop"].to) == (2, 1, "stop_sequences")


@pytest.mark.parametrize(
    ("chat", "parameters", "effort", "to", "on"),
    [
        (
            ReasoningSupport(effort="boolean", **THINKS),
            {"thinking"},
            "boolean",
            None,
            {"thinking": {"type": "enabled"}},
        ),
        (
            ReasoningSupport(effort="native", scale=["low", "high"], **THINKS),
            {"thinking", "output_config"},
            "native",
            "output_config.effort",
            {"thinking": {"type": "enabled"}},
        ),
        (
            ReasoningSupport(effort="native", scale=["none", "low"], **THINKS),
            {"output_config"},
            "native",
            "output_config.effort",
            {},
        ),
        (ReasoningSupport(effort="native", scale=["low"], **THINKS), set(), "none", None, {}),
    ],
)
def test_thinking_is_switched_and_graded_where_the_endpoint_knows_how(
    chat: ReasoningSupport, parameters: set[str], effort: str, to: str | None, on: Any
) -> None:
    support = made(MessagesFacts(parameters=frozenset(parameters)), reasoning=chat).reasoning
    assert support.effort == effort
    assert support.on == on
    assert to is None or support.to == to
    assert "none" not in support.scale


@pytest.mark.parametrize(
    ("chat", "sent"),
    [
        (TokenLimits(output=9_000, send_default=True), None),
        (TokenLimits(output=9_000), 9_000),
        (TokenLimits(output=10**6), DEFAULT_OUTPUT),
        (TokenLimits(), DEFAULT_OUTPUT),
    ],
)
def test_there_is_always_a_limit_to_send(chat: TokenLimits, sent: int | None) -> None:
    limits = made(limits=chat).limits
    assert limits.output == chat.output
    assert limits.default == sent
    assert limits.send_default or limits.default


def test_tools_are_functions_and_only_known_choices_are_made() -> None:
    tools = ToolSupport(
        native=frozenset({"function", "web_search"}),
        degraded={"custom": "function", "web_search_preview": "web_search"},
    )
    choice = ToolChoiceSupport(supported=frozenset({"auto", "none", "required"}), while_thinking=frozenset({"auto"}))
    found = made(MessagesFacts(tool_choice=frozenset({"auto", "none", "required"})), tools=tools, tool_choice=choice)
    assert (found.tools.native, found.tools.degraded) == ({"function"}, {"custom": "function"})
    assert found.tool_choice.while_thinking == {"auto"}
    assert made(tool_choice=ToolChoiceSupport()).tool_choice.while_thinking is None


def test_blocks_go_back_and_other_media_do_not_go_at_all() -> None:
    rules = MessageRules(input=frozenset({"image", "video"}), replay="always", replay_placeholder=" ")
    found = made(messages=rules).messages
    assert found.input == {"image"}
    assert (found.replay, found.replay_extras, found.replay_placeholder) == ("never", "thinking_blocks", None)
    assert made(MessagesFacts(input=frozenset()), messages=rules).messages.input == frozenset()
