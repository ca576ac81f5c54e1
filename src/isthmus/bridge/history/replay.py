"""Which past reasoning goes back, by the model's replay rule; and what is said about the rest.

In: assistant turns and the model's message rules. Out: answers, and decisions. Each dialect spells reasoning its own
way, but all of them ask here, and so does the planner: only reasoning that really goes back keeps thinking on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from isthmus.bridge.diagnostics import CompatibilityDecision, decide_item
from isthmus.bridge.types.history import MODEL, THINKING, Acted, History, Kept, PastTurn, Said, Thought
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules

DETAILS: Final = "reasoning_details"
EMPTY: Final = "it holds no reasoning to replay"
UNWANTED: Final = "the model does not want past reasoning back here"


def remember(past: History, rules: MessageRules, context: str | None) -> tuple[History, MessageRules]:
    """The history and the rules as `reasoning.context` wants them; `auto` leaves both to the model's own rule."""
    if context == "all_turns" and rules.replay == "tool_turns":
        return past, replace(rules, replay="always")
    if context != "current_turn":
        return past, rules
    asked = [index for index, turn in enumerate(past.turns) if isinstance(turn, Said) and turn.role == "user"]
    begin = asked[-1] if asked else 0
    decisions = [*past.decisions]
    turns: list[PastTurn] = []
    for turn in past.turns[:begin]:
        if isinstance(turn, Acted) and turn.thoughts:
            reason = "`reasoning.context` is `current_turn`, and this is of an earlier one"
            leave_out(turn.thoughts, reason, decisions)
            said = tuple(step for step in turn.steps if not isinstance(step, Thought))
            turn = replace(turn, steps=said, thoughts=())
        if not isinstance(turn, Acted) or turn.steps:
            turns.append(turn)
    return replace(past, turns=(*turns, *past.turns[begin:]), decisions=tuple(decisions)), rules


def replays_reasoning(turns: Iterable[PastTurn], rules: MessageRules) -> bool:
    return rules.replay != "never" and any(
        thought.text or (rules.replay_details and thought.extras.get(DETAILS))
        for turn in turns
        if type(turn) is Acted and turn.thoughts and wants_reasoning(turn, rules) and not is_unfinished(turn)
        for thought in turn.thoughts
    )


def wants_reasoning(turn: Acted, rules: MessageRules) -> bool:
    return rules.replay == "always" or (rules.replay == "tool_turns" and bool(turn.results))


def thinking_blocks(thought: Thought, rules: MessageRules, model: str) -> list[JsonObject]:
    """The blocks of a thought that this model takes back: its own and, where it signs them, only signed ones. An empty
    text with a signature is whole: the text was left out, not lost."""
    given = thought.extras.get(rules.replay_extras) if rules.replay_extras == THINKING else None
    if not isinstance(given, list) or thought.extras.get(MODEL) not in (None, "", model):
        return []
    blocks = [block for block in given if isinstance(block, dict)]
    return [block for block in blocks if not rules.signed or block.get("signature") or block.get("data")]


def why_thinking_stops(turns: Sequence[PastTurn], rules: MessageRules, model: str) -> str:
    """Why the model may not think in this request; empty: it may. Anthropic's models with a budget insist that a turn
    whose calls were just answered begins with its thinking (claude-code#12894, #51985); where that is gone, no other
    can be made up."""
    last = next((turn for turn in reversed(turns) if isinstance(turn, Acted)), None)
    if last is None or not last.calls:
        return ""
    first = last.steps[0]
    if isinstance(first, Thought) and thinking_blocks(first, rules, model):
        return ""
    return "the thinking of the turn that made the last calls is gone, and the model insists on it while it thinks"


def is_unfinished(turn: Acted) -> bool:
    """Whether the turn broke off while thinking: it said and did nothing that could carry its reasoning."""
    return not turn.results and not turn.texts and not any(isinstance(step, Kept) for step in turn.steps)


def leave_out_unfinished(turn: Acted, rules: MessageRules, decisions: list[CompatibilityDecision]) -> None:
    reason = "the model neither said nor called anything after this reasoning"
    for thought in turn.thoughts:
        lost = thought.text and rules.replay != "never"
        decisions.append(decide_item(thought.path, "ignored" if lost else "supported", reason))


def leave_out(thoughts: Iterable[Thought], reason: str, decisions: list[CompatibilityDecision]) -> None:
    """Reasoning whose absence is no loss."""
    decisions.extend(decide_item(thought.path, "supported", reason) for thought in thoughts)


def tell_summarised(thoughts: Iterable[Thought], decisions: list[CompatibilityDecision]) -> None:
    reason = "only the summary of this reasoning came back; it was sent in its place"
    decisions.extend(
        decide_item(thought.path, "degraded", reason) for thought in thoughts if thought.text and thought.summarised
    )
