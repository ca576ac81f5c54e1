"""Chunks that are alike are told as if each had been read: by what comes out, and by how it is cut and mixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, Failed, Reasoning, Text
from isthmus.bridge.dialects import decoder as rooms
from isthmus.bridge.dialects.chat.decode import ChatDecoder
from isthmus.bridge.dialects.decoder import JsonDecoder
from isthmus.bridge.dialects.messages.decode import MessagesDecoder

Json = dict[str, Any]


def chunk(delta: Json, **more: Any) -> Json:
    return {"id": "c", "created": 1, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], **more}


BEGUN = chunk({"content": "Well"})


def more(text: str, index: int = 0) -> Json:
    return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def opened(index: int = 0) -> Json:
    return {"tool_calls": [{"index": index, "id": f"call_{index}", "function": {"name": "f", "arguments": ""}}]}


def block(kind: str, field: str, text: str) -> Json:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: text}}


def encoded(events: list[Json], **how: Any) -> list[bytes]:
    return [json.dumps(event, **how).encode() for event in events]


def counted(decoder: JsonDecoder, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is read whole from now on."""
    whole: list[bytes] = []
    decode = rooms._decode_json
    monkeypatch.setattr(rooms, "_decode_json", lambda data: whole.append(data) or decode(data))
    return whole


