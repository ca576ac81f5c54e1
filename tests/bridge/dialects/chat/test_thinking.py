"""Think tags in the text: cut anywhere, opened by the template, with log probabilities."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Delta, Markup, Reasoning, Text
from isthmus.bridge.dialects.chat.decode import ChatDecoder
from isthmus.bridge.dialects.chat.thinking import ThinkTags

Json = dict[str, Any]


def read(*pieces: str, inside: bool = False) -> list[Delta]:
    tags, out = ThinkTags(inside=inside), []
    for piece in pieces:
        tags.feed(piece, out)
    tags.end(out)
    return out


def joined(deltas: list[Delta]) -> tuple[str, str]:
    thought = "".join(delta.text for delta in deltas if isinstance(delta, Reasoning))
    return thought, "".join(delta.text for delta in deltas if isinstance(delta, Text))


def test_a_template_that_opens_the_tag_itself() -> None:
    assert joined(read("so ", "and so</thi", "nk>\n\nHello", inside=True)) == ("so and so", "Hello")


def test_the_fact_is_one_of_the_models_reply_rules() -> None:
    decoder = ChatDecoder(ReplyRules(think_opened=True))
    body = {"choices": [{"message": {"content": "so and so</think>Hello"}, "finish_reason": "stop"}]}
    assert joined(decoder.reply(msgspec.json.encode(body))) == ("so and so", "Hello")


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_closing_tag_alone_stays_text_and_names_the_fact_that_is_missing(size: int) -> None:
    text = "so</think>Hello</think>"
    deltas = read(*(text[start : start + size] for start in range(0, len(text), size)))
    assert joined(deltas) == ("", text)
    [said] = [delta for delta in deltas if isinstance(delta, Markup)]
    assert "think_opened" in said.what


def token(text: str) -> Json:
    return {"token": text, "logprob": -0.5, "bytes": list(text.encode())}


def test_log_probabilities_stay_with_the_tokens_of_the_text() -> None:
    decoder = ChatDecoder(ReplyRules(think_tags=True))
    tokens = ["<th", "ink>", "hm", "</think>", "\n", "Hel", "lo", " <", "b>"]
    out: list[Delta] = []
    for each in tokens:
        chunk = {"choices": [{"delta": {"content": each}, "logprobs": {"content": [token(each)]}}]}
        out += decoder.chunk(json.dumps(chunk).encode())
    out += decoder.end()
    assert joined(out) == ("hm", "Hello <b>")
    kept = [entry["token"] for delta in out if isinstance(delta, Text) for entry in delta.logprobs or ()]
    assert kept == ["Hel", "lo", " <", "b>"]


def test_log_probabilities_of_a_whole_reply_are_kept_under_think_tags() -> None:
    decoder = ChatDecoder(ReplyRules(think_tags=True))
    tokens = ["<think>", "hm", "</think>", "Hello", " you"]
    choice = {
        "message": {"content": "".join(tokens)},
        "logprobs": {"content": [token(each) for each in tokens]},
        "finish_reason": "stop",
    }
    [said] = [delta for delta in decoder.reply(msgspec.json.encode({"choices": [choice]})) if isinstance(delta, Text)]
    assert [entry["token"] for entry in said.logprobs or ()] == ["Hello", " you"]


pieces = st.lists(st.sampled_from(["<think>", "</think>", "a", "<", "\n", "<thi", "nk>", "b "]), max_size=12).map(
    "".join
)


@given(pieces, st.lists(st.integers(0, 60), max_size=8), st.booleans())
@settings(max_examples=300, deadline=None)
def test_cutting_changes_nothing(text: str, cuts: list[int], inside: bool) -> None:
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    assert joined(read(*(text[a:b] for a, b in pairwise(edges)), inside=inside)) == joined(read(text, inside=inside))
