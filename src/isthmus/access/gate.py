"""The one gate in front of everything that costs: rates and places first, then money; `ports.Admission`.

Without limits and budgets all it does is to note what was used. Worth knowing: what limits need is loaded with the
first of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from isthmus.access.budgets import holds_for, nanos_of, purses_of, spent_budget, uses_of
from isthmus.access.ledger import Ledger
from isthmus.access.rules import Rules
from isthmus.errors import RequestRefused
from isthmus.log import tell
from isthmus.ports.admission import Payer, Spent, Wanted
from isthmus.ports.keys import Budget
from isthmus.ports.spending import Hold

if TYPE_CHECKING:  # loaded only where something is limited
    from isthmus.access.limiter import Limiter, Taken

log = logging.getLogger("isthmus.limits")

_NONE: Final[Mapping[str, str]] = {}
_MOST_NAMED: Final = 1000
"""Models without a price that the log names, each once."""


@dataclass(frozen=True, slots=True)
class GateSettings:
    rules: Rules = Rules()  # noqa: RUF009  # frozen
    assumed_output: int = 1024
    """Tokens that a request may make which does not say how many."""
    unpriced: Literal["allow", "refuse"] = "allow"


class Gate:
    def __init__(
        self,
        ledger: Ledger,
        settings: GateSettings,
        *,
        limiter: Callable[[], Limiter],
        now: Callable[[], float],
        new_id: Callable[[str], str],
    ) -> None:
        """`limiter` opens one, when the first limit is met with."""
        self.ledger = ledger
        self._settings = settings
        self._open = limiter
        self._limiter: Limiter | None = None
        self._now = now
        self._new_id = new_id
        self._ending: set[asyncio.Task[None]] = set()
        self._unpriced: set[str] = set()
        self.refused: Counter[str] = Counter()
        """By what refused: `rate` or `budget`."""

    def adopt(self, settings: GateSettings) -> None:
        """Other limits hold from now on. What was counted stays counted."""
        self._settings = settings

    async def admit(self, payer: Payer, wanted: Wanted) -> Ticket:
        settings = self._settings
        rules = settings.rules.of(payer, wanted)
        purses = purses_of(payer, settings.rules.teams.get(payer.team)) if wanted.model else []
        if not rules and not purses:
            return Ticket(self, payer)
        id = self._new_id("hold")
        if self._ending:  # whoever asks once more at the end of an answer finds the place of that free
            await asyncio.wait(self._ending)
        given = (
            wanted.count() if wanted.model and (purses or any(rule.rates.tokens_per_minute for rule in rules)) else 0
        )
        made = settings.assumed_output if wanted.output is None else wanted.output
        taken = None
        if rules:
            self._limiter = self._limiter or self._open()
            try:
                taken = await self._limiter.take(rules, id=id, tokens=given + made, streams=wanted.streams)
            except RequestRefused:
                self.refused["rate"] += 1
                raise
        try:
            held = bool(purses) and await self._hold(id, purses, wanted, given, made)
        except BaseException:
            if taken is not None and self._limiter is not None:
                await self._limiter.undo(taken)
            raise
        return Ticket(self, payer, id if held else "", taken)

    def look(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """For `/metrics`."""
        for kind in ("rate", "budget"):
            yield "isthmus_limit_refusals_total", (kind,), self.refused[kind]
        yield "isthmus_usage_lost_total", (), self.ledger.lost
        yield "isthmus_limits_redis_failures_total", (), 0 if self._limiter is None else self._limiter.failures

    async def written(self) -> None:
        await asyncio.shield(self.ledger.flush())

    async def aclose(self) -> None:
        if self._ending:
            await asyncio.wait(self._ending)
        await self.ledger.aclose()
        if self._limiter is not None:
            await self._limiter.aclose()

    async def _hold(self, id: str, purses: Sequence[tuple[str, Budget]], wanted: Wanted, given: int, made: int) -> bool:
        nanos = nanos_of(wanted.cost, given, made)
        if nanos is None:
            self._tell_unpriced(wanted)
        holds: list[Hold] = holds_for(purses, nanos or 0, at := self._now())
        refusal = await self.ledger.hold(id, holds)
        if refusal is not None:
            self.refused["budget"] += 1
            raise spent_budget(refusal, purses, at)
        return True

    def _tell_unpriced(self, wanted: Wanted) -> None:
        name = f"{wanted.provider}/{wanted.model}"
        if self._settings.unpriced == "refuse":
            words = f"nobody knows what `{name}` costs, so no budget can be kept with it"
            raise RequestRefused(
                f"{words}; ask for another model, or your operator for `limits.unpriced` or a price",
                code="model_unpriced",
                param="model",
            )
        if name not in self._unpriced and len(self._unpriced) < _MOST_NAMED:
            self._unpriced.add(name)
            tell(log, "warning", "budget.unpriced", provider=wanted.provider, model=wanted.model)

    def settle(self, payer: Payer, id: str, taken: Taken | None, spent: Sequence[Spent]) -> None:
        if taken is not None and self._limiter is not None:
            tokens = sum(each.input_tokens + each.output_tokens for each in spent)
            ending = self._limiter.end(taken, tokens) if spent else self._limiter.undo(taken)
            task = asyncio.create_task(ending, name="give back")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        for each in spent:
            if each.estimated:
                tell(
                    log,
                    "info",
                    "usage.estimated",
                    key=payer.key or None,
                    provider=each.provider,
                    model=each.model,
                    input_tokens=each.input_tokens,
                    output_tokens=each.output_tokens,
                )
        uses = uses_of(payer, spent, self._now())
        if id:
            self.ledger.settle(id, uses)
        elif uses:
            self.ledger.note(uses)


class Ticket:
    """`ports.Admitted`."""

    __slots__ = ("_gate", "_id", "_over", "_payer", "_taken", "headers")

    def __init__(self, gate: Gate, payer: Payer, id: str = "", taken: Taken | None = None) -> None:
        self._gate, self._payer, self._id, self._taken = gate, payer, id, taken
        self._over = False
        self.headers: Mapping[str, str] = _NONE if taken is None else taken.headers

    def settle(self, spent: Sequence[Spent]) -> None:
        if not self._over:
            self._over = True
            self._gate.settle(self._payer, self._id, self._taken, spent)
