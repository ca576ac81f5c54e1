"""Past reasoning goes back exactly as far as the model's rule says."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.dialects.chat.messages import build_messages
from isthmus.bridge.dialects.chat.order import MessageOrder
from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.history.normalise import normalise_history
from isthmus.bridge.types.tools import ToolIdentityMap

KEY = b"k" * 32


def thought(text: str = "hmm", sealed: Sealed | None = None) -> dict[str, Any]:
    item: dict[str, Any] = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}
    if sealed is not None:
        item["encrypted_content"] = seal(sealed, KEY)
    return item


SAYS = {"type": "message", "role": "assistant", "content": "hi"}
CALL = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
CALL_2 = {"type": "function_call", "call_id": "2", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "1", "output": "ok"}
OUTPUT_2 = {"type": "function_call_output", "call_id": "2", "output": "ok"}
USER = {"type": "message", "role": "user", "content": "u"}


def build(items: list[dict[str, Any]], thinking: bool = False, **rules: Any) -> MessageOrder:
    history = normalise_history(items, envelope_key=KEY, provider="p")
    return build_messages(history, rules=MessageRules(**rules), identities=ToolIdentityMap(), thinking=thinking)


@pytest.mark.parametrize(
    ("rule", "text_turn", "tool_turn"),
    [("never", None, None), ("tool_turns", None, "hmm"), ("always", "hmm", "hmm")],
)
def test_the_rule_names_the_turns(rule: str, text_turn: str | None, tool_turn: str | None) -> None:
    said, made = build([thought(), SAYS], replay=rule), build([thought(), CALL, OUTPUT], replay=rule)
    assert said.messages[0].get("reasoning_content") == text_turn
    assert made.messages[0].get("reasoning_content") == tool_turn


def test_reasoning_that_the_model_does_not_want_is_no_loss() -> None:
    (decision,) = build([thought(), SAYS]).decisions
    assert (decision.path, decision.action) == ("input[0]", "supported")


def test_the_field_has_the_providers_name_and_several_thoughts_keep_their_order() -> None:
    message = build([thought("a"), thought("b"), SAYS], replay="always", replay_field="reasoning").messages[0]
    assert message == {"role": "assistant", "content": "hi", "reasoning": "a\nb"}


def test_a_summary_stands_in_for_lost_reasoning_and_says_so() -> None:
    item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "short"}]}
    plan = build([item, SAYS], replay="always")
    assert plan.messages[0]["reasoning_content"] == "short"
    assert [(d.path, d.action, d.code) for d in plan.decisions] == [("input[0]", "degraded", "bridge.item.degraded")]


@pytest.mark.parametrize(
    ("items", "thinking", "placeholder", "expected"),
    [
        ([CALL, OUTPUT], True, " ", " "),
        ([CALL, OUTPUT], True, "", ""),
        ([CALL, OUTPUT], False, " ", None),
        ([CALL, OUTPUT], True, None, None),
        ([SAYS], True, " ", None),
        ([thought(), CALL, OUTPUT], True, " ", "hmm"),
    ],
    ids=["space", "empty", "not thinking", "none known", "no tool turn", "reasoning is there"],
)
def test_the_placeholder_fills_tool_turns_whose_reasoning_is_gone(
    items: list[dict[str, Any]], thinking: bool, placeholder: str | None, expected: str | None
) -> None:
    plan = build(items, thinking, replay="tool_turns", replay_placeholder=placeholder)
    assert plan.messages[0].get("reasoning_content") == expected
    told = [d.code for d in plan.decisions if d.action == "degraded"]
    assert told == (["bridge.history.repaired"] if expected == placeholder and placeholder is not None else [])


def test_details_go_back_whole_and_alone() -> None:
    details = [{"type": "reasoning.encrypted", "data": "x"}, {"type": "reasoning.text", "text": "hmm"}]
    item = thought(sealed=Sealed("p", "hmm", {"reasoning_details": details}))
    plan = build([item, SAYS], replay="always", replay_details=True)
    assert plan.messages[0] == {"role": "assistant", "content": "hi", "reasoning_details": details}


def test_plain_reasoning_beside_details_is_left_out_and_told() -> None:
    signed = thought(sealed=Sealed("p", "hmm", {"reasoning_details": [{"text": "d"}]}))
    plan = build([signed, thought("plain"), SAYS], replay="always", replay_details=True)
    assert plan.messages[0] == {"role": "assistant", "content": "hi", "reasoning_details": [{"text": "d"}]}
    assert [(d.path, d.action, d.code) for d in plan.decisions] == [("input[1]", "ignored", "bridge.item.ignored")]


def test_without_details_the_text_goes_back() -> None:
    plan = build([thought(), SAYS], replay="always", replay_details=True, replay_field="reasoning")
    assert plan.messages[0] == {"role": "assistant", "content": "hi", "reasoning": "hmm"}


def test_chunks_open_the_content() -> None:
    chunk = {"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}], "closed": True}
    said = build([thought(), SAYS], replay="always", replay_chunks=True).messages[0]
    made = build([thought(), CALL, OUTPUT], replay="always", replay_chunks=True).messages[0]
    assert said["content"] == [chunk, {"type": "text", "text": "hi"}]
    assert made["content"] == [chunk]


SIGNED = Sealed("p", "", {}, {"1": {"google": {"thought_signature": "s"}}})
FALLBACK = {"google": {"thought_signature": "skip_thought_signature_validator"}}


def test_call_extras_go_back_to_their_call() -> None:
    plan = build([thought("", SIGNED), CALL, CALL_2, OUTPUT, OUTPUT_2], replay_extras="extra_content")
    first, second = plan.messages[0]["tool_calls"]
    assert first["extra_content"] == {"google": {"thought_signature": "s"}}
    assert "extra_content" not in second


def test_an_envelope_behind_the_calls_still_belongs_to_their_turn() -> None:
    plan = build([CALL, thought("", SIGNED), OUTPUT], replay_extras="extra_content")
    assert plan.messages[0]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}


def test_lost_call_extras_use_the_vendors_fallback_on_the_first_call() -> None:
    rules: dict[str, Any] = {"replay_extras": "extra_content", "replay_extras_fallback": FALLBACK}
    plan = build([CALL, CALL_2, OUTPUT, OUTPUT_2], **rules)
    first, second = plan.messages[0]["tool_calls"]
    assert (first["extra_content"], "extra_content" in second) == (FALLBACK, False)
    assert [(d.path, d.code) for d in plan.decisions] == [("input[0]", "bridge.history.repaired")]
    kept = build([thought("", SIGNED), CALL, OUTPUT], **rules)
    assert kept.messages[0]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}


def test_message_extras_go_back_under_their_field() -> None:
    item = thought(sealed=Sealed("p", "", {"extra_content": {"a": 1}}))
    assert build([item, SAYS], replay_extras="extra_content").messages[0]["extra_content"] == {"a": 1}


@pytest.mark.parametrize(("rule", "action"), [("never", "supported"), ("always", "ignored")])
def test_a_turn_that_broke_off_while_thinking_is_left_out(rule: str, action: str) -> None:
    plan = build([thought(), USER], replay=rule)
    assert plan.messages == [{"role": "user", "content": "u"}]
    assert [(d.path, d.action) for d in plan.decisions] == [("input[0]", action)]
