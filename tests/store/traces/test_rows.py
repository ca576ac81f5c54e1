"""How long things took, in steps; and kinds, of which there are never too many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ports.packed import kind_of, pack
from isthmus.store.traces import rows
from isthmus.store.traces.rows import OTHER, read_summary, seconds_of, squeeze, step_of, unsqueeze
from isthmus.store.traces.sqlite import SqliteTraces
from traced import keep_in, traced


@given(st.floats(0.002, 100_000))
def test_a_step_says_how_long_it_took_to_within_a_fifth(seconds: float) -> None:
    assert seconds <= seconds_of(step_of(seconds)) * 1.000001
    assert seconds_of(step_of(seconds)) <= seconds * 1.19


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.0005, 0.001])
def test_what_took_no_time_is_in_the_first_step(seconds: float) -> None:
    assert step_of(seconds) == 0


def test_what_is_squeezed_comes_back() -> None:
    trace = traced("1")
    detail = pack(trace).detail
    assert unsqueeze(False, detail) == unsqueeze(True, squeeze(detail)) == detail
    assert read_summary(7, pack(trace).head).seq == 7


async def test_beyond_so_many_kinds_models_lose_their_name_and_nothing_else_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "MOST_KINDS", 5)
    store = SqliteTraces()
    keep_in(store, [traced(str(number), model=f"m{number}") for number in range(20)])
    keep_in(store, [traced("again", model="m1"), traced("new", model="m99")])
    groups = {each.group: each.requests for each in await store.totals("local", by="model")}
    assert groups == {"m0": 1, "m1": 2, "m2": 1, "m3": 1, "m4": 1, OTHER: 16}
    found = await store.find("local", "req_new")
    assert found is not None
    assert found.summary.model == "m99"
    assert kind_of(found.summary)[5] == "m99"
    store.close()
