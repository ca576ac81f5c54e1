"""What the plan changed, where people see it: a response header, and the log."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Protocol

from isthmus.conduct.life import Decided
from isthmus.conduct.run import Run
from isthmus.errors import IsthmusError
from isthmus.log import tell
from isthmus.ports import TURN, TURN_STATE, spell_state

log = logging.getLogger("isthmus.plan")


class Planned(Protocol):
    """A run, or whatever else is carried out by a plan."""

    @property
    def id(self) -> str: ...

    @property
    def plan(self) -> Decided: ...


def run_headers(run: Run) -> dict[str, str]:
    """What the head of an answer says of its run: what was changed, and the rate limits of who answers."""
    return {**plan_header(run.plan), **run.limits, **_turn_header()}


def _turn_header() -> dict[str, str]:
    """Where the turn is kept, for a client that shows it again."""
    turn = TURN.get()
    spelt = spell_state(turn.given) if turn is not None and turn.given is not None else ""
    return {TURN_STATE: spelt} if spelt else {}


def failed_late(run: Run, failure: IsthmusError) -> IsthmusError:
    """A failure that is told with a status, although the model had begun to speak: nobody should ask again unasked."""
    if run.ended().first_token is not None:
        failure.metadata = {**failure.metadata, "begun": True}
    return failure


def plan_header(plan: Decided) -> dict[str, str]:
    """`Isthmus-Plan: degraded=2, ignored=1`; `ok` when nothing was changed. Where the name stands for several targets,
    `Isthmus-Choice` is the one that was taken."""
    counted = Counter(diagnostic.action for diagnostic in plan.diagnostics)
    words = ", ".join(f"{action}={counted[action]}" for action in ("degraded", "ignored") if counted[action])
    told, chosen = {"isthmus-plan": words or "ok"}, plan.target.choice
    if chosen is not None:
        told["isthmus-choice"] = f"{plan.target.provider}/{plan.target.model}; by={chosen.by}"
    return told


def tell_run(run: Planned) -> None:
    """The plan's changes, one line each; people who watch the log see what clients see."""
    if not log.isEnabledFor(logging.INFO):
        return
    target = run.plan.target
    for said in run.plan.diagnostics:
        tell(
            log,
            "info",
            f"plan.{said.action}",
            id=run.id,
            provider=target.provider,
            model=target.model,
            code=said.code,
            path=said.path,
            reason=said.message,
        )
