"""Chat replies and chunks as vendors send them → deltas."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import (
    SOME_STOP,
    Annotation,
    CallArguments,
    CallOpened,
    Delta,
    Failed,
    Finished,
    HostedCall,
    ItemBegan,
    Markup,
    Reasoning,
    Refusal,
    Text,
    Usage,
    Used,
    VendorExtra,
)
from isthmus.bridge.dialects.chat.decode import ChatDecoder
from isthmus.bridge.finish import TABLE

PLAIN = ReplyRules()
TAGS = ReplyRules(think_tags=True)


def chunk(delta: dict[str, Any] | None = None, **rest: Any) -> bytes:
    finish = rest.pop("finish", None)
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": choices, **rest}).encode()


def decode(*chunks: bytes, rules: ReplyRules = PLAIN) -> list[Delta]:
    decoder = ChatDecoder(rules)
    return [delta for data in chunks for delta in decoder.chunk(data)] + decoder.end()


def reply(message: dict[str, Any], finish: str | None = "stop", rules: ReplyRules = PLAIN, **rest: Any) -> list[Delta]:
    body = {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **rest}
    return ChatDecoder(rules).reply(json.dumps(body).encode())


CHUNKS: dict[str, tuple[list[bytes], list[Delta]]] = {
    "text": ([chunk({"content": "hi"})], [Text("hi")]),
    "role first, empty content": ([chunk({"role": "assistant", "content": ""})], []),
    "null content": ([chunk({"content": None})], []),
    "part list": (
        [chunk({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})],
        [Text("a"), Text("b")],
    ),
    "reasoning_content": ([chunk({"reasoning_content": "t", "content": None})], [Reasoning("t")]),
    "reasoning": ([chunk({"reasoning": "t"})], [Reasoning("t")]),
    "both reasoning fields count once": ([chunk({"reasoning": "t", "reasoning_content": "t"})], [Reasoning("t")]),
    "reasoning and text in one chunk": (
        [chunk({"content": "a", "reasoning_content": "t"})],
        [Reasoning("t"), Text("a")],
    ),
    "thinking chunks (Mistral)": (
        [
            chunk(
                {
                    "content": [
                        {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]},
                        {"type": "text", "text": "a"},
                    ]
                }
            )
        ],
        [Reasoning("t"), Text("a")],
    ),
    "reasoning_details alone are shown and kept": (
        [chunk({"content": "", "reasoning_details": [{"type": "reasoning.text", "text": "t"}]})],
        [Reasoning("t"), VendorExtra("reasoning_details", [{"type": "reasoning.text", "text": "t"}])],
    ),
    "reasoning_details beside reasoning are shown once": (
        [chunk({"reasoning": "t", "reasoning_details": [{"text": "t"}]})],
        [Reasoning("t"), VendorExtra("reasoning_details", [{"text": "t"}])],
    ),
    "empty choices": ([chunk(None)], []),
    "usage in a chunk of its own": (
        [chunk(None, usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7})],
        [Used(Usage(3, 4, 7))],
    ),
    "usage beside the finish reason": (
        [chunk({}, finish="stop", usage={"prompt_tokens": 3, "completion_tokens": 4})],
        [Used(Usage(3, 4, 7)), Finished("stop")],
    ),
    "usage null": ([chunk({"content": "a"}, usage=None)], [Text("a")]),
    "x_groq usage": (
        [chunk({}, x_groq={"usage": {"prompt_tokens": 1, "completion_tokens": 1}})],
        [Used(Usage(1, 1, 2))],
    ),
    "usage inside the choice (Kimi)": (
        [
            json.dumps(
                {
                    "choices": [
                        {"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 2, "completion_tokens": 1}}
                    ]
                }
            ).encode()
        ],
        [Used(Usage(2, 1, 3)), Finished("stop")],
    ),
    "finish": ([chunk({}, finish="length")], [Finished("length")]),
    "legacy function call": (
        [
            chunk({"content": None, "function_call": {"name": "x", "arguments": "{"}}),
            chunk({"content": None, "function_call": {"arguments": "}"}}),
        ],
        [CallOpened(0, None, "x"), CallArguments(0, "{"), CallArguments(0, "}")],
    ),
    "annotations": (
        [
            chunk(
                {
                    "content": "a",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1},
                        }
                    ],
                }
            )
        ],
        [Text("a"), Annotation({"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1})],
    ),
    "in-stream error object": (
        [chunk(None, error={"message": "boom", "code": 500})],
        [Failed("boom", "server_error")],
    ),
    "in-stream error text": (
        [chunk(None, error="Rate limit reached")],
        [Failed("Rate limit reached", "rate_limit_exceeded")],
    ),
    "error beside choices": ([chunk({"content": ""}, error={"message": "boom"})], [Failed("boom", "server_error")]),
    "status block (MiniMax)": (
        [chunk(None, base_resp={"status_code": 1008, "status_msg": "insufficient balance"})],
        [Failed("insufficient balance", "insufficient_quota")],
    ),
    "good status block": ([chunk(None, base_resp={"status_code": 0})], []),
    "a whole message inside a stream": (
        [json.dumps({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}).encode()],
        [Text("a"), Finished("stop")],
    ),
    "hosted search results (Zhipu)": (
        [chunk({"content": "a"}, finish="stop", web_search=[{"link": "https://x", "title": "t"}])],
        [
            Text("a"),
            HostedCall(
                {
                    "type": "web_search_call",
                    "action": {"type": "search", "query": "", "sources": [{"type": "url", "url": "https://x"}]},
                }
            ),
            Finished("stop"),
        ],
    ),
    "[DONE]": ([b"[DONE]"], []),
}
CHUNKS["refusal"] = (
    [chunk({"refusal": "no"}), chunk({"content": None, "refusal": "pe"})],
    [Refusal("no"), Refusal("pe")],
)
CHUNKS["tool calls alone in the delta"] = (
    [chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}}]})],
    [CallOpened(0, "a", "x"), CallArguments(0, "{}")],
)


@pytest.mark.parametrize(("chunks", "expected"), CHUNKS.values(), ids=CHUNKS.keys())
def test_chunks_become_deltas(chunks: list[bytes], expected: list[Delta]) -> None:
    assert decode(*chunks) == expected


@pytest.mark.parametrize("data", [b"{", b"<html>", b"3", b"[]", b'"x"', b""], ids=repr)
def test_a_chunk_that_cannot_be_read_is_a_failure_that_shows_it(data: bytes) -> None:
    [failed] = decode(data)
    assert isinstance(failed, Failed)
    assert failed.code == "server_error"


def test_a_reply_is_decoded_in_the_order_reasoning_calls_message() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    deltas = reply({"content": "hi", "tool_calls": [call], "reasoning_content": "t"}, "tool_calls")
    assert deltas == [
        Reasoning("t"),
        CallOpened(0, "a", "x"),
        CallArguments(0, "{}", whole=True),
        Text("hi"),
        Finished("tool_calls"),
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "not JSON"),
        (b"{}", "no choices"),
        (b'{"choices": []}', "no choices"),
        (b'{"error": {"message": "no such model"}}', "no such model"),
        (b'{"object": "error", "message": "bad"}', "bad"),
    ],
)
def test_a_reply_without_an_answer_is_a_failure(body: bytes, message: str) -> None:
    deltas = ChatDecoder(PLAIN).reply(body)
    assert len(deltas) == 1
    assert isinstance(deltas[0], Failed)
    assert message in deltas[0].message


USAGES = [
    ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}, Usage(5, 2, 7)),
    ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(5, 2, 7)),
    ({"prompt_tokens": 5, "total_tokens": 7}, Usage(5, 2, 7)),
    ({"input_tokens": 5, "output_tokens": 2}, Usage(5, 2, 7)),
    ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 3}, Usage(5, 2, 7, 3)),
    ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}, Usage(5, 2, 7, 3)),
    (
        {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": None, "cached_tokens": 4},
        Usage(5, 2, 7, 4),
    ),
    (
        {"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}},
        Usage(5, 2, 7, 0, 1),
    ),
    ({"prompt_tokens": 5.0, "completion_tokens": "2"}, Usage(5, 0, 5)),
    (
        {"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": None}},
        Usage(5, 2, 7),
    ),
]


@pytest.mark.parametrize(("given_usage", "expected"), USAGES, ids=lambda value: str(value)[:60])
def test_usage_is_read_wherever_and_however_it_is_given(given_usage: dict[str, Any], expected: Usage) -> None:
    assert Used(expected) in reply({"content": "a"}, usage=given_usage)
    assert Used(expected) in decode(chunk(None, usage=given_usage))


@given(st.text(alphabet="<think>/ab\n", max_size=40), st.lists(st.integers(0, 40), max_size=6))
@settings(max_examples=400, deadline=None)
def test_think_tags_read_the_same_however_the_text_is_cut(text: str, cuts: list[int]) -> None:
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in pairwise(edges)]
    assert _joined(decode(*(chunk({"content": piece}) for piece in pieces), rules=TAGS)) == _joined(
        decode(chunk({"content": text}), rules=TAGS)
    )


def _joined(deltas: list[Delta]) -> list[tuple[str, str]]:
    joined: list[tuple[str, str]] = []
    for delta in deltas:
        if isinstance(delta, Text | Reasoning):
            kind = type(delta).__name__
            if joined and joined[-1][0] == kind:
                joined[-1] = (kind, joined[-1][1] + delta.text)
            else:
                joined.append((kind, delta.text))
    return joined


def test_think_tags_become_reasoning_and_are_reported() -> None:
    deltas = decode(chunk({"content": "<think>why</think>\n\nanswer"}), rules=TAGS)
    assert [d for d in deltas if not isinstance(d, Markup)] == [Reasoning("why"), Text("answer")]
    assert sum(isinstance(d, Markup) for d in deltas) == 1


def test_think_tags_stay_text_where_the_data_does_not_say_so() -> None:
    assert decode(chunk({"content": "<think>a</think>"})) == [Text("<think>a</think>")]


def test_vendor_finish_reasons_are_mapped_by_data() -> None:
    rules = ReplyRules(finish_reasons={"model_length": "length"})
    assert decode(chunk({}, finish="model_length"), rules=rules) == [Finished("length")]


def test_logprobs_travel_with_their_text() -> None:
    body = {
        "choices": [
            {
                "delta": {"content": "a"},
                "logprobs": {"content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}]},
                "finish_reason": None,
            }
        ]
    }
    [text] = decode(json.dumps(body).encode())
    assert text == Text("a", [{"token": "a", "bytes": [97], "logprob": -0.5, "top_logprobs": []}])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "delta",
                        "content",
                        "tool_calls",
                        "function",
                        "name",
                        "arguments",
                        "usage",
                        "finish_reason",
                        "message",
                        "error",
                        "index",
                        "reasoning_content",
                        "annotations",
                        "logprobs",
                        "type",
                        "text",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
@settings(max_examples=500, deadline=None)
def test_no_json_can_make_the_decoder_raise(value: Any) -> None:
    decode(json.dumps(value).encode())
    ChatDecoder(PLAIN).reply(json.dumps(value).encode())


@pytest.mark.parametrize("reason", sorted(TABLE))
def test_the_order_of_a_whole_reply_is_decided_by_the_one_finish_table(reason: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": "hi", "tool_calls": [call]}
    deltas = reply(message, reason)
    kinds = [type(delta) for delta in deltas if isinstance(delta, Text | CallOpened)]
    assert kinds == ([CallOpened, Text] if TABLE[reason].status == "completed" else [Text, CallOpened])


THOUGHTS_AND_WORDS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "t1"}]},
    {"type": "text", "text": "w1"},
    {"type": "thinking", "thinking": [{"type": "text", "text": "t2"}]},
    {"type": "text", "text": "w2"},
]


def test_thoughts_and_words_that_take_turns_stay_items_of_their_own() -> None:
    message = {"content": THOUGHTS_AND_WORDS}
    deltas = reply(message)
    assert deltas == [
        *(Reasoning("t1"), ItemBegan("reasoning"), Reasoning("t2")),
        *(Text("w1"), ItemBegan("message"), Text("w2")),
        Finished("stop"),
    ]


def test_parts_that_have_no_place_in_a_response_are_reported_once_for_each_kind() -> None:
    parts = [{"type": "text", "text": "a"}, *[{"type": "reference", "reference_ids": [n]} for n in range(3)]]
    deltas = reply({"content": parts})
    [said] = [delta for delta in deltas if isinstance(delta, Markup)]
    assert (said.code, "`reference`" in said.what) == ("bridge.response.part_ignored", True)


def test_annotations_in_a_stream_are_told() -> None:
    citation = {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}
    chunks = [
        {"choices": [{"delta": {"content": "a"}}]},
        {"choices": [{"delta": {"annotations": [citation]}, "finish_reason": "stop"}]},
    ]
    decoder = ChatDecoder(ReplyRules())
    deltas = [delta for chunk in chunks for delta in decoder.chunk(json.dumps(chunk).encode())]
    assert [type(delta) for delta in deltas] == [Text, Annotation, Finished]


@pytest.mark.parametrize(
    ("choice", "stop"),
    [
        ({"stop_reason": "END"}, "END"),
        ({"matched_stop": "END"}, "END"),
        ({"stop_reason": None, "matched_stop": "END"}, "END"),
        ({"stop_reason": 128009}, None),
        ({"matched_stop": ""}, None),
        ({"stop_reason": ["END"]}, None),
        ({"finish_reason": "stop_sequence"}, SOME_STOP),
        ({}, None),
    ],
)
def test_the_stop_sequence_that_was_met_is_what_a_choice_names(choice: dict[str, Any], stop: str | None) -> None:
    ended = {"index": 0, "finish_reason": "stop", **choice}
    last = json.dumps({"choices": [{**ended, "delta": {}}]}).encode()
    whole = json.dumps({"choices": [{**ended, "message": {"content": "a"}}]}).encode()
    assert decode(last) == [Finished(ended["finish_reason"], stop)]
    assert ChatDecoder(PLAIN).reply(whole)[-1] == Finished(ended["finish_reason"], stop)
    unnamed = stop if stop == SOME_STOP else None
    assert decode(last, rules=ReplyRules(stop_fields=[])) == [Finished(ended["finish_reason"], unnamed)]
