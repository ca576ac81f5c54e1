"""What the plan changed, where people see it: a response header, and the log."""

from __future__ import annotations

import logging
from collections import Counter

from isthmus.bridge.types.plan import Plan
from isthmus.conduct.run import Run
from isthmus.log import tell

log = logging.getLogger("isthmus.plan")


def plan_header(plan: Plan) -> dict[str, str]:
    """`Isthmus-Plan: degraded=2, ignored=1`; `ok` when nothing was changed."""
    counted = Counter(diagnostic.action for diagnostic in plan.diagnostics)
    words = ", ".join(f"{action}={counted[action]}" for action in ("degraded", "ignored") if counted[action])
    return {"isthmus-plan": words or "ok"}


def tell_run(run: Run) -> None:
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
