"""JSON edited in place: one member goes in or out, and no other byte moves."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.cli.json_document import parse_json, read_object, remove_member, set_member
from isthmus.errors import ConfigError
from json_documents import json_objects


@given(json_objects(), st.sampled_from(["env", "new", 'a "b" \\ ü', ""]))
@settings(max_examples=150, deadline=None)
def test_a_member_that_goes_in_and_out_again_leaves_every_byte(text: str, name: str) -> None:
    place = read_object(text)
    assert place is not None
    hollow = text[place.opens : place.closes]
    before = json.loads(text)
    new = set_member(text, (), name, '{"x": [1, "}"]}')
    assert json.loads(new) == {**before, name: {"x": [1, "}"]}}
    if name in before:
        member = place.find(name)
        assert member is not None
        assert set_member(new, (), name, text[member.value : member.end]) == text
    else:
        assert remove_member(new, (), name, hollow) == text


@given(json_objects())
@settings(max_examples=150, deadline=None)
def test_every_member_is_found_where_it_stands(text: str) -> None:
    place = read_object(text)
    assert place is not None
    found = {each.name: json.loads(text[each.value : each.end]) for each in place.members}
    assert found == json.loads(text)
    for name in found:
        left = {each.name: each for each in place.members if each is not place.find(name)}
        assert list(json.loads(remove_member(text, (), name))) == list(dict.fromkeys(left))


def test_objects_inside_are_reached_by_their_path_and_only_they() -> None:
    text = '{ "a": [1], "env": {"x": {"y": "1"}},\t"b": {} }'
    assert set_member(text, ("env", "x"), "z", "2") == '{ "a": [1], "env": {"x": {"y": "1","z": 2}},\t"b": {} }'
    assert set_member(text, ("b",), "z", "2") == '{ "a": [1], "env": {"x": {"y": "1"}},\t"b": {\n    "z": 2\n  } }'
    assert remove_member(text, ("env",), "x", "\n") == '{ "a": [1], "env": {\n},\t"b": {} }'
    assert remove_member(text, ("env",), "nothing") == text
    assert [read_object(text, path) for path in (("a",), ("none",), ("env", "x", "y"))] == [None, None, None]


def test_of_two_members_with_one_name_the_last_is_the_one() -> None:
    text = '{"env": {"a": "1"}, "env": {"a": "2", "a": "3"}}'
    assert json.loads(set_member(text, ("env",), "a", '"4"')) == {"env": {"a": "4"}}
    assert remove_member(text, ("env",), "a") == '{"env": {"a": "1"}, "env": {"a": "2"}}'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1,\n "b" 2}', "at line 2, column 6"),
        ('{\n  // mine\n  "a": 1\n}', "at line 2, column 3"),
        ("{'a': 1}", "at line 1, column 2"),
        ("", "at line 1, column 1"),
        ('{"a": NaN}', "`NaN` is no JSON number"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_what_is_not_json_is_refused_with_the_place(text: str, place: str) -> None:
    with pytest.raises(ConfigError, match=f"`my.json` is not valid JSON .*{place}"):
        parse_json(text, "my.json")


@pytest.mark.parametrize("text", ["[]", '"{"', "1"])
def test_what_is_no_object_has_no_members(text: str) -> None:
    assert read_object(text) is None
