"""Which past reasoning goes back, asked of whole histories."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.history.normalise import normalise_history
from isthmus.bridge.history.replay import remember, replays_reasoning, thinking_blocks, why_thinking_stops
from isthmus.bridge.types.history import MODEL, THINKING, Acted, Thought

KEY = b"k" * 32
THOUGHT = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
DETAILS = seal(Sealed("p", "", {"reasoning_details": [{"data": "x"}]}), KEY)
SEALED = {"type": "reasoning", "summary": [], "encrypted_content": DETAILS}
SAID = {"type": "message", "role": "assistant", "content": "Yes."}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
USER = {"type": "message", "role": "user", "content": "And?"}


@pytest.mark.parametrize(
    ("items", "rules", "replayed"),
    [
        pytest.param([THOUGHT, SAID], {"replay": "always"}, True, id="always"),
        pytest.param([THOUGHT, SAID], {"replay": "tool_turns"}, False, id="no tool turn"),
        pytest.param([THOUGHT, CALL], {"replay": "tool_turns"}, True, id="a tool turn"),
        pytest.param([THOUGHT, CALL], {}, False, id="never"),
        pytest.param([THOUGHT, USER, SAID], {"replay": "always"}, False, id="unfinished"),
        pytest.param([SEALED, SAID], {"replay": "always"}, False, id="nothing in the clear"),
        pytest.param([SEALED, SAID], {"replay": "always", "replay_details": True}, True, id="details"),
    ],
)
def test_only_what_really_goes_back_counts(items: list[Any], rules: dict[str, Any], replayed: bool) -> None:
    history = normalise_history(items, envelope_key=KEY, provider="p")
    assert replays_reasoning(history.turns, MessageRules(**rules)) is replayed


# `reasoning.context`


def _asked(context: str | None, replay: Any) -> tuple[list[list[str]], str]:
    items: list[dict[str, Any]] = []
    for number in ("1", "2"):
        items.append({"type": "message", "role": "user", "content": f"q{number}"})
        items.append({"type": "reasoning", "content": [{"type": "reasoning_text", "text": f"t{number}"}]})
        items.append({"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"})
        items.append({"type": "function_call_output", "call_id": f"c{number}", "output": "x"})
    past, rules = remember(normalise_history(items), MessageRules(replay=replay), context)
    return [[one.text for one in turn.thoughts] for turn in past.turns if isinstance(turn, Acted)], rules.replay


@pytest.mark.parametrize(
    ("context", "replay", "thoughts", "used"),
    [
        (None, "tool_turns", [["t1"], ["t2"]], "tool_turns"),
        ("auto", "tool_turns", [["t1"], ["t2"]], "tool_turns"),
        ("current_turn", "tool_turns", [[], ["t2"]], "tool_turns"),
        ("all_turns", "tool_turns", [["t1"], ["t2"]], "always"),
        ("all_turns", "never", [["t1"], ["t2"]], "never"),
    ],
)
def test_the_client_says_which_earlier_reasoning_goes_back(
    context: str | None, replay: str, thoughts: list[list[str]], used: str
) -> None:
    assert _asked(context, replay) == (thoughts, used)


def test_a_turn_that_only_thought_is_forgotten_whole() -> None:
    items = [{"type": "reasoning", "content": [{"type": "reasoning_text", "text": "t"}]}]
    said = {"type": "message", "role": "user", "content": "q"}
    past, _ = remember(normalise_history([said, *items, said]), MessageRules(replay="always"), "current_turn")
    assert [type(turn).__name__ for turn in past.turns] == ["Said", "Said"]
    assert ("input[1]", "supported") in [(d.path, d.action) for d in past.decisions]


BLOCK = {"type": "thinking", "thinking": "", "signature": "s"}
UNSIGNED = {"type": "thinking", "thinking": "hm", "signature": ""}
HIDDEN = {"type": "redacted_thinking", "data": "x"}
BLOCKS = MessageRules(replay_extras=THINKING, signed=True, needs_thoughts=True)


@pytest.mark.parametrize(
    ("extras", "rules", "blocks"),
    [
        ({THINKING: [BLOCK, UNSIGNED, HIDDEN], MODEL: "m"}, BLOCKS, [BLOCK, HIDDEN]),
        ({THINKING: [UNSIGNED], MODEL: "m"}, MessageRules(replay_extras=THINKING), [UNSIGNED]),
        ({THINKING: [BLOCK], MODEL: "other"}, BLOCKS, []),
        ({THINKING: [BLOCK]}, BLOCKS, [BLOCK]),
        ({THINKING: "odd"}, BLOCKS, []),
        ({THINKING: [BLOCK], MODEL: "m"}, MessageRules(), []),
    ],
)
def test_a_model_takes_back_its_own_thinking_blocks(extras: Any, rules: MessageRules, blocks: list[Any]) -> None:
    assert thinking_blocks(Thought("input[0]", extras=extras), rules, "m") == blocks


def test_thinking_stops_where_the_last_calls_lost_theirs() -> None:
    sealed = {
        "type": "reasoning",
        "summary": [],
        "encrypted_content": seal(Sealed("p", "", {THINKING: [BLOCK], MODEL: "m"}), KEY),
    }
    for items, stops in (
        ([USER, CALL], True),
        ([USER, sealed, CALL], False),
        ([USER, SAID, sealed, CALL], True),
        ([USER, CALL, USER, SAID], False),
        ([USER], False),
    ):
        turns = normalise_history(items, envelope_key=KEY, provider="p").turns
        assert bool(why_thinking_stops(turns, BLOCKS, "m")) is stops, items
