"""Traces of a kind are made of its shape: as those that have none, and whatever somebody writes into a request. (That
they are the same is shown by `test_packing`.)"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from isthmus.observe.traces import shapes as module
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.packing import Packed, pack_draft
from isthmus.observe.traces.shapes import Shapes
from isthmus.observe.traces.told import Reader
from observe.traces.test_packing import ACCEPTED, BODY, ITEM, SENT, draft, opened, trace_of


def packed_of(text: str = "hello", model: str = "m", **changed: Any) -> Packed:
    asked = {"model": model, "input": text, **changed}
    body = {**BODY, "messages": [{"role": "user", "content": text}]}
    sent = [(0.1, replace(SENT[1], body=body)), ACCEPTED]
    made = draft(planned_asked=asked, planned_items=({**ITEM, "content": text},), ended_steps=sent)
    packed = pack_draft(made)
    assert packed is not None
    return packed


def shapes() -> Shapes:
    bodies = Bodies(b"k" * 32)
    return Shapes(bodies, Reader(bodies))


def test_the_second_of_a_kind_has_a_shape_and_what_was_said_is_its_own() -> None:
    known = shapes()
    assert known.make(packed_of("one")) is None
    for text in ("two", "three " * 50, 'a "quoted" word\n and 100 % more', "\u2028 é 🙂", '{"cache_control": 1}'):
        packed = packed_of(text)
        record = known.make(packed)
        assert record is not None
        assert opened(record) == trace_of(packed)
    assert len(known._known) == 1


def test_each_kind_has_its_own() -> None:
    known = shapes()
    for model in ("m", "n"):
        for _ in range(2):
            record = known.make(packed_of(model=model))
    assert record is not None
    assert opened(record).summary.asked_model == "n"
    assert len(known._known) == 2


def test_what_looks_like_a_gap_is_a_word_like_any_other() -> None:
    known = shapes()
    for model in ("%b %s %%", "\n", '"', "\\n"):
        packed = packed_of(model=model)
        assert known.make(packed) is None
        record = known.make(packed)
        assert record is not None
        assert opened(record) == trace_of(packed)


def test_nobody_knows_the_marks_before() -> None:
    assert len({bytes(module._Marks().at("id")) for _ in range(3)}) == 3


def test_of_what_never_comes_again_little_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ONCE", 10)
    known = shapes()
    for number in range(35):
        assert known.make(packed_of(user=f"u{number}")) is None
        assert len(known._once) <= 10
    assert known._known == {}


@pytest.mark.parametrize("bound", [{"MOST_SHAPES": 3}, {"MOST_SHAPE_BYTES": 6_000}])
def test_what_is_remembered_is_bounded_by_number_and_by_bytes(monkeypatch: pytest.MonkeyPatch, bound: Any) -> None:
    for name, value in bound.items():
        monkeypatch.setattr(module, name, value)
    known = shapes()
    for number in range(12):
        packed = packed_of(user=f"u{number}")
        known.make(packed)
        record = known.make(packed)
        assert record is not None, "it is made anew where it was forgotten"
        assert opened(record) == trace_of(packed)
        assert len(known._known) <= 3
        held = sum(len(key) + (shape.weight if shape else 0) for key, shape in known._known.items())
        assert known._held == held


def test_where_nothing_is_said_there_is_no_shape_and_that_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known = shapes()
    packed = pack_draft(draft(planned_asked={"model": "m"}, planned_items=()))
    assert packed is not None
    assert [known.make(packed) for _ in range(3)] == [None] * 3
    monkeypatch.setattr(known, "_find", lambda packed: pytest.fail("it was looked for again"))
    assert known.make(packed) is None


def test_more_messages_than_a_trace_tells_are_left_to_whoever_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PIECES", 8)
    known = shapes()
    kinds = [draft(planned_asked={"model": "m", "input": "x"}, planned_items=(ITEM,) * count) for count in (1, 1, 5, 6)]
    made = [known.make(packed) for each in kinds if (packed := pack_draft(each)) is not None]
    assert [record is not None for record in made] == [False, True, True, False]


def test_the_fields_of_a_trace_stand_in_the_order_in_which_they_are_put(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HEAD", ("at", "id", *module._HEAD[2:]))
    known = shapes()
    known.make(packed_of())
    with pytest.raises(AssertionError, match="another order"):
        known.make(packed_of())
