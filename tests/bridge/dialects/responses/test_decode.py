"""Native Responses events and objects, in every partial form that vendors give them → deltas."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import (
    Annotation,
    CallArguments,
    CallOpened,
    Delta,
    Failed,
    Finished,
    HostedCall,
    HostedOpened,
    HostedProgress,
    ItemBegan,
    ItemEnded,
    Markup,
    PartBegan,
    Reasoning,
    Refusal,
    Text,
    Usage,
    Used,
    VendorExtra,
)
from isthmus.bridge.dialects.responses.decode import ResponsesDecoder

Json = dict[str, Any]

CITATION = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2}
USAGE = {
    "input_tokens": 12,
    "output_tokens": 7,
    "total_tokens": 19,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens_details": {"reasoning_tokens": 3},
}
STOP = Finished("stop")
CALLED = Finished("tool_calls")


def ev(kind: str, index: int | None = 0, **rest: Any) -> Json:
    place = {} if index is None else {"output_index": index}
    return {"type": kind if kind == "error" else f"response.{kind}", **place, **rest}


def message(*parts: Json, **rest: Any) -> Json:
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [*parts], **rest}


def said(text: str, **rest: Any) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], **rest}


def call(arguments: str = '{"a":1}', **rest: Any) -> Json:
    base = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f"}
    return {**base, "arguments": arguments, "status": "completed", **rest}


def custom(text: str = 'say "hi"\n', **rest: Any) -> Json:
    base = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "note"}
    return {**base, "input": text, "status": "completed", **rest}


def done(*output: Json, kind: str = "completed", **rest: Any) -> Json:
    return {"type": f"response.{kind}", "response": {"status": kind, "output": list(output), **rest}}


def decode(*events: Json) -> list[Delta]:
    decoder = ResponsesDecoder(ReplyRules())
    return [delta for event in events for delta in decoder.chunk(json.dumps(event).encode())] + decoder.end()


def reply(**body: Any) -> list[Delta]:
    return ResponsesDecoder(ReplyRules()).reply(json.dumps(body).encode())


def bare(deltas: list[Delta]) -> list[Delta]:
    """What is said, without the bounds of items."""
    return [delta for delta in deltas if not isinstance(delta, ItemBegan | ItemEnded)]


THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "s1"}, {"type": "summary_text", "text": "s2"}],
    "content": [{"type": "reasoning_text", "text": "t"}],
}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "vendor-blob"}
OPENED = CallOpened(0, "call_1", "f")
CUSTOM_OPENED: list[Delta] = [CallOpened(0, "call_2", "note"), CallArguments(0, '{"input":"')]
WRAPPED: list[Delta] = [CUSTOM_OPENED[0], CallArguments(0, '{"input":"say \\"hi\\"\\n"}', whole=True)]
WHOLE = CallArguments(0, '{"a":1}', whole=True)

STREAMS: dict[str, tuple[list[Json], list[Delta]]] = {
    "text deltas": (
        [
            ev("created", None, response={}),
            ev("output_item.added", item=message(status="in_progress")),
            ev("output_text.delta", delta="Hel"),
            ev("output_text.delta", delta="lo"),
            ev("output_text.done", text="Hello"),
            ev("output_item.done", item=message(said("Hello"))),
            done(message(said("Hello"))),
        ],
        [Text("Hel"), Text("lo"), STOP],
    ),
    "the end of a text that its deltas left out": (
        [ev("output_text.delta", delta="Hel"), ev("output_item.done", item=message(said("Hello"))), done()],
        [Text("Hel"), Text("lo"), STOP],
    ),
    "only done items": ([ev("output_item.done", item=message(said("hi"))), done()], [Text("hi"), STOP]),
    "only the final object": (
        [done(message(said("hi")), usage=USAGE)],
        [Text("hi"), Used(Usage(12, 7, 19, 4, 3)), STOP],
    ),
    "two parts, the first one streamed": (
        [ev("output_text.delta", delta="a"), ev("output_item.done", item=message(said("a"), said("b"))), done()],
        [Text("a"), PartBegan("output_text"), Text("b"), STOP],
    ),
    "deltas without indexes or ids": (
        [ev("output_text.delta", None, delta="a"), ev("output_text.delta", None, delta="b"), done(message(said("ab")))],
        [Text("a"), Text("b"), STOP],
    ),
    "deltas by item id only": (
        [
            {"type": "response.output_item.added", "item": call("", id="x")},
            {"type": "response.function_call_arguments.delta", "item_id": "x", "delta": "{}"},
            done(call("{}", id="x")),
        ],
        [OPENED, CallArguments(0, "{}"), CALLED],
    ),
    "other ids in the final object": (
        [ev("output_text.delta", delta="hi"), done(message(said("hi"), id="another"))],
        [Text("hi"), STOP],
    ),
    "a final object without its reasoning": (
        [
            ev("reasoning_text.delta", 0, delta="t"),
            ev("output_text.delta", 1, delta="hi"),
            done(message(said("hi"))),
        ],
        [Reasoning("t"), Text("hi"), STOP],
    ),
    "refusal deltas": (
        [ev("refusal.delta", delta="No."), done(message({"type": "refusal", "refusal": "No."}))],
        [Refusal("No."), STOP],
    ),
    "refusal in the end only": ([done(message({"type": "refusal", "refusal": "No."}))], [Refusal("No."), STOP]),
    "reasoning text": (
        [ev("reasoning_text.delta", delta="t"), ev("output_item.done", item={**THOUGHT, "summary": []}), done()],
        [Reasoning("t"), STOP],
    ),
    "reasoning under its older event name": ([ev("reasoning.delta", delta="t"), done()], [Reasoning("t"), STOP]),
    "parts of a summary are parts": (
        [
            ev("reasoning_summary_text.delta", summary_index=0, delta="s"),
            ev("reasoning_summary_text.delta", summary_index=0, delta="1"),
            ev("reasoning_summary_text.delta", summary_index=1, delta="s2"),
            ev("output_item.done", item={**THOUGHT, "content": []}),
            done(),
        ],
        [
            *(Reasoning("s", "summary"), Reasoning("1", "summary")),
            *(PartBegan("summary_text"), Reasoning("s2", "summary"), STOP),
        ],
    ),
    "reasoning in the end only": (
        [ev("output_item.done", item=THOUGHT), done()],
        [Reasoning("s1", "summary"), PartBegan("summary_text"), Reasoning("s2", "summary"), Reasoning("t"), STOP],
    ),
    "sealed reasoning": (
        [ev("output_item.done", item={**SEALED, "status": "completed"}), done()],
        [VendorExtra("encrypted_content", [SEALED]), STOP],
    ),
    "function call in deltas": (
        [
            ev("output_item.added", item=call("", status="in_progress")),
            ev("function_call_arguments.delta", delta='{"a"'),
            ev("function_call_arguments.delta", delta=":1}"),
            ev("function_call_arguments.done", arguments='{"a":1}'),
            ev("output_item.done", item=call()),
            done(call()),
        ],
        [OPENED, CallArguments(0, '{"a"'), CallArguments(0, ":1}"), CALLED],
    ),
    "function call in the end only": (
        [ev("output_item.done", item=call()), done(call())],
        [OPENED, WHOLE, CALLED],
    ),
    "function call in the final object only": ([done(call())], [OPENED, WHOLE, CALLED]),
    "arguments before their call are made up from its end": (
        [ev("function_call_arguments.delta", delta='{"a"'), ev("output_item.done", item=call()), done()],
        [OPENED, WHOLE, CALLED],
    ),
    "arguments that end otherwise than they were told": (
        [
            ev("output_item.added", item=call("")),
            ev("function_call_arguments.delta", delta='{"a":2'),
            ev("output_item.done", item=call()),
            done(),
        ],
        [OPENED, CallArguments(0, '{"a":2'), CallArguments(0, '{"a":1}', replace=True), CALLED],
    ),
    "a call without a call id": (
        [ev("output_item.done", item=call(call_id=None)), done()],
        [CallOpened(0, "fc_1", "f"), WHOLE, CALLED],
    ),
    "custom call in deltas": (
        [
            ev("output_item.added", item=custom("")),
            ev("custom_tool_call_input.delta", delta='say "hi'),
            ev("custom_tool_call_input.delta", delta='"\n'),
            ev("output_item.done", item=custom()),
            done(custom()),
        ],
        [*CUSTOM_OPENED, CallArguments(0, 'say \\"hi'), CallArguments(0, '\\"\\n'), CallArguments(0, '"}'), CALLED],
    ),
    "custom call in the end only": ([ev("output_item.done", item=custom()), done()], [*WRAPPED, CALLED]),
    "custom call in the final object only": ([done(custom())], [*WRAPPED, CALLED]),
    "custom call that ends otherwise": (
        [
            ev("output_item.added", item=custom("")),
            ev("custom_tool_call_input.delta", delta="no"),
            ev("output_item.done", item=custom("yes")),
            done(),
        ],
        [*CUSTOM_OPENED, CallArguments(0, "no"), CallArguments(0, '{"input":"yes"}', replace=True), CALLED],
    ),
    "custom call cut off": (
        [
            ev("output_item.added", item=custom("")),
            ev("custom_tool_call_input.delta", delta="he"),
            done(
                custom("hel", status="incomplete"),
                kind="incomplete",
                incomplete_details={"reason": "max_output_tokens"},
            ),
        ],
        [*CUSTOM_OPENED, CallArguments(0, "he"), CallArguments(0, "l"), Finished("length")],
    ),
    "parallel calls, interleaved": (
        [
            ev("output_item.added", 0, item=call("")),
            ev("output_item.added", 1, item=call("", id="fc_2", call_id="call_9", name="g")),
            ev("function_call_arguments.delta", 1, delta="{}"),
            ev("function_call_arguments.delta", 0, delta='{"a":1}'),
            done(call(), call("{}", id="fc_2", call_id="call_9", name="g")),
        ],
        [OPENED, CallOpened(1, "call_9", "g"), CallArguments(1, "{}"), CallArguments(0, '{"a":1}'), CALLED],
    ),
    "annotations as they come": (
        [
            ev("output_text.delta", delta="hi"),
            ev("output_text.annotation.added", annotation=CITATION),
            ev("output_item.done", item=message(said("hi", annotations=[CITATION]))),
            done(),
        ],
        [Text("hi"), Annotation(CITATION), STOP],
    ),
    "annotations in the end only": (
        [ev("output_text.delta", delta="hi"), done(message(said("hi", annotations=[CITATION])))],
        [Text("hi"), Annotation(CITATION), STOP],
    ),
    "a citation with holes is filled": (
        [
            ev("output_text.annotation.added", annotation={"type": "url_citation", "url": "u", "start_index": None}),
            done(),
        ],
        [Annotation({"type": "url_citation", "url": "u", "title": "", "start_index": 0, "end_index": 0}), STOP],
    ),
    "log probabilities": (
        [ev("output_text.delta", delta="a", logprobs=[{"token": "a", "logprob": -0.5}]), done()],
        [Text("a", [{"token": "a", "bytes": [], "logprob": -0.5, "top_logprobs": []}]), STOP],
    ),
    "hosted calls": (
        [
            ev("output_item.added", 0, item={"type": "web_search_call", "id": "ws_1", "status": "in_progress"}),
            ev("web_search_call.searching", 0, item_id="ws_1"),
            ev(
                "output_item.done",
                0,
                item={
                    "type": "web_search_call",
                    "id": "ws_1",
                    "status": "completed",
                    "action": {"type": "search", "query": "q"},
                },
            ),
            ev("output_item.done", 1, item={"type": "mcp_list_tools", "id": "m", "server_label": "s", "tools": []}),
            done(),
        ],
        [
            HostedOpened(0, {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}),
            HostedProgress(0, "response.web_search_call.searching", {}),
            HostedCall(
                {
                    "type": "web_search_call",
                    "id": "ws_1",
                    "status": "completed",
                    "action": {"type": "search", "query": "q"},
                },
                0,
            ),
            HostedCall({"type": "mcp_list_tools", "id": "m", "server_label": "s", "tools": []}),
            STOP,
        ],
    ),
    "cut by length": (
        [
            ev("output_text.delta", delta="a"),
            done(kind="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        ],
        [Text("a"), Finished("length")],
    ),
    "filtered": (
        [done(kind="incomplete", incomplete_details={"reason": "content_filter"})],
        [Finished("content_filter")],
    ),
    "incomplete for no reason": ([done(kind="incomplete")], [Finished("length")]),
    "failed": (
        [done(kind="failed", error={"code": "rate_limit_exceeded", "message": "Rate limit reached; try again in 2s"})],
        [Failed("Rate limit reached; try again in 2s", "rate_limit_exceeded")],
    ),
    "failed without words": ([done(kind="failed")], [Failed("the upstream's response failed")]),
    "cancelled": ([done(kind="cancelled")], [Failed("the upstream's response failed")]),
    "error event, flat": (
        [ev("error", None, code="server_error", message="boom", param=None)],
        [Failed("boom")],
    ),
    "error event, nested": (
        [ev("error", None, error={"code": "context_length_exceeded", "message": "too long"})],
        [Failed("too long", "context_length_exceeded")],
    ),
    "an error without a type": ([{"error": {"message": "boom"}}], [Failed("boom")]),
    "the realtime name of the end": (
        [{"type": "response.done", "response": {"output": [message(said("hi"))]}}],
        [Text("hi"), STOP],
    ),
    "events that nobody needs": (
        [ev("queued", None), ev("in_progress", None), ev("content_part.added"), {"type": "keepalive"}, done()],
        [STOP],
    ),
    "a stream that just ends": ([ev("output_text.delta", delta="a")], [Text("a")]),
}


@pytest.mark.parametrize(("events", "expected"), STREAMS.values(), ids=list(STREAMS))
def test_events_become_deltas(events: list[Json], expected: list[Delta]) -> None:
    assert bare(decode(*events)) == expected


REPLIES: dict[str, tuple[Json, list[Delta]]] = {
    "everything in its order": (
        {
            "status": "completed",
            "output": [THOUGHT, message(said("hi", annotations=[CITATION])), call()],
            "usage": USAGE,
        },
        [
            Reasoning("s1", "summary"),
            PartBegan("summary_text"),
            Reasoning("s2", "summary"),
            Reasoning("t"),
            Text("hi"),
            Annotation(CITATION),
            OPENED,
            WHOLE,
            Used(Usage(12, 7, 19, 4, 3)),
            CALLED,
        ],
    ),
    "no status": ({"output": [message(said("hi"))]}, [Text("hi"), STOP]),
    "null error": ({"status": "completed", "output": [], "error": None}, [STOP]),
    "an error with output": (
        {"status": "failed", "output": [message(said("hi"))], "error": {"message": "boom"}},
        [Text("hi"), Failed("boom")],
    ),
    "an error in place of a response": (
        {"error": {"message": "boom", "code": 429}},
        [Failed("boom", "rate_limit_exceeded")],
    ),
    "no output": ({"object": "response"}, [Failed("the upstream's reply has no output")]),
    "still queued": ({"status": "queued", "output": []}, [Failed("the upstream's response failed")]),
    "incomplete": (
        {"status": "incomplete", "output": [message(said("h"))], "incomplete_details": {"reason": "max_output_tokens"}},
        [Text("h"), Finished("length")],
    ),
}


@pytest.mark.parametrize(("body", "expected"), REPLIES.values(), ids=list(REPLIES))
def test_a_whole_reply_becomes_deltas(body: Json, expected: list[Delta]) -> None:
    assert bare(reply(**body)) == expected


BEGUN, ENDED = ItemBegan("message", None, "msg_1"), ItemEnded()
COMMENT = message(said("Looking."), id="m1", phase="commentary")
ANSWER = message(said("Done.", annotations=[CITATION]), id="m2", phase="final_answer")
TWO: list[Delta] = [
    *(ItemBegan("message", "commentary", "m1"), Text("Looking."), ENDED),
    *(ItemBegan("message", "final_answer", "m2"), Text("Done."), Annotation(CITATION), ENDED),
    STOP,
]
BOUNDS: dict[str, tuple[list[Json], list[Delta]]] = {
    "two messages, in deltas": (
        [
            ev("output_item.added", 0, item={**COMMENT, "content": []}),
            ev("output_text.delta", 0, delta="Looking."),
            ev("output_item.done", 0, item=COMMENT),
            ev("output_item.added", 1, item={**ANSWER, "content": []}),
            ev("output_text.delta", 1, delta="Done."),
            ev("output_text.annotation.added", 1, annotation=CITATION),
            ev("output_item.done", 1, item=ANSWER),
            done(COMMENT, ANSWER),
        ],
        TWO,
    ),
    "two messages, in the end only": (
        [ev("output_item.done", 0, item=COMMENT), ev("output_item.done", 1, item=ANSWER), done()],
        TWO,
    ),
    "two messages, in the final object only": ([done(COMMENT, ANSWER)], TWO),
    "a phase that is told in the end only": (
        [ev("output_text.delta", 0, item_id="m1", delta="Looking."), done(COMMENT)],
        [ItemBegan("message", None, "m1"), Text("Looking."), ItemEnded(phase="commentary"), STOP],
    ),
    "parts of one message": (
        [
            ev("content_part.added", item_id="msg_1", content_index=0, part=said("")),
            ev("output_text.delta", content_index=0, delta="a"),
            ev("content_part.done", content_index=0, part=said("ab", annotations=[CITATION])),
            ev("content_part.added", content_index=1, part=said("")),
            ev("output_text.delta", content_index=1, delta="c"),
            done(message(said("ab", annotations=[CITATION]), said("c"))),
        ],
        [
            *(BEGUN, Text("a"), Text("b"), Annotation(CITATION)),
            *(PartBegan("output_text"), Text("c"), ENDED, STOP),
        ],
    ),
    "a part that stays empty": (
        [
            ev("output_item.added", item=message()),
            ev("content_part.added", content_index=0, part=said("")),
            done(message(said(""))),
        ],
        [BEGUN, PartBegan("output_text"), ENDED, STOP],
    ),
    "words that come back to a message which was left": (
        [
            ev("output_text.delta", 0, item_id="msg_1", delta="Hel"),
            ev("output_item.added", 1, item=call("")),
            ev("output_item.done", 0, item=message(said("Hello"))),
            done(message(said("Hello")), call("{}")),
        ],
        [BEGUN, Text("Hel"), OPENED, BEGUN, Text("lo"), ENDED, CallArguments(0, "{}", whole=True), CALLED],
    ),
    "sealed thoughts, each with its own envelope": (
        [done({**SEALED, "id": "rs_1"}, call(), {**SEALED, "id": "rs_2", "encrypted_content": "other"})],
        [
            *(ItemBegan("reasoning", None, "rs_1"), VendorExtra("encrypted_content", [SEALED]), ENDED),
            *(OPENED, WHOLE),
            ItemBegan("reasoning", None, "rs_2"),
            VendorExtra("encrypted_content", [{**SEALED, "id": "rs_2", "encrypted_content": "other"}]),
            *(ENDED, CALLED),
        ],
    ),
    "a message that was cut off": (
        [done(message(said("h"), status="incomplete"), kind="incomplete")],
        [BEGUN, Text("h"), ItemEnded("incomplete"), Finished("length")],
    ),
    "an item that nobody knows": (
        [done({"type": "hologram", "id": "h"})],
        [
            Markup("an output item of type `hologram` has no counterpart here", "bridge.response.part_ignored"),
            STOP,
        ],
    ),
}


@pytest.mark.parametrize(("events", "expected"), BOUNDS.values(), ids=list(BOUNDS))
def test_items_and_parts_keep_their_bounds(events: list[Json], expected: list[Delta]) -> None:
    assert decode(*events) == expected


@pytest.mark.parametrize("kind", ["completed", "incomplete", "failed", "cancelled"])
def test_the_terminal_event_ends_the_reading(kind: str) -> None:
    decoder = ResponsesDecoder(ReplyRules())
    decoder.chunk(json.dumps(done(kind=kind)).encode())
    assert decoder.done
    assert decoder.chunk(json.dumps(ev("output_text.delta", delta="more")).encode()) == []


kinds = sorted({event.get("type", "") for events, _ in STREAMS.values() for event in events})
fields = [
    "type", "output_index", "item_id", "item", "delta", "summary_index", "annotation", "response", "output", "content",
    "summary", "status", "usage", "error", "logprobs", "id", "call_id", "name", "arguments", "input", "text",
    "annotations", "encrypted_content", "incomplete_details",
]  # fmt: skip
item_types = ["message", "reasoning", "function_call", "custom_tool_call", "web_search_call", "output_text", "refusal"]
junk = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.text(max_size=3) | st.sampled_from([*kinds, *item_types]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(fields), inner, max_size=5),
    max_leaves=12,
)
events = st.builds(
    lambda kind, rest: {**rest, "type": kind},
    st.sampled_from(kinds) | junk,
    st.dictionaries(st.sampled_from(fields), junk, max_size=6),
)


@given(st.lists(events, max_size=6))
@settings(max_examples=500, deadline=None)
def test_garbage_never_raises(given_events: list[Json]) -> None:
    decode(*given_events)


@given(junk)
@settings(max_examples=300, deadline=None)
def test_a_garbage_reply_never_raises(body: Any) -> None:
    decoder = ResponsesDecoder(ReplyRules())
    assert decoder.reply(json.dumps({"output": body} if isinstance(body, list) else body).encode())
