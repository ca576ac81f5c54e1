"""Past reasoning → what an assistant message carries of it, by the model's replay rule.

In: an assistant turn, its message and the rules. Out: more fields of the message, or a chunk that opens its content.
A vendor that insists on reasoning in tool turns gets its placeholder where the reasoning is gone; one that wants none
gets none, and that is no loss: such models expect to think afresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.dialects.chat.order import repaired, text_part
from isthmus.bridge.history.replay import DETAILS, EMPTY, UNWANTED, leave_out, tell_summarised, wants_reasoning
from isthmus.bridge.types.history import Acted, Thought
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules


def replay_reasoning(
    turn: Acted, message: JsonObject, rules: MessageRules, *, thinking: bool, decisions: list[CompatibilityDecision]
) -> None:
    """`thinking`: whether the model will think in this request; only then is a placeholder asked for."""
    thoughts = turn.thoughts
    placeholder = rules.replay_placeholder if thinking and turn.calls else None
    if not thoughts and placeholder is None:
        return
    if rules.replay_extras:
        for thought in thoughts:
            if rules.replay_extras in thought.extras:
                message[rules.replay_extras] = thought.extras[rules.replay_extras]
    if not wants_reasoning(turn, rules):
        leave_out(thoughts, UNWANTED, decisions)
    elif not (rules.replay_details and _replay_details(thoughts, message, decisions)):
        leave_out([thought for thought in thoughts if not thought.text], EMPTY, decisions)
        tell_summarised(thoughts, decisions)
        text = "\n".join(thought.text for thought in thoughts if thought.text)
        if not text and placeholder is not None:
            text = placeholder
            reason = "the reasoning of this tool turn is gone; the provider insists on the field and gets a placeholder"
            decisions.append(repaired(turn.path, reason))
        elif not text:
            return
        if rules.replay_chunks:
            chunk = {"type": "thinking", "thinking": [text_part(text)], "closed": True}
            message["content"] = [chunk, text_part(message["content"])] if message.get("content") else [chunk]
        else:
            message[rules.replay_field] = text


def _replay_details(thoughts: tuple[Thought, ...], message: JsonObject, decisions: list[CompatibilityDecision]) -> bool:
    """The vendor's own array, whole and unchanged; several thoughts of one turn follow each other."""
    whole: list[object] = []
    without: list[Thought] = []
    for thought in thoughts:
        details = thought.extras.get(DETAILS)
        if isinstance(details, list) and details:
            whole.extend(details)
        else:
            without.append(thought)
    if whole:
        message[DETAILS] = whole
        reason = f"the provider takes its own `{DETAILS}` of this turn back; plain reasoning cannot stand beside it"
        decisions.extend(
            CompatibilityDecision(thought.path, "ignored", reason, code="bridge.item.ignored")
            for thought in without
            if thought.text
        )
        leave_out([thought for thought in without if not thought.text], EMPTY, decisions)
    return bool(whole)
