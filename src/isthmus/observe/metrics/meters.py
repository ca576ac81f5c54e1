"""Where numbers add up: plain tables, changed on the loop alone, read as a whole when somebody asks.

Counting costs a look into a table. What is only looked at (queues, memory) is not kept here: whoever knows it is asked
at the moment of reading (`watch`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from isthmus.observe.metrics.catalog import CATALOG

Labels = tuple[str, ...]
Probe = Callable[[], Iterable[tuple[str, Labels, float]]]
"""Says what is so now: metric, label values, value."""


class Reading(msgspec.Struct, frozen=True):
    """One metric at one moment. A plain value, so that processes can tell each other."""

    name: str
    series: list[tuple[Labels, float]] = []
    spread: list[tuple[Labels, list[float]]] = []
    """Of a histogram, for each series: how many fell into each bucket, one more for what is above them all, their
    sum."""


class Counter:
    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: defaultdict[Labels, float] = defaultdict(float)

    def add(self, labels: Labels = (), amount: float = 1.0) -> None:
        self.values[labels] += amount


class Histogram:
    __slots__ = ("_bounds", "values")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.values: dict[Labels, list[float]] = {}

    def note(self, value: float, labels: Labels = ()) -> None:
        found = self.values.get(labels)
        if found is None:
            found = self.values[labels] = [0.0] * (len(self._bounds) + 2)
        found[bisect_left(self._bounds, value)] += 1
        found[-1] += value


class Meters:
    """All that is counted in a process."""

    def __init__(self) -> None:
        self._counters = {name: Counter() for name, metric in CATALOG.items() if metric.kind == "counter"}
        self._histograms = {
            name: Histogram(metric.buckets) for name, metric in CATALOG.items() if metric.kind == "histogram"
        }
        self._probes: list[Probe] = []

    def counter(self, name: str) -> Counter:
        return self._counters[name]

    def histogram(self, name: str) -> Histogram:
        return self._histograms[name]

    def watch(self, probe: Probe) -> Callable[[], None]:
        """Ask this one, too, at every reading; the answer takes it away again."""
        self._probes.append(probe)
        return lambda: self._probes.remove(probe)

    def read(self, *more: Probe) -> list[Reading]:
        """Everything as it is now, in the order of the catalogue; what was never counted is told as 0 where it has no
        labels. `more` are asked this time only."""
        seen: dict[str, dict[Labels, float]] = {name: dict(each.values) for name, each in self._counters.items()}
        for probe in (*self._probes, *more):
            for name, labels, value in probe():
                found = seen.setdefault(name, {})
                found[labels] = found.get(labels, 0.0) + value
        return [self._reading(name, seen.get(name, {})) for name in CATALOG]

    def _reading(self, name: str, seen: Mapping[Labels, float]) -> Reading:
        metric = CATALOG[name]
        if metric.kind == "histogram":
            values = self._histograms[name].values
            return Reading(name, spread=[(labels, list(counts)) for labels, counts in values.items()])
        if not seen and not metric.labels and metric.kind == "counter":
            return Reading(name, [((), 0.0)])
        return Reading(name, list(seen.items()))


def merge(processes: Sequence[Sequence[Reading]]) -> list[Reading]:
    """What several processes of one gateway have counted, as if one had: sums; of gauges, what the catalogue says. What
    a process of another version tells, and this one does not know, is left out."""
    values: dict[str, dict[Labels, float]] = {name: {} for name in CATALOG}
    spread: dict[str, dict[Labels, list[float]]] = {name: {} for name in CATALOG}
    for readings in processes:
        for each in readings:
            if each.name not in CATALOG:
                continue
            together = max if CATALOG[each.name].over == "max" else sum
            for labels, value in each.series:
                before = values[each.name].get(labels)
                values[each.name][labels] = value if before is None else together((before, value))
            for labels, counts in each.spread:
                found = spread[each.name].get(labels)
                if len(counts) == len(CATALOG[each.name].buckets) + 2:
                    added = counts if found is None else [a + b for a, b in zip(found, counts, strict=True)]
                    spread[each.name][labels] = list(added)
    return [Reading(name, list(values[name].items()), list(spread[name].items())) for name in CATALOG]
