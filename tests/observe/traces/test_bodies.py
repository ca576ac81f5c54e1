"""A body's pieces: in wire order, as long as its bytes, the same for the same bytes, and nothing to be guessed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.observe.traces import bodies as module
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.seen import Seen

ONE, TWO = Bodies(b"k" * 32), Bodies(b"K" * 32)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
values = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), texts, st.lists(st.integers(), max_size=2))
messages = st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "tool"]), "content": texts}), max_size=4)
fields = st.dictionaries(texts, st.one_of(values, messages), max_size=5)


@given(fields)
def test_its_length_is_that_of_its_bytes(body: dict[str, Any]) -> None:
    assert ONE.read(body).bytes == len(msgspec.json.encode(body))


@given(fields)
def test_the_same_bytes_have_the_same_hashes_and_others_on_another_installation(body: dict[str, Any]) -> None:
    again = msgspec.json.decode(msgspec.json.encode(body))
    assert ONE.read(body) == ONE.read(again)
    assert not {piece.hash for piece in ONE.read(body).pieces} & {piece.hash for piece in TWO.read(body).pieces}


@given(messages, messages, messages)
def test_two_bodies_share_pieces_as_far_as_they_share_messages(before: Any, one: Any, two: Any) -> None:
    first, second = ({"model": "m", "messages": [*before, *rest]} for rest in (one, two))
    pieces = [ONE.read(body).pieces for body in (first, second)]
    same = 0
    while same < min(map(len, pieces)) and pieces[0][same] == pieces[1][same]:
        same += 1
    shared = 0
    sent = [[msgspec.json.encode(each) for each in body["messages"]] for body in (first, second)]
    while shared < min(map(len, sent)) and sent[0][shared] == sent[1][shared]:
        shared += 1
    if first["messages"] and second["messages"]:
        assert same == 1 + shared


def test_messages_items_and_tools_are_pieces_of_their_own_with_their_role() -> None:
    body = {
        "model": "m",
        "tools": [{"type": "function", "name": "f"}],
        "messages": [{"role": "user", "content": "a"}, {"role": {"odd": 1}, "content": "b"}],
        "stop": ["a", "b"],
        "empty": [],
    }
    read = ONE.read(body)
    assert [(piece.path, piece.role) for piece in read.pieces] == [
        ("model", ""),
        ("tools[0]", "f"),
        ("messages[0]", "user"),
        ("messages[1]", ""),
        ("stop", ""),
        ("empty", ""),
    ]


def test_of_a_very_long_body_the_rest_is_only_counted(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MOST_PIECES", 3)
    monkeypatch.setattr(module, "_BREATH", 2)
    body = {"model": "m", "messages": [{"role": "user", "content": str(number)} for number in range(10)]}
    read = ONE.read(body)
    assert (len(read.pieces), read.more, read.bytes) == (3, 8, len(msgspec.json.encode(body)))


def test_what_is_read_again_is_the_same_also_when_it_was_forgotten_meanwhile() -> None:
    bodies = Bodies(b"k" * 32)
    marked = {"role": "user", "content": "a", "cache_control": {"type": "ephemeral"}}
    body = {"model": "m", "messages": [marked, *({"role": "user", "content": str(number)} for number in range(150))]}
    first = bodies.read(body)
    assert bodies.read(body) == first
    bodies._seen = Seen(most=16)
    assert bodies.read(body) == first == bodies.read(body) == ONE.read(body)


@pytest.mark.parametrize(("count", "remembered"), [(1, 1), (7, 1), (8, 9), (200, 201)])
def test_messages_are_remembered_where_there_are_many_and_fields_always(count: int, remembered: int) -> None:
    bodies = Bodies(b"k" * 32)
    body = {"model": "m", "messages": [{"role": "user", "content": str(number)} for number in range(count)]}
    first = bodies.read(body)
    assert bodies._seen.held[0] == remembered
    again = bodies.read(body)
    assert again == first
    assert sum(new is old for new, old in zip(again.pieces, first.pieces, strict=True)) == remembered


def test_a_field_and_a_member_of_a_list_are_not_taken_for_each_other() -> None:
    told = ONE.read({"input": {"role": "user"}, "messages": [{"role": "user"}]}).pieces
    assert [(piece.path, piece.role) for piece in told] == [("input", ""), ("messages[0]", "user")]
