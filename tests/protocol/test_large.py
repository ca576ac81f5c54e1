"""In steps as in one go: the same values, the same bytes, the same refusals."""

from __future__ import annotations

import sys
import threading
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.protocol.large import STEP, decode_large, encode_large

TEXTS = st.text(st.sampled_from('aé€😀"\\/\n\x01\u2028\x7f'), max_size=200)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(VALUES, st.integers(32, 64), st.sampled_from([None, 1]))
def test_whatever_is_written_and_read_in_steps_is_the_same(value: Any, step: int, indent: int | None) -> None:
    plain = msgspec.json.encode(value)
    assert encode_large(value, step) == plain
    spaced = plain if indent is None else b" " + msgspec.json.format(plain, indent=indent) + b" \n"
    assert decode_large(spaced, step) == msgspec.json.decode(plain)
    assert decode_large(bytearray(spaced), step) == msgspec.json.decode(plain)


ESCAPED = st.lists(st.sampled_from(["a", "é", "😀", "\\n", "\\\\", '\\"', "\\u00e9", "\\ud83d\\ude00", "\\u0001"]))


@settings(max_examples=300, deadline=None)
@given(ESCAPED, st.integers(32, 64))
def test_no_escape_is_cut_in_two(tokens: list[str], step: int) -> None:
    raw = f'{{"a":["{"".join(tokens)}"]}}'.encode()
    assert decode_large(raw, step) == msgspec.json.decode(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": "' + b"x" * 160 + b'\\ud800 "}',
        b'{"a": "' + b"x" * 160 + b"\xff" + b'"}',
        b'{"a": "' + b"x" * 160 + b"\\q" + b"x" * 160 + b'"}',
        b'{"a": "' + b"x" * 160,
        b'{"a": "' + b"x" * 160 + b'"} and more',
        b'["' + b"x" * 160 + b'", ]',
        b'{"a": "' + b"x" * 160 + b"\n" + b'"}',
        b"7" * 160 + b"x",
        b" " * 160,
    ],
)
def test_what_is_not_json_in_one_go_is_not_in_steps(raw: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        msgspec.json.decode(raw)
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        decode_large(raw, 32)


def test_others_have_their_turn_between_two_steps() -> None:
    """Counted in turns, not in time: one call of `msgspec` leaves room for none."""
    raw = b'{"input":"' + b"x\\n" * (20 * STEP // 3) + b'"}'
    before = sys.getswitchinterval()
    turns, over = 0, threading.Event()

    def look() -> None:
        nonlocal turns
        while not over.wait(0.0001):
            turns += 1

    sys.setswitchinterval(0.0001)
    try:
        looking = threading.Thread(target=look)
        looking.start()
        assert encode_large(decode_large(raw)) == raw
    finally:
        over.set()
        looking.join()
        sys.setswitchinterval(before)
    assert turns >= 10
