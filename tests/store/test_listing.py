"""Items by name, and long lists in pages: nothing twice, nothing lost, whatever the size of a page."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import RequestRefused
from isthmus.store.listing import Place, cut_page, find_place, make_page, name_item
from isthmus.store.pieces import INPUT, OUTPUT

places = st.builds(Place, st.text(min_size=1), st.sampled_from([INPUT, OUTPUT]), st.integers(0, 999_999_999))


@given(places)
def test_a_made_name_leads_back_to_its_place(place: Place) -> None:
    assert find_place(name_item(place, None)) == place


@given(places, places)
def test_two_places_never_have_one_name(one: Place, two: Place) -> None:
    assert (name_item(one, None) == name_item(two, None)) is (one == two)


@pytest.mark.parametrize(
    ("place", "own", "name"),
    [
        (Place("resp_1", INPUT, 0), None, "in0_resp_1"),
        (Place("resp_1", OUTPUT, 12), None, "out12_resp_1"),
        (Place("resp_1", INPUT, 0), "msg_1", "msg_1"),
        (Place("resp_1", INPUT, 0), "", "in0_resp_1"),
    ],
)
def test_an_item_keeps_its_own_name_if_it_has_one(place: Place, own: str | None, name: str) -> None:
    assert name_item(place, own) == name


@pytest.mark.parametrize(
    "name", ["", "msg_1", "in_r1", "in0", "in0_", "up0_r1", "in-1_r1", "in0000000000_r1", "in٣_r1", " in0_r1", "IN0_r1"]
)
def test_any_other_name_tells_no_place(name: str) -> None:
    assert find_place(name) is None


# ── pages ──────────────────────────────────────────────────────────────────────────────────────────────

Order = Literal["asc", "desc"]
names = st.lists(st.sampled_from("abcdefgh"), max_size=12)


@given(names, st.integers(1, 13), st.sampled_from(["asc", "desc"]))
def test_page_by_page_is_the_whole_list(given_names: list[str], limit: int, order: Order) -> None:
    entries = [(name, at) for at, name in enumerate(given_names)]
    whole, more = cut_page(entries, 100, None, order)
    assert not more
    seen: list[tuple[str, int]] = []
    more = True
    while more:
        page, more = cut_page(entries, limit, seen[-1][0] if seen else None, order)
        assert len(page) == limit or not more
        seen += page
    assert seen == whole


@given(names, st.sampled_from(["asc", "desc"]))
def test_a_name_counts_once_at_its_first_place(given_names: list[str], order: Order) -> None:
    page, _ = cut_page([(name, at) for at, name in enumerate(given_names)], 100, None, order)
    first = {name: given_names.index(name) for name in given_names}
    expected = sorted(first.items(), key=lambda entry: entry[1], reverse=order == "desc")
    assert page == expected


@pytest.mark.parametrize(("limit", "more"), [(1, True), (2, True), (3, False), (4, False)])
def test_more_follows_only_where_something_does(limit: int, more: bool) -> None:
    entries = [(name, name) for name in "abc"]
    assert cut_page(entries, limit, None, "asc") == (entries[:limit], more)


def test_behind_the_last_there_is_nothing_and_behind_a_stranger_a_refusal() -> None:
    entries = [(name, name) for name in "abc"]
    assert cut_page(entries, 5, "c", "asc") == ([], False)
    assert cut_page(entries, 5, "a", "desc") == ([], False)
    with pytest.raises(RequestRefused, match="`after` names no input item of this response: `x`") as refused:
        cut_page(entries, 5, "x", "asc")
    assert refused.value.param == "after"


@pytest.mark.parametrize(
    ("data", "made"),
    [
        (b'{"id":"n","a":1.50}', b'{"id":"n","a":1.50}'),
        (b'{ "a": 1, "id": "n" }', b'{ "a": 1, "id": "n" }'),
        (b'{"a":1.50}', b'{"id":"n","a":1.50}'),
        (b'{"a":1,"id":null}', b'{"id":"n","a":1}'),
        (b'{"id":7,"a":1}', b'{"id":"n","a":1}'),
        (b"{}", b'{"id":"n"}'),
    ],
)
def test_every_listed_item_has_its_name_and_is_otherwise_as_it_was(data: bytes, made: bytes) -> None:
    page = make_page([("n", data)], False)
    assert page.items == (made,)
    assert msgspec.json.decode(page.items[0])["id"] == "n"


def test_a_page_says_where_it_begins_and_ends() -> None:
    page = make_page([("a", b"{}"), ("b", b"{}")], True)
    assert (page.first_id, page.last_id, page.has_more) == ("a", "b", True)
    empty = make_page([], False)
    assert (empty.items, empty.first_id, empty.last_id, empty.has_more) == ((), None, None, False)
