"""A stream told again from its outline has the same events and the same numbers, whatever it was."""

from __future__ import annotations

import zlib
from array import array
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.deltas import (
    Annotation,
    CallArguments,
    CallOpened,
    Delta,
    Finished,
    HostedCall,
    Reasoning,
    Refusal,
    Text,
)
from isthmus.gateway.outline import Outline, tell_as_told
from isthmus.testing.fold import plan_for, stream

TOOLS = [{"type": "function", "name": "f"}, {"type": "custom", "name": "note"}, {"type": "shell"}]
words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12)
citation: Any = {"type": "url_citation", "url": "https://x.test", "title": "", "start_index": 0, "end_index": 1}
search: Any = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}
deltas = st.one_of(
    words.map(Text),
    words.map(Reasoning),
    words.map(Refusal),
    st.just(Annotation(citation)),
    st.just(HostedCall(search)),
)
calls = st.lists(st.tuples(st.sampled_from(["f", "note", "shell"]), st.lists(words, max_size=3)), max_size=2)


def told(said: list[Delta], made: list[tuple[str, list[str]]], finish: str) -> tuple[list[Any], Any]:
    opened: list[Delta] = [CallOpened(slot, f"call_{slot}", name) for slot, (name, _) in enumerate(made)]
    pieces = [CallArguments(slot, piece) for slot, (_, texts) in enumerate(made) for piece in texts]
    interleaved = sorted(pieces, key=lambda delta: len(delta.text))
    batches = [[delta] for delta in [*said, *opened, *interleaved, Finished(finish)]]
    return stream(batches, plan=plan_for({"tools": TOOLS, "stream": True}))


@given(st.lists(deltas, max_size=6), calls, st.sampled_from(["stop", "length"]))
@settings(max_examples=300, deadline=None)
def test_it_is_told_as_it_was(said: list[Delta], made: list[tuple[str, list[str]]], finish: str) -> None:
    events, response = told(said, made, finish)
    outline = Outline()
    outline.add(events)
    again = tell_as_told(response, outline.pack())
    if again is None:  # not every stream can be had back; then it is not told wrongly either
        assert finish == "length" or made or any(isinstance(delta, Annotation | HostedCall) for delta in said)
        return
    assert [strip(event) for event in again] == [strip(event) for event in events]


def strip(event: Any) -> Any:
    """Snapshots of a response before its end show less."""
    return {name: value for name, value in event.items() if name not in ("response", "item", "part", "logprobs")}


def test_plain_answers_always_come_back() -> None:
    for said in (
        [Text("a"), Text("bc")],
        [Reasoning("x"), Reasoning("y"), Text("z")],
        [Text("a"), Annotation(citation)],
    ):
        events, response = told(list(said), [("f", ["{", "}"])], "stop")
        outline = Outline()
        outline.add(events)
        again: Any = tell_as_told(response, outline.pack())
        assert again is not None
        assert [event["sequence_number"] for event in again] == [event["sequence_number"] for event in events]


def test_nonsense_is_not_told() -> None:
    _, response = told([Text("a")], [], "stop")
    assert tell_as_told(response, b"nonsense") is None
    assert tell_as_told(response, Outline().pack()) is None


def test_it_is_kept_as_it_always_was() -> None:
    """Outlines of years ago are read still: two numbers for each event, 0 where it has none."""
    outline = Outline()
    events: list[Any] = [{}, {"output_index": 0}, {"output_index": 3, "delta": ""}, {"output_index": 3, "delta": "ab"}]
    outline.add(events[:1])
    outline.add(events[1:])
    kept = array("I")
    kept.frombytes(zlib.decompress(outline.pack()))
    assert kept.tolist() == [0, 0, 1, 0, 4, 1, 4, 3]
