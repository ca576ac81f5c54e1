"""What the hooks of a configuration would make of a request that is only looked at: they are asked, nothing is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from isthmus.bridge.limits import RequestLimits, take_limits
from isthmus.cli.explain_plan import Asked, Explained, reworded
from isthmus.config.schema import Config
from isthmus.gateway.caller import Caller


def explain_hooked(config: Config, asked: Asked, explain: Callable[[Asked], Explained]) -> Explained:
    """Plan it as `explain` does, with what hooks say before and after. Raises `RequestRefused`: one of them does."""
    if not config.hooks.uses:
        return explain(asked)
    from isthmus.conduct.review import before_plan
    from isthmus.gateway.hooked import context_of
    from isthmus.wiring_hooks import open_hooks

    context = context_of(Caller(), "resp_explained", asked.request.body)
    limits = take_limits(RequestLimits, config.limits)

    async def ask_hooks() -> Explained:
        review, request, decisions = await before_plan(open_hooks(config), context, asked.request, (), limits)
        explained = explain(replace(asked, request=request, hooked=tuple(decisions)))
        if explained.plan is None:
            return explained
        plan = await review.foresee(explained.plan)
        since = plan.decisions[len(explained.plan.decisions) :]
        return replace(explained, plan=plan, decisions=(*explained.decisions, *reworded(asked, since)))

    return asyncio.run(ask_hooks())
