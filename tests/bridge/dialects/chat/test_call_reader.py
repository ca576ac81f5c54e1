"""Tool-call fragments as vendors really send them; each case is one reported behaviour."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doubling import LINEAR, growth
from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, VendorExtra
from isthmus.bridge.dialects.chat.call_reader import CallReader


def read(*chunks: list[dict[str, Any]]) -> list[tuple[str | None, str, str]]:
    """(id, name, arguments) of each call that the fragments make."""
    reader = CallReader()
    out: list[Delta] = []
    for chunk in chunks:
        reader.read(chunk, out)
    reader.end(out)
    calls: dict[int, list[Any]] = {}
    for delta in out:
        if isinstance(delta, CallOpened):
            assert delta.slot not in calls, "a call is opened once"
            calls[delta.slot] = [delta.id, delta.name, ""]
        elif isinstance(delta, CallArguments):
            assert delta.slot in calls, "no arguments before the call is opened"
            calls[delta.slot][2] = delta.text if delta.replace else calls[delta.slot][2] + delta.text
    return [tuple(call) for call in calls.values()]


def f(index: Any = ..., id: Any = ..., name: Any = ..., args: Any = ...) -> dict[str, Any]:
    fragment: dict[str, Any] = {"function": {}}
    if index is not ...:
        fragment["index"] = index
    if id is not ...:
        fragment["id"] = id
    if name is not ...:
        fragment["function"]["name"] = name
    if args is not ...:
        fragment["function"]["arguments"] = args
    return fragment


CASES: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str | None, str, str]]]] = {
    "as OpenAI sends it": (
        [[f(0, "a", "x", "")], [f(0, args='{"k"')], [f(0, args=":1}")]],
        [("a", "x", '{"k":1}')],
    ),
    "null id and name on later fragments": (
        [[f(0, "a", "x", "")], [f(0, None, None, "{}")]],
        [("a", "x", "{}")],
    ),
    "empty id and name on later fragments": (
        [[f(0, "a", "x", "")], [f(0, "", "", "{}")]],
        [("a", "x", "{}")],
    ),
    "two parallel, interleaved": (
        [[f(0, "a", "x", "")], [f(1, "b", "y", "")], [f(0, args='{"a":')], [f(1, args="{}")], [f(0, args="1}")]],
        [("a", "x", '{"a":1}'), ("b", "y", "{}")],
    ),
    "both calls carry index 0, ids differ": (
        [[f(0, "a", "x", '{"a":')], [f(0, args="1}")], [f(0, "b", "x", "{}")]],
        [("a", "x", '{"a":1}'), ("b", "x", "{}")],
    ),
    "no index, ids on the first fragment only": (
        [[f(id="a", name="x", args="")], [f(args="{}")], [f(id="b", name="y", args="{")], [f(args="}")]],
        [("a", "x", "{}"), ("b", "y", "{}")],
    ),
    "no index, two whole calls in one chunk": (
        [[f(id="a", name="x", args="{}"), f(id="b", name="y", args='{"q":2}')]],
        [("a", "x", "{}"), ("b", "y", '{"q":2}')],
    ),
    "null index": ([[f(None, "a", "x", "{")], [f(None, args="}")]], [("a", "x", "{}")]),
    "index as a string": ([[f("0", "a", "x", "{")], [f("0", args="}")]], [("a", "x", "{}")]),
    "no id at all, two names on one index": (
        [[f(0, name="x", args="{}")], [f(0, name="y", args="{}")]],
        [(None, "x", "{}"), (None, "y", "{}")],
    ),
    "no id, the same tool twice, whole each time": (
        [[f(0, name="x", args='{"a":1}')], [f(0, name="x", args='{"a":2}')]],
        [(None, "x", '{"a":1}'), (None, "x", '{"a":2}')],
    ),
    "id and name repeated on every fragment": (
        [[f(0, "a", "x", '{"k"')], [f(0, "a", "x", ":1")], [f(0, "a", "x", "}")]],
        [("a", "x", '{"k":1}')],
    ),
    "an id of its own on each fragment, the name on the first": (
        [[f(0, "a", "x")], [f(0, "b", args='{"k"')], [f(0, "c", None, ":1}")], [f(1, "d", "y", "{}")]],
        [("a", "x", '{"k":1}'), ("d", "y", "{}")],
    ),
    "arguments told cumulatively": (
        [[f(0, "a", "x", '{"k"')], [f(0, "a", "x", '{"k":1')], [f(0, "a", "x", '{"k":1}')]],
        [("a", "x", '{"k":1}')],
    ),
    "the whole call told again at the end": (
        [[f(0, "a", "x", '{"k":')], [f(0, args="1}")], [f(0, "a", "x", '{"k":1}')]],
        [("a", "x", '{"k":1}')],
    ),
    "name comes after the first arguments": (
        [[f(0, "a", args="{")], [f(0, name="x", args="}")]],
        [("a", "x", "{}")],
    ),
    "no name ever: told of at the end": ([[f(0, "a", args="{}")]], [("a", "", "{}")]),
    "arguments as an object": ([[f(0, "a", "x", {"k": 1})]], [("a", "x", '{"k":1}')]),
    "arguments null": ([[f(0, "a", "x", None)]], [("a", "x", "")]),
    "back to an earlier call that shares the index": (
        [[f(0, "a", "x", "{")], [f(0, "b", "y", "{}")], [f(0, "a", args="}")]],
        [("a", "x", "{}"), ("b", "y", "{}")],
    ),
    "custom tool call of newer chat servers": (
        [[{"index": 0, "id": "a", "type": "custom", "custom": {"name": "x", "input": "raw"}}]],
        [("a", "x", "raw")],
    ),
    "garbage": ([[None, 3, {}, {"function": 3}]], [(None, "", "")]),  # type: ignore[list-item]
}


@pytest.mark.parametrize(("chunks", "expected"), CASES.values(), ids=CASES.keys())
def test_fragments_become_calls(
    chunks: list[list[dict[str, Any]]], expected: list[tuple[str | None, str, str]]
) -> None:
    assert read(*chunks) == expected


def test_arguments_nested_beyond_reason_are_still_a_call() -> None:
    deep = '{"k":' * 20_000
    assert read([f(0, "a", "x", deep)], [f(0, "a", "x", "}")]) == [("a", "x", deep + "}")]


def test_id_and_name_on_every_fragment_do_not_read_the_whole_text_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    read_so_far: list[int] = []
    decode = msgspec.json.decode
    monkeypatch.setattr(msgspec.json, "decode", lambda text: (read_so_far.append(len(text)), decode(text))[1])
    pieces = ['{"k":"', *["word "] * 500, '"}']
    assert read(*([f(0, "a", "x", piece)] for piece in pieces)) == [("a", "x", "".join(pieces))]
    assert sum(read_so_far) <= 2 * len("".join(pieces))


def test_fragments_that_are_no_list_are_ignored() -> None:
    reader = CallReader()
    out: list[Delta] = []
    reader.read({"index": 0}, out)
    reader.read("x", out)
    assert out == []


def test_vendor_extras_of_a_call_keep_their_slot() -> None:
    reader = CallReader()
    out: list[Delta] = []
    reader.read([{**f(0, "a", "x", "{}"), "extra_content": {"google": {"thought_signature": "s"}}}], out)
    assert out[-1] == VendorExtra("extra_content", {"google": {"thought_signature": "s"}}, 0)


ARGUMENTS = st.dictionaries(st.text(max_size=4), st.text(max_size=8) | st.integers(), max_size=3).map(
    lambda value: json.dumps(value, ensure_ascii=False)
)


@given(st.data(), st.lists(st.tuples(st.sampled_from(["x", "y"]), ARGUMENTS), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_any_interleaving_of_well_formed_fragments_gives_the_same_calls(
    data: st.DataObject, calls: list[tuple[str, str]]
) -> None:
    queues = []
    for index, (name, arguments) in enumerate(calls):
        cut = data.draw(st.integers(0, len(arguments)))
        queues.append(
            [f(index, f"id{index}", name, ""), f(index, args=arguments[:cut]), f(index, args=arguments[cut:])]
        )
    chunks: list[list[dict[str, Any]]] = []
    opened = 0
    while any(queues):
        ready = [i for i, queue in enumerate(queues) if queue and i <= opened]
        choice = data.draw(st.sampled_from(ready))
        chunks.append([queues[choice].pop(0)])
        opened = max(opened, choice + 1)
    assert read(*chunks) == [(f"id{i}", name, arguments) for i, (name, arguments) in enumerate(calls)]


def test_a_second_name_on_the_same_index_is_a_second_call_never_the_rest_of_the_first() -> None:
    """The protocol sends names whole; to glue them would merge parallel calls of vendors that send index 0 for all."""
    out: list[Delta] = []
    reader = CallReader()
    for name in ("get_", "weather"):
        reader.read([{"index": 0, "function": {"name": name, "arguments": ""}}], out)
    assert [delta.name for delta in out if isinstance(delta, CallOpened)] == ["get_", "weather"]


def test_fragments_with_new_ids_whose_arguments_begin_with_a_bracket_are_read_in_linear_time() -> None:
    piece = "[" + "[1]," * 200 + "[1]"

    def work(many: int) -> None:
        reader, out = CallReader(), list[Delta]()
        reader.read([f(0, "first", "f", piece)], out)
        for number in range(many):
            reader.read([f(0, f"id{number}", "", piece)], out)

    assert growth(work, 1500) < LINEAR
