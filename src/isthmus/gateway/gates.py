"""Callers and plans → what the gate is asked (`ports.Admission`), for everything that costs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from isthmus.bridge.tokens import likely_tokens
from isthmus.bridge.types.plan import Plan
from isthmus.conduct.life import Decided
from isthmus.conduct.spend import Gate, count_input
from isthmus.gateway.caller import Caller
from isthmus.ports.admission import Admission, Admitted, Payer, Spent, Wanted


class Gates:
    def __init__(self, open: Callable[[], Admission] | None) -> None:
        """Opened, and loaded, with the first that wants to pass; `None`: everybody passes, and nobody counts."""
        self._open = open
        self._opened: Admission | None = None

    @property
    def admission(self) -> Admission | None:
        if self._opened is None and self._open is not None:
            self._opened = self._open()
        return self._opened

    def of_run(self, caller: Caller, asked: Mapping[str, Any]) -> Gate | None:
        """To be passed when the run begins: of one in the background, not before it has a place."""
        admission = self.admission
        if admission is None:
            return None
        payer, name = payer_of(caller), str(asked.get("model") or "")
        streams = bool(asked.get("stream")) and not asked.get("background")

        def enter(plan: Plan) -> Awaitable[Admitted]:
            target = plan.target
            wanted = Wanted(
                name,
                target.provider,
                target.model,
                target.capabilities.cost,
                lambda: count_input(plan, plan.body),
                plan.output_limit,
                streams,
            )
            return admission.admit(payer, wanted)

        return enter

    def of_once(
        self, caller: Caller, name: str, plan: Decided, body: Mapping[str, Any]
    ) -> Callable[[], Awaitable[Admitted]] | None:
        """For what makes no text: all that it costs it sends."""
        admission, target = self.admission, plan.target
        if admission is None:
            return None
        cost = target.capabilities.cost
        wanted = Wanted(name, target.provider, target.model, cost, lambda: likely_tokens(body), 0)
        return lambda: admission.admit(payer_of(caller), wanted)

    @asynccontextmanager
    async def request(self, caller: Caller) -> AsyncIterator[Mapping[str, str]]:
        """For what asks no model: it counts as a request, and takes its place. Out: how the limits stand."""
        admission = self.admission
        if admission is None:
            yield {}
            return
        admitted = await admission.admit(payer_of(caller), Wanted(""))
        try:
            yield admitted.headers
        finally:
            admitted.settle([ONLY_A_REQUEST])

    async def written(self) -> None:
        """When what was used until now stands in the store."""
        if self._opened is not None:
            await self._opened.written()

    async def aclose(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()


NO_GATES: Final = Gates(None)
ONLY_A_REQUEST: Final = Spent("", "")
"""Nothing of any model."""


def payer_of(caller: Caller) -> Payer:
    grant = caller.grant
    return Payer(caller.owner, caller.key, caller.team, grant.rates, grant.budget)
