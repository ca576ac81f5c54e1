"""Events that wait are told in the end as if they had not, numbered as the client reads them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from isthmus.conduct.held import Held


class Notes:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def add(self, events: Any) -> None:
        self.events += events


def events(*kinds: str, start: int = 0) -> list[Any]:
    return [{"type": f"response.{kind}", "sequence_number": start + at, "n": at} for at, kind in enumerate(kinds)]


def test_what_says_nothing_goes_out_at_once() -> None:
    held = Held()
    told = held.take(events("created", "in_progress", "output_item.added"))
    assert [event["type"] for event in told] == ["response.created", "response.in_progress"]
    assert held.take(events("output_text.delta")) == []
    (beat,) = held.tell(events("in_progress", start=77))
    assert beat["sequence_number"] == 2
    rest = held.release(events("completed", start=99))
    assert [(event["type"], event["sequence_number"]) for event in rest] == [
        ("response.output_item.added", 3),
        ("response.output_text.delta", 4),
        ("response.completed", 5),
    ]


def test_another_answer_takes_its_place() -> None:
    held = Held()
    held.take(events("created", "in_progress", "output_text.delta"))
    told = held.replace(events("created", "in_progress", "output_text.delta", "completed"))
    assert [(event["type"], event["sequence_number"]) for event in told] == [
        ("response.output_text.delta", 2),
        ("response.completed", 3),
    ]


def test_one_of_which_nothing_was_told_has_a_whole_life() -> None:
    assert [event["sequence_number"] for event in Held().replace(events("created", "in_progress", "failed"))] == [
        0,
        1,
        2,
    ]


@given(st.lists(st.lists(st.sampled_from(["created", "in_progress", "output_text.delta", "beat"]), max_size=4)))
def test_numbers_have_no_gap_nothing_is_lost_and_it_is_noted_as_told(batches: list[list[str]]) -> None:
    notes = Notes()
    held, told, given_in = Held(notes), list[Any](), 0
    for batch in batches:
        made = events(*batch)
        given_in += len(made)
        told += held.tell(made) if "beat" in batch else held.take(made)
    told += held.release(events("completed"))
    assert [event["sequence_number"] for event in told] == list(range(given_in + 1))
    assert told[-1]["type"] == "response.completed"
    assert notes.events == told
