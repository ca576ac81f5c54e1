"""Ways of single vendors that the decoder knows: repeated endings, zero usage, searches told by citations only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Annotation, Delta, Finished, HostedCall, Text, Usage, Used
from isthmus.bridge.dialects.chat.decode import ChatDecoder

Json = dict[str, Any]

CITATION: Json = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 0}
SEARCHED = HostedCall(
    {
        "type": "web_search_call",
        "action": {"type": "search", "query": "", "sources": [{"type": "url", "url": "https://a.example"}]},
    }
)


def chunk(delta: Json, finish: str | None = None, **rest: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **rest}


def ending(message: Json, **rest: Any) -> Json:
    return {"choices": [{"index": 0, "finish_reason": "stop", "message": message}], **rest}


def decode(*chunks: Json, **rules: Any) -> list[Delta]:
    decoder = ChatDecoder(ReplyRules(**rules))
    return [delta for each in chunks for delta in decoder.chunk(json.dumps(each).encode())] + decoder.end()


def test_a_whole_message_behind_its_deltas_is_not_told_twice() -> None:
    used = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    found = decode(chunk({"content": "hi"}), ending({"role": "assistant", "content": "hi"}, usage=used))
    assert found == [Text("hi"), Used(Usage(3, 2, 5)), Finished("stop")]


def test_a_whole_message_in_place_of_deltas_is_told() -> None:
    found = decode(chunk({"role": "assistant", "content": ""}), ending({"role": "assistant", "content": "hi"}))
    assert found == [Text("hi"), Finished("stop")]


def test_zeros_on_every_chunk_are_no_usage() -> None:
    found = decode(chunk({"content": "hi"}, usage={"total_tokens": 0, "total_characters": 0}), chunk({}, "stop"))
    assert found == [Text("hi"), Finished("stop")]


@pytest.mark.parametrize("place", ["early", "late"])
def test_citations_tell_of_a_search_once_where_the_data_says_so(place: str) -> None:
    cited = chunk({"annotations": [CITATION]})
    chunks = [cited, chunk({"content": "hi"})] if place == "early" else [chunk({"content": "hi"}), cited]
    found = decode(*chunks, chunk({}, "stop"), citations_tell_search=True)
    assert sorted(map(repr, found[:2])) == sorted(map(repr, [Annotation(CITATION), Text("hi")]))
    assert found[2:] == [SEARCHED, Finished("stop")]
    assert SEARCHED not in decode(*chunks, chunk({}, "stop"))


def test_search_results_may_come_on_any_chunk() -> None:
    results = [{"link": "https://a.example", "title": "A"}]
    found = decode(chunk({"content": ""}, web_search=results), chunk({"content": "hi"}), chunk({}, "stop"))
    assert found == [SEARCHED, Text("hi"), Finished("stop")]
