"""Config → the gate in front of everything that costs, and what it counts with."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from isthmus.access.gate import Gate, GateSettings
from isthmus.access.ledger import Ledger
from isthmus.access.rules import Rules, Team
from isthmus.config.schema import Config
from isthmus.config.schema_limits import RateLimits
from isthmus.observe.metrics.meters import Meters
from isthmus.ports.keys import NO_RATES, Budget, Rates
from isthmus.ports.spending import Spending

if TYPE_CHECKING:  # loaded only where something is limited
    from isthmus.access.limiter import Limiter


def open_gate(config: Config, store: Spending, new_id: Callable[[str], str], meters: Meters | None = None) -> Gate:
    gate = Gate(
        Ledger(store, most=config.usage.max_waiting, hold=config.limits.hold),
        gate_settings(config),
        limiter=lambda: _open_limiter(config),
        now=time.time,
        new_id=new_id,
    )
    if meters is not None:
        meters.watch(gate.look)
    return gate


def gate_settings(config: Config) -> GateSettings:
    """What another configuration may change while it stands."""
    limits = config.limits
    teams = {
        name: Team(_rates(team), Budget(team.daily_budget, team.monthly_budget)) for name, team in config.teams.items()
    }
    rules = Rules(_rates(limits), teams, {pattern: _rates(each) for pattern, each in limits.models.items()})
    return GateSettings(rules, limits.assumed_output, limits.unpriced)


def _open_limiter(config: Config) -> Limiter:
    from isthmus.access.limiter import Limiter

    limits = config.limits
    if not limits.redis:
        from isthmus.access.counters import CountersHere

        return Limiter(CountersHere())
    from isthmus.access.redis import CountersInRedis

    return Limiter(CountersInRedis(limits.redis, down=limits.redis_down, timeout=limits.redis_timeout))


def _rates(given: RateLimits) -> Rates:
    rates = Rates(
        given.requests_per_minute, given.tokens_per_minute, given.concurrent_requests, given.concurrent_streams
    )
    return NO_RATES if rates == NO_RATES else rates  # that very one: every request asks whether there are any
