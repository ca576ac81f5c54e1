"""Server-sent events: whole, byte by byte, cut anywhere; every line end; nothing lost, nothing doubled."""

from __future__ import annotations

import gc
import json
from itertools import groupby, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doubling import LINEAR, growth
from isthmus.bridge.sse import PING, SseParser, encode_all_data, encode_data, encode_event, encode_events
from isthmus.errors import UpstreamFailed


def parse(data: bytes, cuts: list[int] | None = None) -> list[bytes]:
    parser = SseParser()
    events: list[bytes] = []
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    for start, stop in pairwise(edges):
        events += parser.feed(data[start:stop])
    return events + parser.end()


CASES = {
    "one event": (b"data: a\n\n", [b"a"]),
    "no space after the colon": (b"data:a\n\n", [b"a"]),
    "only one space is removed": (b"data:  a\n\n", [b" a"]),
    "names": (b"event: x\ndata: a\n\ndata: b\n\n", [b"a", b"b"]),
    "each with its name": (b"event: x\ndata: a\n\nevent: y\ndata: b\n\n", [b"a", b"b"]),
    "named: two lines, then none": (b"event: x\ndata: a\ndata: b\n\nevent: y\n\n", [b"a\nb"]),
    "named: one, then two without a name": (b"event: x\ndata: a\n\ndata: b\ndata: c\n\n", [b"a", b"b\nc"]),
    "named, of nothing": (b"event: x\ndata: \n\nevent: x\ndata: a\n\n", [b"", b"a"]),
    "last of several on its way": (b"data: a\n\ndata: b\n\ndata: c", [b"a", b"b", b"c"]),
    "multi-line data": (b"data: a\ndata: b\n\n", [b"a\nb"]),
    "empty data line": (b"data\ndata: b\n\n", [b"\nb"]),
    "comments": (b": OPENROUTER PROCESSING\n\ndata: a\n: ping\n\n", [b"a"]),
    "CRLF": (b"event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    "CR": (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
    "ids": (b"id: 7\ndata: a\n\ndata: b\n\n", [b"a", b"b"]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    "event without data is no event": (b"event: x\n\ndata: a\n\n", [b"a"]),
    "last blank line missing": (b"data: a\n\ndata: b\n", [b"a", b"b"]),
    "last line end missing": (b"data: a\n\ndata: b", [b"a", b"b"]),
    "unknown fields": (b"retry: 10\nfoo: bar\ndata: a\n\n", [b"a"]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize(("data", "expected"), CASES.values(), ids=CASES.keys())
def test_events_are_read_whole_and_byte_by_byte(data: bytes, expected: list[bytes]) -> None:
    assert parse(data) == expected
    assert parse(data, list(range(len(data)))) == expected


WHOLE = {name: case for name, case in CASES.items() if not name.startswith("last ")}


@pytest.mark.parametrize(("data", "expected"), WHOLE.values(), ids=WHOLE.keys())
def test_more_bytes_behind_change_nothing_before(data: bytes, expected: list[bytes]) -> None:
    events = parse(data + b"data: behind\n\n")
    assert events[:-1] == expected
    assert events[-1] == b"behind"


@given(
    st.lists(st.text(max_size=20), min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 10_000), max_size=12),
)
@settings(max_examples=300, deadline=None)
def test_cutting_never_changes_the_events(texts: list[str], newline: str, cuts: list[int]) -> None:
    frames = [json.dumps(text, ensure_ascii=False) for text in texts]
    data = "".join(f"data: {frame}{newline}{newline}" for frame in frames).encode()
    expected = [frame.encode() for frame in frames]
    assert parse(data) == expected
    assert parse(data, cuts) == expected


def test_a_utf8_character_cut_in_the_middle_survives() -> None:
    data = 'data: {"é": "𝄞"}\n\n'.encode()
    for cut in range(len(data)):
        [event] = parse(data, [cut])
        assert json.loads(event) == {"é": "𝄞"}


def test_an_endless_line_is_refused() -> None:
    parser = SseParser(max_event=100)
    with pytest.raises(UpstreamFailed, match="more than 100 bytes"):
        for _ in range(50):
            parser.feed(b"data: " + b"x" * 10)


def test_an_endless_event_of_many_lines_is_refused() -> None:
    parser = SseParser(max_event=100)
    with pytest.raises(UpstreamFailed, match="more than 100 bytes"):
        for _ in range(50):
            parser.feed(b"data: xxxxxxxxxx\n")


@pytest.mark.parametrize("line", [b"data:\n", b"data\n", b"data: \n"])
def test_an_event_of_empty_lines_that_never_ends_is_refused(line: bytes) -> None:
    parser = SseParser(max_event=100_000)
    with pytest.raises(UpstreamFailed, match="more than 100000 bytes"):
        for _ in range(100):
            parser.feed(line * 100)


def test_a_large_event_of_too_many_values_is_refused_and_a_long_text_is_not() -> None:
    parser = SseParser(max_values=1000)
    assert parser.feed(b'data: ["%b"]\n\n' % (b"a,[" * 50_000)) != []
    with pytest.raises(UpstreamFailed, match="more than 1,000 values"):
        parser.feed(b"data: [%b1]\n\n" % (b"1," * 50_000))


@pytest.mark.parametrize("size", [1, 100, 16_384])
def test_one_event_is_read_in_linear_time_however_it_is_cut(size: int) -> None:
    def work(count: int) -> None:
        parser = SseParser()
        parser.feed(b"data: ")
        for _ in range(count):
            parser.feed(b"x" * size)
        parser.feed(b"\n\n")

    # Two megabytes: with eight it is 2.5 in a fresh process and was up to 3.5 late in a whole suite, why is not known.
    # A reader whose work grows with the square is at 4 with either.
    assert growth(work, 128 if size > 1000 else 20_000) < LINEAR


@pytest.mark.parametrize("line", [b"data: x\n", b"data: x\r", b": hm\n", b"\r", b"data: x\r\n"])
def test_many_lines_are_read_in_linear_time(line: bytes) -> None:
    def work(count: int) -> None:
        parser = SseParser()
        for _ in range(count):
            parser.feed(line)

    assert growth(work, 20_000) < LINEAR


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=30), max_size=4))
@settings(max_examples=100, deadline=None)
def test_what_is_written_is_read_back(fields: dict[str, str]) -> None:
    event = {**fields, "type": "response.created"}
    data = encode_event(event)
    assert data.endswith(b"\n\n")
    assert data.count(b"\n") == 3  # one piece, two lines: no newline can hide in the JSON
    [read] = parse(data)
    assert json.loads(read) == event
    assert data.startswith(b"event: response.created\n")


