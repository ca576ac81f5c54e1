"""The types of the way out say what the wire oracle demands: same events, same items, same fields."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

from isthmus.protocol.events import Event
from isthmus.protocol.items import OutputItem
from isthmus.protocol.response import FinishedResponse
from wire.items import ITEMS
from wire.objects import EVENTS, RESPONSE

NOT_SENT = {"error", "response.reasoning.delta", "response.reasoning.done"}
"""Judged by the oracle where others send them."""


def by_type(union: Any) -> dict[str, Any]:
    return {name: shape for shape in get_args(union) for name in get_args(get_type_hints(shape)["type"])}


SHAPES, KINDS = by_type(Event), by_type(OutputItem)


@pytest.mark.parametrize("name", sorted({*EVENTS} - NOT_SENT))
def test_every_event_that_the_oracle_knows_has_a_type(name: str) -> None:
    required = set(EVENTS[name]["required"])
    shape = SHAPES[name]
    own = {"partial_image_b64", "partial_image_index", "delta", "code", "arguments"} if "_call" in name else set()
    assert shape.__required_keys__ - {"type"} <= required
    assert required - own <= shape.__required_keys__


def test_no_type_names_an_event_that_the_oracle_does_not_know() -> None:
    assert set(SHAPES) <= set(EVENTS)


@pytest.mark.parametrize("name", sorted({*ITEMS} - {"compaction"}))
def test_every_item_that_the_oracle_knows_has_a_type(name: str) -> None:
    properties = set(ITEMS[name]["properties"])
    shape = KINDS[name]
    assert {"type", "id", "status"} <= shape.__required_keys__ <= properties
    assert set(ITEMS[name]["required"]) <= shape.__required_keys__ | shape.__optional_keys__


def test_a_finished_response_has_every_required_field() -> None:
    assert set(RESPONSE["required"]) <= FinishedResponse.__required_keys__
    assert FinishedResponse.__required_keys__ | FinishedResponse.__optional_keys__ <= set(RESPONSE["properties"])
