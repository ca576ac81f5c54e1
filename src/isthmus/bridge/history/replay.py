"""Which past reasoning goes back, by the model's replay rule; and what is said about the rest.

In: assistant turns and the model's message rules. Out: answers, and decisions. Each dialect spells reasoning its own
way, but all of them ask here, and so does the planner: only reasoning that really goes back keeps thinking on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.types.history import Acted, History, Kept, PastTurn, Said, Thought

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules

DETAILS: Final = "reasoning_details"
EMPTY: Final = "it holds no reasoning to replay"
UNWANTED: Final = "the model does not want past reasoning back here"
SUMMARISED: Final = "only the summary of this reasoning came back; it was sent in its place"


def remember(past: History, rules: MessageRules, context: str | None) -> tuple[History, MessageRules]:
    """The history and the rules as `reasoning.context` wants them; `auto` leaves both to the model's own rule."""
    if context == "all_turns" and rules.replay == "tool_turns":
        return past, msgspec.structs.replace(rules, replay="always")
    if context != "current_turn":
        return past, rules
    begin = _last_question(past.turns)
    forgotten = [thought for turn in past.turns[:begin] if isinstance(turn, Acted) for thought in turn.thoughts]
    decisions = [*past.decisions]
    leave_out(forgotten, "`reasoning.context` is `current_turn`, and this is of an earlier one", decisions)
    kept = (*(_without_thoughts(turn) for turn in past.turns[:begin]), *past.turns[begin:])
    turns = tuple(turn for turn in kept if not isinstance(turn, Acted) or turn.steps)
    return replace(past, turns=turns, decisions=tuple(decisions)), rules


def _last_question(turns: Sequence[PastTurn]) -> int:
    asked = (index for index in reversed(range(len(turns))) if _asks(turns[index]))
    return next(asked, 0)


def _asks(turn: PastTurn) -> bool:
    return isinstance(turn, Said) and turn.role == "user"


def _without_thoughts(turn: PastTurn) -> PastTurn:
    if not isinstance(turn, Acted) or not turn.thoughts:
        return turn
    said = tuple(step for step in turn.steps if not isinstance(step, Thought))
    return msgspec.structs.replace(turn, steps=said, thoughts=())


def replays_reasoning(turns: Iterable[PastTurn], rules: MessageRules) -> bool:
    """Whether any real reasoning of this history will go back to the model."""
    if rules.replay == "never":
        return False
    thinking = (turn for turn in turns if type(turn) is Acted and turn.thoughts)
    wanted = (turn for turn in thinking if wants_reasoning(turn, rules) and not is_unfinished(turn))
    return any(_has_reasoning(thought, rules) for turn in wanted for thought in turn.thoughts)


def wants_reasoning(turn: Acted, rules: MessageRules) -> bool:
    """Whether the model wants the reasoning of this turn back."""
    return rules.replay == "always" or (rules.replay == "tool_turns" and bool(turn.results))


def is_unfinished(turn: Acted) -> bool:
    """Whether the turn broke off while thinking: it said and did nothing that could carry its reasoning."""
    return not turn.results and not turn.texts and not any(isinstance(step, Kept) for step in turn.steps)


def leave_out_unfinished(turn: Acted, rules: MessageRules, decisions: list[CompatibilityDecision]) -> None:
    reason = "the model neither said nor called anything after this reasoning"
    for thought in turn.thoughts:
        if thought.text and rules.replay != "never":
            decisions.append(CompatibilityDecision(thought.path, "ignored", reason, code="bridge.item.ignored"))
        else:
            decisions.append(CompatibilityDecision(thought.path, "supported", reason))


def leave_out(thoughts: Iterable[Thought], reason: str, decisions: list[CompatibilityDecision]) -> None:
    """Reasoning whose absence is no loss."""
    decisions.extend(CompatibilityDecision(thought.path, "supported", reason) for thought in thoughts)


def tell_summarised(thoughts: Iterable[Thought], decisions: list[CompatibilityDecision]) -> None:
    decisions.extend(
        CompatibilityDecision(thought.path, "degraded", SUMMARISED, code="bridge.item.degraded")
        for thought in thoughts
        if thought.text and thought.summarised
    )


def _has_reasoning(thought: Thought, rules: MessageRules) -> bool:
    return bool(thought.text) or (rules.replay_details and bool(thought.extras.get(DETAILS)))
