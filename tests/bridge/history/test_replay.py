"""Which past reasoning goes back, asked of whole histories."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.history.normalise import normalise_history
from isthmus.bridge.history.replay import replays_reasoning

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
