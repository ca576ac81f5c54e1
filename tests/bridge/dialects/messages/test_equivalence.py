"""The law of the house for Messages: a whole reply, and its stream cut anywhere, give one response."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.capabilities import MessageRules, ReplyRules
from isthmus.bridge.deltas import Delta
from isthmus.bridge.dialects.messages.decode import MessagesDecoder
from isthmus.bridge.sse import SseParser
from isthmus.bridge.types.plan import Plan
from isthmus.testing.fold import plan_for, stream
from speaking_messages import called, events, hidden, message, named_sse, said, thought
from wire.oracle import check_stream

Json = dict[str, Any]

TOOLS = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {"type": "custom", "name": "note"},
    {"type": "shell"},
    {"type": "namespace", "name": "mcp__x", "tools": [{"type": "function", "name": "echo"}]},
]
RULES = MessageRules(replay_extras="thinking_blocks", call_ids="plain64")
PLAN: Plan = plan_for({"tools": TOOLS}, dialect="messages", messages=RULES)
FORMAT = {
    "type": "json_schema",
    "name": "s",
    "schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
    "strict": False,
}
PLANS = {"plain": PLAN, "loose contract": plan_for({"text": {"format": FORMAT}}, dialect="messages")}

words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20)
citations = st.lists(
    st.sampled_from("abc").map(
        lambda url: {"type": "web_search_result_location", "url": url, "title": "", "cited_text": "x"}
    ),
    max_size=2,
)
texts = st.builds(lambda text, cited: said(text, citations=cited) if cited else said(text), words, citations)
thoughts = (words | st.just("")).map(thought)
calls = st.builds(
    lambda name, input: called("", name, **input),
    st.sampled_from(["f", "note", "shell", "mcp__x__echo", "unknown"]),
    st.sampled_from([{}, {"a": 1}, {"input": "x\ny"}, {"commands": ["ls"]}]),
)
searches = st.just(
    [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "url": "u"}],
        },
    ]
)
contents = st.lists(
    (texts | thoughts | calls | st.just(hidden()) | st.just({"type": "container_upload", "file_id": "f"})).map(
        lambda block: [block]
    )
    | searches,
    max_size=5,
).map(
    lambda groups: [
        {**block, "id": f"toolu_{index}"} if block["type"] == "tool_use" else block
        for index, block in enumerate(block for group in groups for block in group)
    ]
)
stops = st.sampled_from(["end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause_turn", "odd"])
usages = st.sampled_from(
    [{}, {"input_tokens": 3, "output_tokens": 2}, {"cache_read_input_tokens": 5, "output_tokens": 1}]
)


def whole(content: list[Json], stop: str, usage: Json) -> list[Delta]:
    data = json.dumps(message(content, stop=stop, usage=usage)).encode()
    return MessagesDecoder(ReplyRules(), "m").reply(data)


def live(content: list[Json], stop: str, usage: Json, pieces: int, cuts: list[int]) -> list[list[Delta]]:
    data = b"".join(named_sse(events(content, pieces=pieces, stop=stop, usage=usage)))
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    parser, decoder = SseParser(), MessagesDecoder(ReplyRules(), "m")
    batches = []
    for start, stop_at in itertools.pairwise(edges):
        batches += [decoder.chunk(event) for event in parser.feed(data[start:stop_at])]
    return [*batches, decoder.end()]


@given(
    contents,
    stops,
    usages,
    st.integers(1, 5),
    st.lists(st.integers(0, 10_000), max_size=6),
    st.sampled_from(sorted(PLANS)),
)
@settings(max_examples=300, deadline=None)
def test_a_whole_reply_equals_its_stream_folded(
    content: list[Json], stop: str, usage: Json, pieces: int, cuts: list[int], plan: str
) -> None:
    folded_events, folded = stream([whole(content, stop, usage)], plan=PLANS[plan])
    live_events, told = stream(live(content, stop, usage, pieces, cuts), plan=PLANS[plan])
    check_stream(folded_events)
    check_stream(live_events)
    assert essence(told) == essence(folded)


@given(contents, st.integers(0, 10_000), st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_a_stream_that_ends_anywhere_makes_one_sound_response(content: list[Json], end: int, pieces: int) -> None:
    data = b"".join(named_sse(events(content, pieces=pieces)))
    parser, decoder = SseParser(), MessagesDecoder(ReplyRules(), "m")
    batches = [decoder.chunk(event) for event in (*parser.feed(data[: end % (len(data) + 1)]), *parser.end())]
    told, response = stream([*batches, decoder.end()], plan=PLAN)
    check_stream(told)
    assert response["status"] in ("completed", "failed")
    assert (response["status"] == "completed") == decoder.done or response["usage"]


def essence(response: Json) -> Json:
    kept = {name: response[name] for name in ("status", "error", "incomplete_details", "usage", "output_text")}
    return {"items": [{**item, "id": ""} for item in response["output"]], **kept}
