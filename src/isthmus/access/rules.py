"""Which limits a request counts against: those of its key, of the team, and of the model for everybody together.

In: who asks for what, and what the configuration says. Out: rules, each with whose it is. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from isthmus.ports.admission import Payer, Wanted
from isthmus.ports.keys import NO_BUDGET, NO_RATES, Budget, Rates


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    """What it is counted under (`key:key_ab…`, `team:search`, `model:deepseek/*`)."""
    whose: str
    """The same in words."""
    rates: Rates


@dataclass(frozen=True, slots=True)
class Team:
    rates: Rates = NO_RATES
    budget: Budget = NO_BUDGET


@dataclass(frozen=True, slots=True)
class Rules:
    each: Rates = NO_RATES
    """For each key that has none of its own."""
    teams: Mapping[str, Team] = field(default_factory=dict)
    models: Mapping[str, Rates] = field(default_factory=dict)
    """By pattern."""

    def of(self, payer: Payer, wanted: Wanted) -> list[Rule]:
        """Only those that limit something."""
        if self.each is NO_RATES and payer.rates is NO_RATES and not self.teams and not self.models:
            return []  # as where nobody has set any
        return [rule for rule in self._all(payer, wanted) if rule.rates != NO_RATES]

    def _all(self, payer: Payer, wanted: Wanted) -> Iterator[Rule]:
        name = payer.key or payer.owner
        yield Rule(f"key:{name}", f"key `{name}`" if payer.key else f"`{name}`", _own(payer.rates, self.each))
        team = self.teams.get(payer.team) if payer.team else None
        if team is not None:
            yield Rule(f"team:{payer.team}", f"team `{payer.team}`", team.rates)
        if wanted.name or wanted.model:
            full = f"{wanted.provider}/{wanted.model}"
            for pattern, rates in self.models.items():
                if fnmatchcase(wanted.name, pattern) or fnmatchcase(full, pattern):
                    yield Rule(f"model:{pattern}", f"all callers of `{pattern}`", rates)


def _own(own: Rates, each: Rates) -> Rates:
    if each is NO_RATES or each == NO_RATES:
        return own
    return Rates(
        own.requests_per_minute or each.requests_per_minute,
        own.tokens_per_minute or each.tokens_per_minute,
        own.concurrent_requests or each.concurrent_requests,
        own.concurrent_streams or each.concurrent_streams,
    )
