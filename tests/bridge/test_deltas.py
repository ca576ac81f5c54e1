"""The facts that dialects tell: values that nobody changes, and tokens that add up."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from isthmus.bridge import deltas
from isthmus.bridge.deltas import Delta, ItemBegan, PartBegan, PartKind, Text, Usage
from isthmus.testing.fold import fold


def test_a_delta_is_a_value() -> None:
    assert Text("a") == Text("a") != Text("b")
    told = Text("a")
    with pytest.raises(AttributeError, match="immutable"):
        told.text = "b"  # type: ignore[misc]


def test_every_delta_of_the_module_is_one_that_the_reply_may_be_given() -> None:
    told = {kind for kind in vars(deltas).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)}
    assert {kind.__name__ for kind in told - set(get_args(Delta))} == {"Usage"}


@pytest.mark.parametrize("kind", get_args(PartKind))
def test_every_kind_of_part_can_begin(kind: PartKind) -> None:
    item = "message" if kind in ("output_text", "refusal") else "reasoning"
    output = fold(ItemBegan(item), PartBegan(kind))["output"]  # type: ignore[arg-type]
    parts = [part["type"] for each in output for part in (*each.get("summary", ()), *each.get("content", ()))]
    assert kind in parts


def test_usage_adds_up_field_by_field() -> None:
    first = Usage(1, 2, 3, cached_tokens=4, reasoning_tokens=5, cache_write_tokens=6)
    second = Usage(10, 20, 30, cached_tokens=40, reasoning_tokens=50, cache_write_tokens=60, estimated=True)
    assert first + second == Usage(11, 22, 33, 44, 55, 66, estimated=True)
    assert (first + first).estimated is False
