"""Bodies of conversations: what they ask for, or which field is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.doors.conversations.read import (
    INCLUDES,
    MAX_ITEMS,
    check_includes,
    read_change,
    read_items,
    read_new,
)
from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits
from isthmus.bridge.metadata import MAX_NAME, MAX_PAIRS, MAX_TEXT
from isthmus.errors import RequestRefused

HI = {"role": "user", "content": "hi"}


def raw(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("body", [b"", b"  ", b"{}", raw({"items": None, "metadata": None})])
def test_a_new_one_needs_nothing(body: bytes) -> None:
    asked = read_new(body, DEFAULT_LIMITS)
    assert (asked.items, asked.metadata) == ((), {})


def test_items_get_their_type() -> None:
    asked = read_new(raw({"items": [HI, {"id": "msg_1"}]}), DEFAULT_LIMITS)
    assert [item["type"] for item in asked.items] == ["message", "item_reference"]


@given(st.dictionaries(st.text(max_size=MAX_NAME), st.text(max_size=MAX_TEXT), max_size=MAX_PAIRS))
def test_metadata_within_the_limits_is_kept_as_it_is(metadata: dict[str, str]) -> None:
    assert read_change(raw({"metadata": metadata}), DEFAULT_LIMITS).metadata == metadata


@pytest.mark.parametrize(
    ("metadata", "param"),
    [
        ({str(number): "" for number in range(MAX_PAIRS + 1)}, "metadata"),
        ({"k" * (MAX_NAME + 1): ""}, "metadata"),
        ({"k": "v" * (MAX_TEXT + 1)}, "metadata.k"),
        ({"k": None}, "metadata.k"),
        ([], "metadata"),
    ],
)
@pytest.mark.parametrize("reader", [read_new, read_change])
def test_metadata_beyond_them_is_refused(reader: Any, metadata: Any, param: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        reader(raw({"metadata": metadata}), DEFAULT_LIMITS)
    assert refused.value.param == param


@pytest.mark.parametrize("reader", [read_new, read_items])
def test_twenty_items_may_come_at_once(reader: Any) -> None:
    assert len(reader(raw({"items": [HI] * MAX_ITEMS}), DEFAULT_LIMITS).items) == MAX_ITEMS == 20
    with pytest.raises(RequestRefused, match="21 items; send 20 at most"):
        reader(raw({"items": [HI] * 21}), DEFAULT_LIMITS)


@pytest.mark.parametrize(("reader", "body", "param"), [(read_change, {}, "metadata"), (read_items, {}, "items")])
def test_what_a_change_is_about_is_required(reader: Any, body: Any, param: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        reader(raw(body), DEFAULT_LIMITS)
    assert (refused.value.code, refused.value.param) == ("missing_required_parameter", param)


def test_a_field_that_nobody_knows_is_not_dropped_in_silence() -> None:
    with pytest.raises(RequestRefused) as refused:
        read_items(raw({"items": [], "metadata": {}}), DEFAULT_LIMITS)
    assert refused.value.param == "metadata"


def test_what_is_too_much_for_any_request_is_too_much_here() -> None:
    with pytest.raises(RequestRefused) as refused:
        read_new(raw({"items": [HI] * 5}), RequestLimits(max_values=10))
    assert refused.value.code == "request_too_large"


def test_only_known_extras_may_be_asked_for() -> None:
    check_includes([*INCLUDES])
    with pytest.raises(RequestRefused) as refused:
        check_includes(["reasoning.encrypted_content", "everything"])
    assert refused.value.param == "include"
