"""What the plan changed, where people see it: a response header, and the log."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Protocol

from isthmus.bridge.diagnostics import CompatibilityDiagnostic
from isthmus.conduct.life import Decided
from isthmus.conduct.run import Run
from isthmus.errors import IsthmusError
from isthmus.log import tell
from isthmus.ports import TURN, TURN_STATE, spell_state

log = logging.getLogger("isthmus.plan")

_MOST_PATHS: Final = 20
"""In one line."""


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
    words, chosen = "", plan.target.choice
    if plan.diagnostics:
        counted = Counter(diagnostic.action for diagnostic in plan.diagnostics)
        words = ", ".join(f"{action}={counted[action]}" for action in ("degraded", "ignored") if counted[action])
    told = {"isthmus-plan": words or "ok"}
    if chosen is not None:
        told["isthmus-choice"] = f"{plan.target.provider}/{plan.target.model}; by={chosen.by}"
    return told


def tell_run(run: Planned) -> None:
    """What the plan changes, in one line: a request of Codex has twenty changes, and whoever reads the log looks for
    requests. Each with its reason is a line of its own for those who want to know everything."""
    if not log.isEnabledFor(logging.INFO):
        return
    changes, target = run.plan.diagnostics, run.plan.target
    if not changes:
        return
    who: dict[str, Any] = {"id": run.id, "provider": target.provider, "model": target.model}
    tell(log, "info", "plan.changed", **who, degraded=_paths(changes, "degraded"), ignored=_paths(changes, "ignored"))
    if log.isEnabledFor(logging.DEBUG):
        for said in changes:
            tell(log, "debug", f"plan.{said.action}", **who, code=said.code, path=said.path, reason=said.message)


def _paths(changes: Sequence[CompatibilityDiagnostic], action: str) -> str | None:
    """Where something was changed so; of many, the first."""
    paths = [said.path for said in changes if said.action == action]
    more = f" and {len(paths) - _MOST_PATHS} more" if len(paths) > _MOST_PATHS else ""
    return ", ".join(paths[:_MOST_PATHS]) + more if paths else None