def test_chat_chunks_and_pings_have_no_event_line() -> None:
    assert encode_data({"a": 1}) == b'data: {"a":1}\n\n'
    assert parse(PING) == []


class Counted(bytes):
    """Bytes that know how often they were copied into something longer."""

    copied = 0

    def __radd__(self, before: bytes) -> bytes:
        Counted.copied += len(before) + len(self)
        return bytes(before) + bytes(self)


def test_a_large_event_in_many_reads_is_put_together_once() -> None:
    Counted.copied = 0
    parser, piece = SseParser(), b"x" * 16_384
    assert parser.feed(b"data: ") == []
    for _ in range(512):
        assert parser.feed(Counted(piece)) == []
    [event] = parser.feed(b"\n\n")
    assert event == piece * 512
    assert Counted.copied <= 2 * 512 * len(piece), "each byte is copied a fixed number of times"


EVENTS = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["a", "response.b", "c"]), "delta": st.text(max_size=8)}),
    max_size=12,
)


@given(EVENTS, st.sampled_from([0, 1_000]))
def test_a_batch_is_written_as_its_events_are_one_by_one(events: list[dict[str, str]], size: int) -> None:
    assert encode_events(events, size) == b"".join(map(encode_event, events))
    assert encode_all_data(events, size) == b"".join(map(encode_data, events))


def test_nothing_is_held_on_to_when_a_batch_was_written() -> None:
    """msgspec keeps every iterable for ever that it writes lines of, unless it is a list or a tuple."""
    events = [{"type": "a", "delta": "x"}, {"type": "a", "delta": "y"}, {"type": "b"}]
    encode_events(events)
    held = sum(isinstance(each, groupby) for each in gc.get_objects())
    for _ in range(5):
        encode_events(events)
    assert sum(isinstance(each, groupby) for each in gc.get_objects()) <= held
