from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.store.retention import Row, plan_branches


@st.composite
def forests(draw: st.DrawFn) -> list[Row[int]]:
    rows: list[Row[int]] = []
    for key in range(draw(st.integers(0, 25))):
        parent = draw(st.none() | st.integers(0, key - 1)) if key else None
        rows.append(Row(key, parent, float(draw(st.integers(0, 5))), draw(st.integers(0, 9)) == 0))
    return rows


@given(forests())
@settings(max_examples=300, deadline=None)
def test_removing_any_number_of_branches_never_breaks_a_chain_that_stays(rows: list[Row[int]]) -> None:
    left = {row.key for row in rows}
    for branch in plan_branches(rows):
        for key in branch.keys:
            left.discard(key)
            assert all(row.parent is None or row.parent in left for row in rows if row.key in left)


@given(forests())
@settings(max_examples=300, deadline=None)
def test_what_remains_is_what_unfinished_turns_need_and_the_longest_unused_goes_first(rows: list[Row[int]]) -> None:
    by_key = {row.key: row for row in rows}
    needed: set[int] = set()
    for row in rows:
        at: Row[int] | None = row if row.unfinished else None
        while at is not None:
            needed.add(at.key)
            at = by_key[at.parent] if at.parent is not None else None
    branches = plan_branches(rows)
    assert {key for branch in branches for key in branch.keys} == set(by_key) - needed
    assert [branch.last_used for branch in branches] == sorted(branch.last_used for branch in branches)
