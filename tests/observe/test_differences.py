"""Two plans side by side: nothing that differs is kept quiet, nothing that is the same is told."""

from __future__ import annotations

import copy
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.observe.differences import MOST, Difference, compare_json, compare_plans, first_words
from isthmus.ports.traced import TracedDecision

LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", "hello"])
NAMES = st.sampled_from(["role", "content", "x"])
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)


@given(JSON)
def test_what_is_the_same_has_no_differences(value: Any) -> None:
    assert list(compare_json(value, copy.deepcopy(value))) == []


@given(JSON, JSON)
def test_the_differences_lead_from_one_to_the_other(before: Any, after: Any) -> None:
    found = list(compare_json(before, after))
    assert encode(patched(before, found)) == encode(after)


@given(st.lists(st.integers(), max_size=8, unique=True), st.integers(0, 8))
def test_one_more_element_is_one_difference_wherever_it_stands(elements: list[int], place: int) -> None:
    longer = [*elements[:place], "new", *elements[place:]]
    where = min(place, len(elements))
    assert list(compare_json({"m": elements}, {"m": longer})) == [Difference(f"m[{where}]", "added", after="new")]
    assert list(compare_json({"m": longer}, {"m": elements})) == [Difference(f"m[{where}]", "removed", before="new")]


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.0), (0, False), ("1", 1), (None, False)])
def test_python_may_call_them_equal_a_server_does_not(before: Any, after: Any) -> None:
    assert list(compare_json({"a": before}, {"a": after})) == [Difference("a", "changed", before, after)]


def test_a_field_is_named_by_its_whole_path() -> None:
    before = {"messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]}
    after = {"messages": [{"role": "developer", "content": "a"}, {"role": "user", "content": "b"}], "top_p": 1}
    assert list(compare_json(before, after)) == [
        Difference("messages[0].role", "changed", "system", "developer"),
        Difference("top_p", "added", after=1),
    ]


def test_messages_are_compared_with_those_of_the_same_speaker() -> None:
    chat = [{"role": role, "content": role} for role in ("system", "user", "assistant", "user")]
    blocks = [{"role": role, "content": [{"text": role}]} for role in ("user", "assistant", "user")]
    found = list(compare_json({"messages": chat}, {"messages": blocks}))
    assert [(each.path, each.kind) for each in found] == [
        ("messages[0]", "removed"),
        ("messages[0].content", "changed"),
        ("messages[1].content", "changed"),
        ("messages[2].content", "changed"),
    ]


def test_two_long_lists_without_anything_in_common_are_compared_place_by_place() -> None:
    found = list(compare_json({"m": list(range(2000))}, {"m": list(range(-2000, 0))}))
    assert [found[0], len(found)] == [Difference("m[0]", "changed", 0, -2000), 2000]


def test_more_differences_than_anybody_reads_are_cut_and_said_to_be() -> None:
    bodies: tuple[dict[str, int], dict[str, int]] = ({f"f{n}": 0 for n in range(MOST + 1)}, {})
    made = compare_plans((), (), bodies=bodies)
    assert [len(made.body or ()), made.more] == [MOST, True]
    del bodies[0]["f0"]
    assert not compare_plans((), (), bodies=bodies).more


def test_a_decision_may_come_go_or_change() -> None:
    kept = TracedDecision("model", "supported", "as it is")
    clamped = TracedDecision("temperature", "degraded", "at most 1", sends=("temperature",), value=1.0)
    sent = TracedDecision("temperature", "supported", sends=("temperature",), value=1.5)
    gone = TracedDecision("user", "ignored", "there is no such field")
    new = TracedDecision("seed", "ignored", "there is no such field")
    made = compare_plans((kept, clamped, gone), (sent, kept, new))
    assert [(change.path, change.kind) for change in made.decisions] == [
        ("temperature", "changed"),
        ("seed", "added"),
        ("user", "removed"),
    ]
    assert (made.decisions[0].before, made.decisions[0].after) == (clamped, sent)
    assert (made.same, made.body) == (1, None)


def test_the_reason_counts_where_something_is_lost() -> None:
    def decided(action: Any, reason: str) -> tuple[TracedDecision, ...]:
        return (TracedDecision("seed", action, reason),)

    assert compare_plans(decided("supported", "a"), decided("supported", "b")).same == 1
    assert compare_plans(decided("ignored", "a"), decided("ignored", "a")).same == 1
    assert compare_plans(decided("ignored", "a"), decided("ignored", "b")).decisions[0].kind == "changed"


def test_several_decisions_about_one_path_are_compared_in_their_order() -> None:
    first, second = (TracedDecision("input[0]", "degraded", reason) for reason in "ab")
    assert compare_plans((first, second), (first, second)).decisions == ()
    assert [change.kind for change in compare_plans((first,), (first, second)).decisions] == ["added"]
    assert compare_plans((first, second), (first,)).decisions[0].before == second


@given(st.text(), st.text())
def test_two_texts_are_shown_where_they_part(one: str, other: str) -> None:
    shown = first_words(one, other)
    assert (shown[0] == shown[1]) == (one == other)
    assert all(each.strip("…") in text for each, text in zip(shown, (one, other), strict=True))
    assert all(len(each) <= 42 for each in shown)


def test_what_stands_before_a_difference_is_shown_as_well() -> None:
    text = "You are a careful engineer. It is {} o'clock, and all is well in this town."
    assert first_words(text.format("09:41"), text.format("09:42")) == (
        "…engineer. It is 09:41 o'clock, and all i…",
        "…engineer. It is 09:42 o'clock, and all i…",
    )


def test_all_of_it_is_json() -> None:
    one = TracedDecision("seed", "ignored", "no")
    made = compare_plans((), (one,), bodies=({"a": 1}, {"a": 2}))
    assert msgspec.json.decode(msgspec.json.encode(made.to_json()))["body"] == [
        {"path": "a", "kind": "changed", "before": 1, "after": 2}
    ]


def encode(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def patched(before: Any, found: list[Difference]) -> Any:
    return apply(copy.deepcopy(before), [(steps(difference.path), difference) for difference in found])


def apply(value: Any, found: list[tuple[list[Any], Difference]]) -> Any:
    """`value` with the differences in it: first what went (from behind), then what came, then what changed inside."""
    inside: dict[Any, list[tuple[list[Any], Difference]]] = {}
    for path, difference in found:
        if not path:
            return difference.after
        if len(path) > 1 or difference.kind == "changed":
            inside.setdefault(path[0], []).append((path[1:], difference))
    here = [(path[0], difference) for path, difference in found if len(path) == 1]
    for place, _ in reversed([each for each in here if each[1].kind == "removed"]):
        del value[place]
    for place, difference in [each for each in here if each[1].kind == "added"]:
        if isinstance(value, list):
            value.insert(place, difference.after)
        else:
            value[place] = difference.after
    for place, differences in inside.items():
        value[place] = apply(value[place], differences)
    return value


def steps(path: str) -> list[Any]:
    return [int(found[1]) if found[1] else found[0] for found in re.finditer(r"\[(\d+)\]|[^.\[\]]+", path)]
