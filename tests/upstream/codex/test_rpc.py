from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.upstream.codex.rpc import (
    Message,
    MessageReader,
    Notification,
    Refused,
    Request,
    Result,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)

CONVERSATION = b"".join(
    [
        encode_result(0, {"userAgent": "x"}),
        b'{"method":"turn/started","params":{"a":"\xc3\xa9\\n"},"emittedAtMs":1}\n',
        encode_request(0, "item/tool/call", {"callId": "c"}),
        b"\r\n",
        b"not json\n",
        b"[1,2]\n",
        encode_error("a", -32600, "no"),
        encode_notification("initialized"),
        b'{"id":77}\n',
        encode_result("a", None),
    ]
)
EXPECTED: list[Message] = [
    Result(0, {"userAgent": "x"}),
    Notification("turn/started", {"a": "é\n"}),
    Request(0, "item/tool/call", {"callId": "c"}),
    Refused("a", -32600, "no"),
    Notification("initialized"),
    Result("a", None),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_messages_are_the_same_however_the_bytes_are_cut(size: int) -> None:
    reader = MessageReader()
    pieces = [CONVERSATION[start : start + size] for start in range(0, len(CONVERSATION), size)]
    assert [message for piece in pieces for message in reader.feed(piece)] == EXPECTED
    assert reader.malformed == 3


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ids = st.integers(0, 2**40) | st.text(min_size=1, max_size=8)
messages = st.one_of(
    st.builds(Request, ids, st.text(max_size=8), st.dictionaries(st.text(max_size=5), json_values, max_size=3)),
    st.builds(Notification, st.text(max_size=8), st.dictionaries(st.text(max_size=5), json_values, max_size=3)),
    st.builds(Result, ids, json_values),
    st.builds(Refused, ids, st.integers(-40000, 0), st.text(min_size=1, max_size=8)),
)


def _encode(message: Message) -> bytes:
    match message:
        case Request(identity, method, params):
            return encode_request(identity, method, params)
        case Notification(method, params):
            return encode_notification(method, params)
        case Result(identity, value):
            return encode_result(identity, value)
        case Refused(identity, code, text):
            assert identity is not None
            return encode_error(identity, code, text)


@given(st.lists(messages, max_size=6), st.lists(st.integers(0, 400), max_size=8))
@settings(max_examples=150, deadline=None)
def test_what_is_encoded_is_read_back_across_any_cuts(sent: list[Message], cuts: list[int]) -> None:
    data = b"".join(_encode(message) for message in sent)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    reader = MessageReader()
    read = [message for start, end in pairwise(edges) for message in reader.feed(data[start:end])]
    assert read == sent
    assert reader.malformed == 0


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_noise_never_raises_and_never_hides_what_follows(noise: bytes) -> None:
    reader = MessageReader()
    reader.feed(noise + b"\n")
    assert reader.feed(encode_notification("after")) == [Notification("after")]


def test_no_line_carries_a_jsonrpc_field() -> None:
    for line in (encode_request(0, "m", {}), encode_notification("m"), encode_result(0, {}), encode_error(0, 1, "x")):
        assert line.endswith(b"\n")
        assert "jsonrpc" not in json.loads(line)


def test_a_jsonrpc_field_is_tolerated() -> None:
    line = b'{"jsonrpc":"2.0","id":0,"result":{}}\n'
    assert MessageReader().feed(line) == [Result(0, {})]


def test_a_line_beyond_the_limit_is_counted_dropped_and_survived() -> None:
    reader = MessageReader(max_line=100)
    assert reader.feed(b'{"method":"' + b"x" * 200) == []
    assert reader.feed(b"y" * 200) == []
    assert reader.feed(b'"}\n' + encode_notification("after")) == [Notification("after")]
    assert reader.malformed == 1


@pytest.mark.parametrize(
    "line",
    [b'{"id":true,"result":1}', b'{"id":1.5,"result":1}', b'{"id":1}', b"null", b'"x"', b'{"method":1}', b"\xff"],
    ids=str,
)
def test_what_is_no_message_is_counted(line: bytes) -> None:
    reader = MessageReader()
    assert reader.feed(line + b"\n") == []
    assert reader.malformed == 1