@pytest.mark.parametrize(
    ("make", "begin", "event", "delta"),
    [
        (lambda: ChatDecoder(ReplyRules()), [BEGUN], lambda text: chunk({"content": text}), Text),
        (
            lambda: ChatDecoder(ReplyRules(think_tags=True)),
            [BEGUN],
            lambda text: chunk({"role": "assistant", "content": text, "refusal": None}, usage=None),
            Text,
        ),
        (
            lambda: ChatDecoder(ReplyRules(think_opened=True)),
            [BEGUN],
            lambda text: chunk({"content": text}),
            Reasoning,
        ),
        (
            lambda: ChatDecoder(ReplyRules()),
            [BEGUN],
            lambda text: chunk({"content": None, "reasoning_content": text}),
            Reasoning,
        ),
        (
            lambda: ChatDecoder(ReplyRules()),
            [chunk(opened())],
            lambda text: chunk(more(text)),
            lambda text: CallArguments(0, text),
        ),
        (lambda: MessagesDecoder(ReplyRules()), [], lambda text: block("text_delta", "text", text), Text),
        (
            lambda: MessagesDecoder(ReplyRules()),
            [
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {"type": "tool_use", "id": "a", "name": "f"},
                }
            ],
            lambda text: block("input_json_delta", "partial_json", text),
            lambda text: CallArguments(0, text),
        ),
    ],
    ids=["text", "text with tags", "thoughts in tags", "thoughts", "arguments", "Messages", "Messages, arguments"],
)
def test_of_chunks_that_are_alike_only_the_first_is_read_whole(
    make: Callable[[], JsonDecoder],
    begin: list[Json],
    event: Callable[[str], Json],
    delta: Callable[[str], Delta],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoder = make()
    decoder.chunks(encoded(begin))
    whole = counted(decoder, monkeypatch)
    texts = ["Hello", " wörld", '"quoted" \\ and\n', "😀", "content"]
    given = encoded([event(text) for text in texts])
    assert decoder.chunks(given[:4]) + decoder.chunk(given[4]) == [delta(text) for text in texts]
    assert whole == given[:1]


@pytest.mark.parametrize(
    "other",
    [
        chunk({"content": ""}),
        chunk({"content": None}),
        chunk({"content": 5}),
        chunk({"content": [{"type": "text", "text": "part"}]}),
        chunk({"content": "x"}, id="other"),
        chunk({"content": "x"}, usage={"prompt_tokens": 1, "completion_tokens": 1}),
        chunk({"content": "x"}, error={"message": "broken"}),
        chunk({"content": "x", "reasoning_content": "y"}),
        chunk({"content": "x", "tool_calls": [{"index": 0, "function": {"arguments": "z"}}]}),
        {"choices": [{"delta": {"content": "x"}, "logprobs": {"content": [{"token": "x", "logprob": -0.1}]}}]},
    ],
)
def test_a_chunk_that_differs_is_read_whole_and_what_follows_it_is_known_again(other: Json) -> None:
    given = [chunk({"content": "a"}), chunk({"content": "b"}), other, other, chunk({"content": "c"})]
    assert ChatDecoder(ReplyRules()).chunks(encoded(given)) == unlike(given)


def unlike(events: list[Json], rules: ReplyRules | None = None) -> list[Delta]:
    """The same events, none of which has the bytes of another: each is read whole."""
    decoder = ChatDecoder(rules or ReplyRules())
    numbered = [{"number": 1_000_000 + number, **event} for number, event in enumerate(events)]
    return [delta for data in encoded(numbered) for delta in decoder.chunk(data)]


@pytest.mark.parametrize(
    "damaged",
    [b'"a', b'"a\\x"', b'"\\ud83d"', b'"\xff"', b"5", b"", b'"a","b":"c"', b'"a" "b"', b'"a"\n"b"', b'"a"\x00'],
)
def test_words_that_cannot_be_read_fail_as_they_do_anywhere(damaged: bytes) -> None:
    head, tail = encoded([chunk({"content": "?"})])[0].split(b'"?"')
    said = [head + text + tail for text in (b'"one"', b'"two"', damaged, b"  ", b'"three"')]
    alone = [delta for data in said for delta in ChatDecoder(ReplyRules()).chunk(data)]
    told = ChatDecoder(ReplyRules()).chunks(said)
    assert [type(delta) for delta in told] == [type(delta) for delta in alone]
    assert told == alone
    assert told[:2] == [Text("one"), Text("two")]


def test_a_text_that_stands_in_its_chunk_twice_is_not_mistaken_for_the_other() -> None:
    given = [chunk({"content": text}, id="c") for text in ("c", "content", "index", "id", "c", "d")]
    assert ChatDecoder(ReplyRules()).chunks(encoded(given)) == unlike(given)
    escaped = b'{"model":"x","choices":[{"delta":{"content":"\\u0078"}}]}'
    other = escaped.replace(b'"x"', b'"y"')
    assert ChatDecoder(ReplyRules()).chunks([escaped, other, other]) == [Text("x")] * 3


def test_nothing_alike_is_told_behind_the_end() -> None:
    decoder = ChatDecoder(ReplyRules())
    said = encoded([chunk({"content": "a"})])
    assert decoder.chunks([*said, *said, b"[DONE]", *said]) == [Text("a"), Text("a")]
    assert decoder.chunks(said) == []


def test_arguments_go_to_the_call_that_is_open_now() -> None:
    """Two calls share an index: what is known of the first is not told of the second."""
    again = {"tool_calls": [{"index": 0, "id": "other", "function": {"name": "g", "arguments": ""}}]}
    given = [opened(), more("{"), more("}"), again, more("["), more("]")]
    told = ChatDecoder(ReplyRules()).chunks(encoded([chunk(delta) for delta in given]))
    assert told == [
        CallOpened(0, "call_0", "f"),
        *(CallArguments(0, text) for text in "{}"),
        CallOpened(1, "other", "g"),
        *(CallArguments(1, text) for text in "[]"),
    ]


def test_a_vendor_whose_chunks_are_never_alike_is_not_looked_at_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = ChatDecoder(ReplyRules())
    learn, tried = decoder._alike.learn, list[str]()
    monkeypatch.setattr(type(decoder._alike), "learn", lambda self, *given: tried.append(given[3]) or learn(*given))
    given = [chunk({"content": f"word {number}"}, obfuscation=str(number)) for number in range(50)]
    assert decoder.chunks(encoded(given)) == [Text(f"word {number}") for number in range(50)]
    assert len(tried) < 10


TEXTS = st.one_of(
    st.text(max_size=6), st.sampled_from(["<", "<think>", "</think>", "think>", "\n", "a", " b", "c", "content"])
)
DELTAS = st.one_of(
    *(st.builds(lambda text, name=name: {name: text}, TEXTS) for name in ("content", "reasoning_content")),
    st.builds(more, TEXTS, st.integers(0, 1)),
    st.builds(opened, st.integers(0, 1)),
    st.sampled_from([{}, {"content": None}, {"role": "assistant", "content": ""}]),
)


@given(
    st.lists(st.one_of(st.lists(DELTAS, max_size=3), st.builds(lambda one, n: [one] * n, DELTAS, st.integers(1, 6)))),
    st.sampled_from([ReplyRules(), ReplyRules(think_tags=True), ReplyRules(think_opened=True)]),
    st.lists(st.integers(1, 5)),
    st.booleans(),
)
def test_chunks_that_are_alike_and_those_that_are_not_tell_the_same(
    runs: list[list[Json]], rules: ReplyRules, sizes: list[int], ascii: bool
) -> None:
    events = [chunk(delta) for run in runs for delta in run]
    decoder, told, rest = ChatDecoder(rules), list[Delta](), encoded(events, ensure_ascii=ascii)
    for size in (*sizes, len(rest) + 1):
        told += decoder.chunks(rest[:size])
        rest = rest[size:]
    assert told == unlike(events, rules)
    assert not [delta for delta in told if isinstance(delta, Failed)]
