"""Past reasoning → what an assistant message carries of it, by the model's replay rule.

In: an assistant turn and the rules. Out: message fields, or a chunk that opens the content. A vendor that
insists on reasoning in tool turns gets its placeholder where the reasoning is gone; one that wants none
gets none, and that is no loss: such models expect to think afresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.types.history import Acted, Thought
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules

_DETAILS: Final = "reasoning_details"
_EMPTY: Final = "it holds no reasoning to replay"


class Replay(NamedTuple):
    fields: JsonObject
    chunk: JsonObject | None = None
    done: bool = False
    """Whether real reasoning went back."""


def replay_reasoning(
    turn: Acted, rules: MessageRules, *, thinking: bool, decisions: list[CompatibilityDecision]
) -> Replay:
    fields = _message_extras(turn.thoughts, rules.replay_extras)
    if rules.replay == "never" or (rules.replay == "tool_turns" and not turn.calls):
        _leave_out(turn.thoughts, "the model does not want past reasoning back here", decisions)
        return Replay(fields)
    if rules.replay_details and (details := _details(turn.thoughts, decisions)):
        fields[_DETAILS] = details
        return Replay(fields, done=True)
    text = _text(turn.thoughts, decisions)
    done = bool(text)
    if not done and turn.calls and thinking and rules.replay_placeholder is not None:
        text = rules.replay_placeholder
        reason = "the reasoning of this tool turn is gone; the provider insists on the field and gets a placeholder"
        decisions.append(CompatibilityDecision(turn.path, "degraded", reason, code="bridge.history.repaired"))
    elif not done:
        return Replay(fields)
    if rules.replay_chunks:
        chunk = {"type": "thinking", "thinking": [{"type": "text", "text": text}], "closed": True}
        return Replay(fields, chunk, done)
    fields[rules.replay_field] = text
    return Replay(fields, done=done)


def leave_out_unfinished(turn: Acted, rules: MessageRules, decisions: list[CompatibilityDecision]) -> None:
    """A turn that broke off while thinking said and did nothing: there is no message to carry its reasoning."""
    reason = "the model neither said nor called anything after this reasoning"
    for thought in turn.thoughts:
        if thought.text and rules.replay != "never":
            decisions.append(CompatibilityDecision(thought.path, "ignored", reason, code="bridge.item.ignored"))
        else:
            decisions.append(CompatibilityDecision(thought.path, "supported", reason))


def _leave_out(
    thoughts: tuple[Thought, ...] | list[Thought], reason: str, decisions: list[CompatibilityDecision]
) -> None:
    decisions.extend(CompatibilityDecision(thought.path, "supported", reason) for thought in thoughts)


def _text(thoughts: tuple[Thought, ...], decisions: list[CompatibilityDecision]) -> str:
    _leave_out([thought for thought in thoughts if not thought.text], _EMPTY, decisions)
    reason = "only the summary of this reasoning came back; it was sent in its place"
    decisions.extend(
        CompatibilityDecision(thought.path, "degraded", reason, code="bridge.item.degraded")
        for thought in thoughts
        if thought.text and thought.summarised
    )
    return "\n".join(thought.text for thought in thoughts if thought.text)


def _details(thoughts: tuple[Thought, ...], decisions: list[CompatibilityDecision]) -> list[object]:
    """The vendor's own array, whole and unchanged; several thoughts of one turn follow each other."""
    whole: list[object] = []
    without: list[Thought] = []
    for thought in thoughts:
        details = thought.extras.get(_DETAILS)
        if isinstance(details, list) and details:
            whole.extend(details)
        else:
            without.append(thought)
    if whole:
        reason = f"the provider takes its own `{_DETAILS}` of this turn back; plain reasoning cannot stand beside it"
        decisions.extend(
            CompatibilityDecision(thought.path, "ignored", reason, code="bridge.item.ignored")
            for thought in without
            if thought.text
        )
        _leave_out([thought for thought in without if not thought.text], _EMPTY, decisions)
    return whole


def _message_extras(thoughts: tuple[Thought, ...], field: str) -> JsonObject:
    found: JsonObject = {}
    if field:
        for thought in thoughts:
            if field in thought.extras:
                found[field] = thought.extras[field]
    return found
