"""What both decoders of HTTP dialects do with bytes that are no answer, and behind the end of one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Failed, Text
from isthmus.bridge.dialects.chat.decode import ChatDecoder
from isthmus.bridge.dialects.decoder import JsonDecoder
from isthmus.bridge.dialects.responses.decode import ResponsesDecoder
from isthmus.scrub import Scrubber, Secret

SCRUBBER = Scrubber([Secret("sk-0123456789")])
both = pytest.mark.parametrize(
    ("make", "unit"),
    [
        (lambda: ChatDecoder(ReplyRules(), None, SCRUBBER), "a chunk"),
        (lambda: ResponsesDecoder(ReplyRules(), SCRUBBER), "an event"),
    ],
    ids=["chat", "responses"],
)
Make = Callable[[], JsonDecoder]
SAID: dict[str, Any] = {
    "type": "response.output_text.delta",
    "delta": "hi",
    "choices": [{"index": 0, "delta": {"content": "hi"}}],
}


@both
@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (b"<html> sk-0123456789", "not JSON: '<html> <redacted>'"),
        (b"[" * 20_000, "not JSON"),
        (b'{"type": "\xff"}', "not JSON"),
        (b"[1]", "not an object: '[1]'"),
        (b"7", "not an object: '7'"),
    ],
    ids=["a page", "nested beyond reason", "not UTF-8", "a list", "a number"],
)
def test_what_cannot_be_read_is_a_failure_that_shows_it_without_our_secrets(
    make: Make, unit: str, data: bytes, wrong: str
) -> None:
    [failed] = make().chunk(data)
    assert isinstance(failed, Failed)
    assert failed.message.startswith(f"the upstream sent {unit} that is {wrong}")
    [failed] = make().reply(data)
    assert isinstance(failed, Failed)
    assert "sk-0123456789" not in failed.message
    assert failed.message.startswith("the upstream's reply " + ("is not JSON: " if wrong[4] == "J" else "has no "))


@both
def test_nothing_is_read_behind_done(make: Make, unit: str) -> None:
    decoder = make()
    said = json.dumps(SAID).encode()
    assert Text("hi") in decoder.chunk(said)
    assert decoder.chunk(b" [DONE] ") == []
    assert decoder.done
    assert decoder.chunk(said) == []
    assert decoder.end() == []
