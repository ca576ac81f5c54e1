"""Past reasoning → what an assistant message carries of it, by the model's replay rule.

In: an assistant turn and the rules. Out: message fields, or a chunk that opens the content. A vendor that
insists on reasoning in tool turns gets its placeholder where the reasoning is gone; one that wants none
gets none, and that is no loss: such models expect to think afresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.history.replay import DETAILS, EMPTY, UNWANTED, leave_out, tell_summarised, wants_reasoning
from isthmus.bridge.types.history import Acted, Thought
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules


class Replay(NamedTuple):
    fields: JsonObject
    chunk: JsonObject | None = None


_NOTHING: Final = Replay({})


def replay_reasoning(
    turn: Acted, rules: MessageRules, *, thinking: bool, decisions: list[CompatibilityDecision]
) -> Replay:
    thoughts = turn.thoughts
    if not thoughts and (not turn.calls or not thinking or rules.replay_placeholder is None):
        return _NOTHING
    fields = _message_extras(thoughts, rules.replay_extras)
    if not wants_reasoning(turn, rules):
        leave_out(thoughts, UNWANTED, decisions)
        return Replay(fields)
    if rules.replay_details and (details := _details(thoughts, decisions)):
        fields[DETAILS] = details
        return Replay(fields)
    text = _text(thoughts, decisions)
    if not text and turn.results and thinking and rules.replay_placeholder is not None:
        text = rules.replay_placeholder
        reason = "the reasoning of this tool turn is gone; the provider insists on the field and gets a placeholder"
        decisions.append(CompatibilityDecision(turn.path, "degraded", reason, code="bridge.history.repaired"))
    elif not text:
        return Replay(fields)
    if rules.replay_chunks:
        chunk = {"type": "thinking", "thinking": [{"type": "text", "text": text}], "closed": True}
        return Replay(fields, chunk)
    fields[rules.replay_field] = text
    return Replay(fields)


def _text(thoughts: tuple[Thought, ...], decisions: list[CompatibilityDecision]) -> str:
    leave_out([thought for thought in thoughts if not thought.text], EMPTY, decisions)
    tell_summarised(thoughts, decisions)
    return "\n".join(thought.text for thought in thoughts if thought.text)


def _details(thoughts: tuple[Thought, ...], decisions: list[CompatibilityDecision]) -> list[object]:
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
        reason = f"the provider takes its own `{DETAILS}` of this turn back; plain reasoning cannot stand beside it"
        decisions.extend(
            CompatibilityDecision(thought.path, "ignored", reason, code="bridge.item.ignored")
            for thought in without
            if thought.text
        )
        leave_out([thought for thought in without if not thought.text], EMPTY, decisions)
    return whole


def _message_extras(thoughts: tuple[Thought, ...], field: str) -> JsonObject:
    found: JsonObject = {}
    if field:
        for thought in thoughts:
            if field in thought.extras:
                found[field] = thought.extras[field]
    return found
