from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.observe.metrics.catalog import CATALOG, QUICK
from isthmus.observe.metrics.meters import Histogram, Meters, Reading, merge

SECONDS = st.floats(0, 1000, allow_nan=False)


def series(readings: list[Reading], name: str) -> dict[tuple[str, ...], float]:
    return dict(next(each for each in readings if each.name == name).series)


def spread(readings: list[Reading], name: str) -> dict[tuple[str, ...], list[float]]:
    return dict(next(each for each in readings if each.name == name).spread)


def test_a_counter_adds_up_for_each_of_its_labels() -> None:
    meters = Meters()
    for action in ("degraded", "ignored", "degraded"):
        meters.counter("isthmus_plan_decisions_total").add((action,))
    meters.counter("isthmus_plan_decisions_total").add(("ignored",), 3)
    assert series(meters.read(), "isthmus_plan_decisions_total") == {("degraded",): 2.0, ("ignored",): 4.0}


@given(st.lists(SECONDS))
def test_every_value_falls_into_the_first_bucket_that_reaches_it(values: list[float]) -> None:
    histogram = Histogram(QUICK)
    for value in values:
        histogram.note(value, ("a",))
    counts = histogram.values.get(("a",), [0.0] * (len(QUICK) + 2))
    for index, bound in enumerate(QUICK):
        assert sum(counts[: index + 1]) == sum(value <= bound for value in values)
    assert sum(counts[:-1]) == len(values)
    assert counts[-1] == pytest.approx(sum(values))


def test_every_metric_of_the_catalogue_is_read_in_its_order() -> None:
    assert [each.name for each in Meters().read()] == list(CATALOG)


def test_a_counter_without_labels_is_told_before_anything_happened() -> None:
    """What has never been there cannot be seen to grow."""
    assert series(Meters().read(), "isthmus_traces_dropped_total") == {(): 0.0}
    assert series(Meters().read(), "isthmus_requests_total") == {}


def test_what_is_only_looked_at_is_asked_for_at_every_reading() -> None:
    meters, now = Meters(), [3.0]
    forget = meters.watch(lambda: [("isthmus_websockets", (), now[0])])
    assert series(meters.read(), "isthmus_websockets") == {(): 3.0}
    now[0] = 5.0
    assert series(meters.read(), "isthmus_websockets") == {(): 5.0}
    forget()
    assert series(meters.read(), "isthmus_websockets") == {}


def test_a_reading_does_not_change_any_more() -> None:
    meters = Meters()
    meters.histogram("isthmus_store_seconds").note(1.0, ("read",))
    before = meters.read()
    meters.histogram("isthmus_store_seconds").note(1.0, ("read",))
    assert sum(spread(before, "isthmus_store_seconds")[("read",)][:-1]) == 1


def test_what_does_not_stand_in_the_catalogue_cannot_be_counted() -> None:
    with pytest.raises(KeyError):
        Meters().counter("isthmus_something_total")


@given(st.lists(st.tuples(st.integers(0, 2), SECONDS), max_size=30))
def test_several_processes_count_what_one_would_have_counted(noted: list[tuple[int, float]]) -> None:
    alone, several = Meters(), [Meters() for _ in range(3)]
    for process, value in noted:
        for meters in (alone, several[process]):
            meters.histogram("isthmus_store_seconds").note(value, ("write",))
            meters.counter("isthmus_tokens_total").add(("p", "m", "input"), 7)
    # As they travel from one process to another.
    told = [msgspec.json.decode(msgspec.json.encode(each.read()), type=list[Reading]) for each in several]
    together, expected = merge(told), alone.read()
    assert series(together, "isthmus_tokens_total") == series(expected, "isthmus_tokens_total")
    one, other = (spread(each, "isthmus_store_seconds").get(("write",), []) for each in (together, expected))
    assert one == pytest.approx(other)


def test_of_gauges_the_catalogue_says_what_several_become() -> None:
    several = [Meters(), Meters()]
    for meters, value in zip(several, (2.0, 3.0), strict=True):
        meters.watch(lambda value=value: [("isthmus_websockets", (), value), ("isthmus_info", ("1.0",), 1.0)])
    together = merge([each.read() for each in several])
    assert series(together, "isthmus_websockets") == {(): 5.0}
    assert series(together, "isthmus_info") == {("1.0",): 1.0}
