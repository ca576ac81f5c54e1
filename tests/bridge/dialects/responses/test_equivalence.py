"""The law of the house for native upstreams: a whole reply, its stream, and a stream with holes give one response."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.capabilities import ProviderCapabilities, ReplyRules, ToolSupport
from isthmus.bridge.deltas import Delta
from isthmus.bridge.dialects.responses.decode import ResponsesDecoder
from isthmus.bridge.sse import SseParser
from isthmus.bridge.types.plan import Plan
from isthmus.testing.fold import plan_for, stream
from speaking_responses import Free, named_sse, native_events, native_items, native_reply
from wire.oracle import check_stream

Json = dict[str, Any]

TOOLS = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {"type": "custom", "name": "note"},
    {"type": "shell"},
    {"type": "namespace", "name": "mcp__x", "tools": [{"type": "function", "name": "echo"}]},
]
NATIVE = ToolSupport(native=frozenset({"function", "custom"}), degraded={"shell": "function"}, as_is=True)
PLAN: Plan = plan_for({"tools": TOOLS}, tools=NATIVE, dialect="responses")

words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20)
calls = st.lists(
    st.tuples(
        st.sampled_from(["f", "mcp__x__echo", "shell", "unknown"]),
        st.sampled_from(['{"a":1}', "{}", '{"commands":["ls"]}']),
    )
    | st.tuples(st.just("note"), words.map(Free)),
    max_size=3,
).map(lambda made: [(f"call_{number}", name, given) for number, (name, given) in enumerate(made)])
scenes = st.fixed_dictionaries(
    {},
    optional={"text": words, "reasoning": words, "summary": words, "refusal": st.just("No."), "calls": calls},
)


def whole(items: list[Json], status: str) -> list[Delta]:
    return ResponsesDecoder(ReplyRules()).reply(json.dumps(native_reply(items, status=status)).encode())


def live(items: list[Json], status: str, cuts: list[int], dropped: frozenset[str]) -> list[list[Delta]]:
    """The stream, its bytes cut anywhere, without the kinds of events that some vendors never send."""
    events = [event for event in native_events(items, status=status) if event["type"] not in dropped]
    data = b"".join(named_sse(events))
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    parser, decoder = SseParser(), ResponsesDecoder(ReplyRules())
    batches = []
    for start, stop in itertools.pairwise(edges):
        batches += [decoder.chunk(event) for event in parser.feed(data[start:stop])]
    return [*batches, decoder.end()]


ADDED, DONE = "response.output_item.added", "response.output_item.done"
CALL_DELTAS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
DELTAS = (
    *CALL_DELTAS,
    "response.output_text.delta",
    "response.output_text.annotation.added",
    "response.refusal.delta",
    "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta",
)
PARTS = (
    "response.content_part.added",
    "response.content_part.done",
    "response.output_text.done",
    "response.refusal.done",
    "response.reasoning_text.done",
)
MANNERS = {
    "everything": frozenset[str](),
    "items in the end only": frozenset({ADDED, *DELTAS}),
    "the final object only": frozenset({"response.created", ADDED, DONE, *DELTAS, *PARTS}),
    "no openings": frozenset({ADDED}),
    "no ends": frozenset({DONE}),
    "calls whole": frozenset(CALL_DELTAS),
    "words live, calls in the final object": frozenset({ADDED, DONE, *CALL_DELTAS}),
    "no parts": frozenset(PARTS),
}
"""What different vendors leave out of their streams."""


@given(
    scenes,
    st.sampled_from(["completed", "incomplete"]),
    st.lists(st.integers(0, 10_000), max_size=6),
    st.sampled_from(sorted(MANNERS)),
)
@settings(max_examples=400, deadline=None)
def test_a_whole_reply_equals_its_stream_folded(scene: Json, status: str, cuts: list[int], manner: str) -> None:
    items = native_items(**scene)
    folded_events, folded = stream([whole(items, status)], plan=PLAN)
    # The item told last is the one that was cut off: with holes that could be another one.
    left_out = MANNERS["everything" if status == "incomplete" else manner]
    live_events, told = stream(live(items, status, cuts, left_out), plan=PLAN)
    check_stream(folded_events)
    check_stream(live_events)
    assert essence(told) == essence(folded)


citations = st.lists(
    st.sampled_from("abc").map(
        lambda url: {"type": "url_citation", "url": url, "title": "", "start_index": 0, "end_index": 1}
    ),
    max_size=2,
)
parts = st.builds(lambda text, cited: {"type": "output_text", "text": text, "annotations": cited}, words, citations)
messages = st.builds(
    lambda content, phase: {"type": "message", "role": "assistant", "content": content, **phase},
    st.lists(parts | st.just({"type": "refusal", "refusal": "No."}), min_size=1, max_size=3),
    st.sampled_from([{}, {"phase": "commentary"}, {"phase": "final_answer"}]),
)
thoughts = st.builds(
    lambda texts: {"type": "reasoning", "summary": [{"type": "summary_text", "text": text} for text in texts]},
    st.lists(words, max_size=2),
)
hosted = st.sampled_from(["completed", "failed"]).map(
    lambda status: {"type": "web_search_call", "status": status, "action": {"type": "search", "query": "q"}}
)
functions = st.just({"type": "function_call", "name": "f", "arguments": '{"a":1}'})


def numbered(made: list[Json]) -> list[Json]:
    ids = [{"id": f"it_{n}", **({"call_id": f"call_{n}"} if "name" in item else {})} for n, item in enumerate(made)]
    return [{"status": "completed", **item, **id} for item, id in zip(made, ids, strict=True)]


outputs = st.lists(messages | thoughts | hosted | functions, min_size=1, max_size=5).map(numbered)
WHOLE_ITEMS = ("everything", "items in the end only", "the final object only", "no parts")


@given(outputs, st.lists(st.integers(0, 10_000), max_size=6), st.sampled_from(WHOLE_ITEMS))
@settings(max_examples=80, deadline=None)
def test_several_messages_parts_hosted_calls_and_citations_are_the_same_whole_and_streamed(
    items: list[Json], cuts: list[int], manner: str
) -> None:
    folded_events, folded = stream([whole(items, "completed")], plan=PLAN)
    live_events, told = stream(live(items, "completed", cuts, MANNERS[manner]), plan=PLAN)
    check_stream(folded_events)
    check_stream(live_events)
    assert without_ids(told["output"]) == without_ids(folded["output"])
    # Thoughts alone get an empty message behind them.
    assert [as_sent(item) for item in folded["output"][: len(items)]] == [as_sent(item) for item in items]


def without_ids(items: list[Json]) -> list[Json]:
    return [{**item, "id": ""} for item in items]


def as_sent(item: Json) -> Json:
    """An item as both sides spell it: what the vendor may leave out is filled in."""
    filled = [{"logprobs": [], **part} if part["type"] == "output_text" else part for part in item.get("content", ())]
    return {**item, "id": "", "content": filled}


def essence(response: Json) -> Json:
    """Items and parts by what they say: a stream with holes may tell them in another order."""
    items = []
    for item in response["output"]:
        parts = sorted(json.dumps(part, sort_keys=True) for part in item.get("content", ()))
        items.append(json.dumps({**item, "id": "", "content": parts}, sort_keys=True))
    kept = {name: response[name] for name in ("status", "error", "incomplete_details", "usage", "output_text")}
    return {"items": sorted(items), **kept}


def test_the_plan_is_for_the_native_dialect() -> None:
    assert isinstance(PLAN.target.capabilities, ProviderCapabilities)
    assert PLAN.body["store"] is False
    assert PLAN.body["tools"][1] == {"type": "custom", "name": "note"}
