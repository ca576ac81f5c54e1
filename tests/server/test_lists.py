"""What every list can be asked for."""

from __future__ import annotations

import pytest

from isthmus.errors import RequestRefused
from isthmus.server.lists import asked_order, page_of


def test_an_order_is_one_of_two() -> None:
    assert asked_order({}, "desc") == "desc"
    assert asked_order({}, "asc") == "asc"
    assert asked_order({"order": "asc"}, "desc") == "asc"
    assert asked_order({"order": "desc"}, "asc") == "desc"
    with pytest.raises(RequestRefused, match="`asc` or `desc`"):
        asked_order({"order": ""}, "asc")


def test_a_page_names_its_ends() -> None:
    page = page_of([1, 2, 3], ["a", "b", "c"], True)
    assert page == {"object": "list", "data": [1, 2, 3], "first_id": "a", "last_id": "c", "has_more": True}
    assert page_of([], [], False)["first_id"] is None
