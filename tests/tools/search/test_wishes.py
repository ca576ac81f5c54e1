"""How a client narrows a search, in every spelling; what is of the wrong type says nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ports.search import NOWHERE, Location, Scope
from isthmus.tools.search.wishes import MAX_DOMAINS, Wishes, read_access, read_wishes


def test_everything_is_read() -> None:
    tool = {
        "type": "web_search",
        "filters": {"allowed_domains": ["a.example", "a.example", " "], "blocked_domains": ["b.example"]},
        "user_location": {"type": "approximate", "country": "de", "city": "Berlin"},
        "search_context_size": "low",
    }
    assert read_wishes(tool, "nothing") == Wishes(
        Scope(("a.example",), ("b.example",)), Location("DE", "", "Berlin", ""), "low"
    )


def test_the_nested_location_of_chat_is_read_too() -> None:
    nested = {"user_location": {"type": "approximate", "approximate": {"country": "FR"}}}
    assert read_wishes(nested, "nothing").location == Location("FR")


@pytest.mark.parametrize(
    ("said", "offline", "access"),
    [
        (None, "nothing", "live"),
        (True, "nothing", "live"),
        (False, "nothing", "kept"),
        (False, "index", "index"),
        ("indexed", "nothing", "index"),
        ("whatever", "nothing", "live"),
    ],
)
def test_a_client_that_wants_no_access_has_none(said: Any, offline: Any, access: str) -> None:
    assert read_access(said, offline) == access


def test_there_are_only_so_many_domains() -> None:
    many = {"filters": {"allowed_domains": [f"d{index}.example" for index in range(500)]}}
    assert len(read_wishes(many, "nothing").scope.allowed) == MAX_DOMAINS


_ANY = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.lists(st.integers())
    | st.dictionaries(st.text(), st.text())
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("filters", "user_location", "search_context_size"), _ANY)))
def test_nothing_of_a_wrong_type_breaks_it(tool: dict[str, Any]) -> None:
    wishes = read_wishes(tool, "nothing")
    assert wishes.size in ("low", "medium", "high")
    assert isinstance(wishes.location, Location)


def test_a_questions_own_domains_take_the_place_of_the_others() -> None:
    wishes = read_wishes({"filters": {"allowed_domains": ["a.example"]}}, "nothing")
    assert wishes.query("q", recency=3, domains=("b.example",)).scope.allowed == ("b.example",)
    assert wishes.query("q").location == NOWHERE
