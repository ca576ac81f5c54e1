"""Metrics as an observer: the facts of a request's life, added up.

In: facts, a handful for each request. Out: numbers in the meters. What a run is known by until its end (its door, when
it was sent, how long the upstream took) is kept here and bounded; nothing of what was said is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import attrgetter
from time import perf_counter
from typing import Any, Final, TypeVar

from isthmus.observe.metrics.labels import OTHER, Models, code_label
from isthmus.observe.metrics.meters import Labels, Meters
from isthmus.ports import (
    Answered,
    AttemptFailed,
    ContractChecked,
    Ended,
    Fact,
    Planned,
    Received,
    Retried,
    Sent,
    ToolRan,
)

DOORS: Final = {
    "responses": "responses",
    "chat": "chat",
    "messages": "messages",
    "embeddings": "embeddings",
    "images": "images",
    "alpha": "search",
    "conversations": "conversations",
    "models": "models",
}
"""The first word of a path below `/v1` → the door; every other path is `other`."""
OUTCOMES: Final = frozenset({"completed", "incomplete", "failed", "cancelled", "refused"})
MOST_OPEN: Final = 20_000
"""Requests, and as many runs, of which the door is remembered until their end."""
_PATHS: Final = 256
"""Paths whose door is remembered: nearly all ask for the same few."""
_TOKENS: Final = ("input", "output", "cached", "reasoning")
"""In the order of `Ended.used`."""
_STREAM: Final = 3
"""Pieces that make a stream: of fewer, the time between them says nothing."""

_T = TypeVar("_T")
_action: Final = attrgetter("action")


class MetricsObserver:
    def __init__(self, meters: Meters, models: Models, *, clock: Callable[[], float] = perf_counter) -> None:
        self._models = models
        self._clock = clock
        self._doors: dict[str, str] = {}
        """Request → its door."""
        self._runs: dict[str, _Run] = {}
        counter, histogram = meters.counter, meters.histogram
        self._http = counter("isthmus_http_requests_total")
        self._requests = counter("isthmus_requests_total")
        self._durations = histogram("isthmus_request_duration_seconds")
        self._first_tokens = histogram("isthmus_time_to_first_token_seconds")
        self._gaps = histogram("isthmus_token_gap_seconds")
        self._longest_gaps = histogram("isthmus_token_gap_longest_seconds")
        self._overheads = histogram("isthmus_overhead_seconds")
        self._tokens = counter("isthmus_tokens_total")
        self._costs = counter("isthmus_cost_dollars_total")
        self._decisions = counter("isthmus_plan_decisions_total")
        self._checks = counter("isthmus_contract_checks_total")
        self._tools = counter("isthmus_tool_runs_total")
        self._tool_seconds = histogram("isthmus_tool_seconds")
        self._attempts = counter("isthmus_attempts_total")
        self._failures = counter("isthmus_attempt_failures_total")
        self._retries = counter("isthmus_retries_total")
        self._fallbacks = counter("isthmus_fallbacks_total")
        self._hear: dict[type[Any], Callable[[Any], None]] = {
            Received: self._received,
            Planned: self._planned,
            Sent: self._sent,
            Retried: self._retried,
            AttemptFailed: self._failed,
            ToolRan: self._ran,
            ContractChecked: self._checked,
            Ended: self._ended,
            Answered: self._answered,
        }
        meters.watch(self._streams)

    def tell(self, fact: Fact) -> None:
        hear = self._hear.get(type(fact))
        if hear is not None:
            hear(fact)

    def ear(self, kind: type[Any]) -> Callable[[Any], None] | None:
        return self._hear.get(kind)

    def _received(self, fact: Received) -> None:
        _keep(self._doors, fact.request, door_of(fact.path))

    def _planned(self, fact: Planned) -> None:
        plan = fact.plan  # that of embeddings tells only what it changed
        actions = [*map(_action, getattr(plan, "decisions", None) or plan.diagnostics)]
        for action in dict.fromkeys(actions):
            self._decisions.add((action,), actions.count(action))
        # Whatever is made again after a crash has no request, and was asked for in the background.
        run = _Run(self._doors.get(fact.request, DOORS["responses"]))
        run.own = (fact.parse_seconds or 0.0) + fact.plan_seconds
        run.background = fact.background
        run.streams = not fact.background and fact.asked.get("stream") is True
        _keep(self._runs, fact.id, run)

    def _sent(self, fact: Sent) -> None:
        labels = (fact.provider, self._models.label(fact.provider, fact.model))
        self._attempts.add(labels)
        run = self._runs.get(fact.id)
        if run is None:
            return
        asked, now = (fact.provider, fact.model), self._clock()
        if fact.why == "anew" and asked != run.target:
            self._fallbacks.add((run.target[0],))
        run.pause(now)
        run.target, run.labels, run.sent_at = asked, labels, now

    def _retried(self, fact: Retried) -> None:
        self._retries.add((fact.provider, "elsewhere" if fact.elsewhere else "again"))

    def _failed(self, fact: AttemptFailed) -> None:
        self._failures.add((fact.provider, code_label(fact.failure.code)))
        if (run := self._runs.get(fact.id)) is not None:
            run.pause(self._clock())

    def _ran(self, fact: ToolRan) -> None:
        failed = fact.ran is None or fact.ran.failed
        result = "cancelled" if fact.ran is None else "failed" if failed else "completed"
        self._tools.add((fact.call.kind, result))
        self._tool_seconds.note(fact.seconds, (fact.call.kind,))

    def _checked(self, fact: ContractChecked) -> None:
        check = fact.check
        self._checks.add(("unchecked" if check.unchecked else "valid" if check.valid else "invalid",))

    def _ended(self, fact: Ended) -> None:
        run = self._runs.pop(fact.id, None)
        door = OTHER if run is None else run.door
        if run is not None and run.target == (fact.provider, fact.model):
            target = run.labels
        else:
            target = (fact.provider, self._models.label(fact.provider, fact.model))
        self._requests.add((door, *target, fact.outcome if fact.outcome in OUTCOMES else OTHER))
        before = 0.0 if run is None else run.own
        self._durations.note(before + fact.seconds, (door, *target))
        if run is not None:
            run.pause(self._clock() - fact.settled)
            self._overheads.note(max(before + fact.seconds - run.upstream, 0.0), (door,))
        if fact.first_token is not None:
            self._first_tokens.note(fact.first_token, target)
            if fact.batches >= _STREAM:
                told = fact.seconds - fact.settled - fact.first_token
                self._gaps.note(max(told, 0.0) / (fact.batches - 1), target)
                self._longest_gaps.note(fact.longest_gap, target)
        if fact.usage is not None:
            for kind, tokens in zip(_TOKENS, fact.used, strict=True):
                if tokens:
                    self._tokens.add((*target, kind), tokens)
            if fact.price:
                self._costs.add(target, fact.price)

    def _answered(self, fact: Answered) -> None:
        self._doors.pop(fact.request, None)
        run = self._runs.get(fact.id)
        if run is not None and not run.background:
            del self._runs[fact.id]  # it was planned, and never carried out
        self._http.add((door_of(fact.path), str(fact.status)))

    def _streams(self) -> Iterator[tuple[str, Labels, float]]:
        yield "isthmus_open_streams", (), sum(run.streams for run in self._runs.values())


class _Run:
    """What is known of a run until its end."""

    __slots__ = ("background", "door", "labels", "own", "sent_at", "streams", "target", "upstream")

    def __init__(self, door: str) -> None:
        self.door = door
        self.own = 0.0
        """Seconds that reading and planning took."""
        self.upstream = 0.0
        """Seconds from sending to an upstream's last word, all attempts together."""
        self.sent_at: float | None = None
        self.background = self.streams = False
        self.target = self.labels = ("", "")
        """Whom it was sent to, and how that is called here."""

    def pause(self, now: float) -> None:
        """The upstream has spoken its last word for now."""
        if self.sent_at is not None:
            self.upstream += max(now - self.sent_at, 0.0)
            self.sent_at = None


@lru_cache(_PATHS)
def door_of(path: str) -> str:
    parts = path.split("/", 3)
    return DOORS.get(parts[2], OTHER) if len(parts) > 2 and parts[1] == "v1" else OTHER


def _keep(table: dict[str, _T], key: str, value: _T) -> None:
    """What was never heard of again goes first."""
    if len(table) >= MOST_OPEN:
        del table[next(iter(table))]
    table[key] = value
