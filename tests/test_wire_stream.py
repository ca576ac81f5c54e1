"""The oracle for streams: a correct one passes, and each way to spoil it is seen and named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wire import samples
from wire.defects import Change, again, altered, at, moved, without
from wire.frames import read_frames
from wire.objects import EVENTS
from wire.oracle import check_event, check_response, check_sse, check_stream

Json = dict[str, Any]
ALL = tuple(samples.ITEMS)
EVERY_EVENT = {
    event["type"]: event
    for spelling in ("reasoning_text", "reasoning")
    for ending in samples.ENDINGS
    for event in samples.stream(*ALL, ending=ending, spelling=spelling)
}
NULLABLE = [("error", "code"), ("error", "param")]


@pytest.mark.parametrize("spelling", ["reasoning_text", "reasoning"])
@pytest.mark.parametrize("ending", samples.ENDINGS)
@pytest.mark.parametrize("items", [(), *((name,) for name in ALL), ALL], ids=lambda items: "+".join(items) or "nothing")
def test_a_correct_stream_passes_and_gives_its_response(items: tuple[str, ...], ending: str, spelling: str) -> None:
    final = check_stream(samples.stream(*items, ending=ending, spelling=spelling), one_open_item=True)
    assert final["output"] == [samples.ITEMS[name] for name in items]
    check_response(final)


def test_the_samples_show_every_event_that_has_a_schema() -> None:
    failed = {"response.mcp_call.failed", "response.mcp_list_tools.failed"}
    assert set(EVERY_EVENT) == set(EVENTS) - {"response.queued"} - failed


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, event in EVERY_EVENT.items() for name in event])
def test_no_field_of_an_event_may_be_left_out(kind: str, name: str) -> None:
    with pytest.raises(AssertionError):
        check_event({key: value for key, value in EVERY_EVENT[kind].items() if key != name})


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind, event in EVERY_EVENT.items()
        for name in event
        if (kind, name) not in (("error", "code"), ("error", "param"))
    ],
)
def test_no_field_of_an_event_may_be_null(kind: str, name: str) -> None:
    with pytest.raises(AssertionError):
        check_event({**EVERY_EVENT[kind], name: None})


def last_removed(events: list[Json]) -> list[Json]:
    return events[:-1]


def all_but_last_without_progress(events: list[Json]) -> list[Json]:
    return samples.renumber([events[0], events[-1]])


def other_spelling_midway(events: list[Json]) -> list[Json]:
    events[at(events, "reasoning_text.done")]["type"] = "response.reasoning.done"
    return events


def refusal_in_a_text(events: list[Json]) -> list[Json]:
    delta = events[at(events, "output_text.delta")]
    delta["type"] = "response.refusal.delta"
    del delta["logprobs"]
    return events


def error_without_failure(events: list[Json]) -> list[Json]:
    error = next(event for event in samples.stream(ending="failed") if event["type"] == "error")
    return samples.renumber([*events[:-1], error, events[-1]])


STREAM_DEFECTS: dict[str, tuple[Change, str]] = {
    "no created": (without("created"), "does not begin"),
    "created twice": (again("created"), "created before"),
    "no in_progress": (all_but_last_without_progress, "never came"),
    "no terminal": (last_removed, "without a terminal event"),
    "two terminals": (again("completed"), "follows the terminal"),
    "event after the terminal": (lambda e: samples.renumber([*e, e[1]]), "follows the terminal"),
    "error then success": (error_without_failure, "not followed by `response.failed`"),
    "terminal says in_progress": (altered("completed", "response.status", "in_progress"), "completed"),
    "sequence from one": (lambda e: [{**x, "sequence_number": x["sequence_number"] + 1} for x in e], "is 1, not 0"),
    "sequence repeated": (altered("output_text.delta", "sequence_number", 2), "sequence_number is 2"),
    "sequence missing": (altered("output_text.delta", "sequence_number", ...), '"sequence_number" is a required'),
    "sequence a float": (altered("created", "sequence_number", 0.0), "without a fraction"),
    "unknown event": (altered("output_text.delta", "type", "response.text.delta"), "no event that we send"),
    "response id changed": (altered("completed", "response.id", "resp_2"), "changed since `response.created`: id"),
    "model changed": (altered("completed", "response.model", "other"), "changed since `response.created`: model"),
    "output index skipped": (altered("output_item.added", "output_index", 1), "not the next one"),
    "item never added": (without("output_item.added"), "no item was added"),
    "item never done": (without("output_item.done"), "left open"),
    "item reopened": (again("output_item.added", before="output_item.done"), "not the next one"),
    "item done twice": (again("output_item.done"), "is done"),
    "item id taken": (altered("output_item.added", "item.id", "msg_1", 1), "is taken"),
    "item id changed": (altered("output_item.done", "item.id", "msg_9"), "not msg_9"),
    "call name changed": (
        altered("output_item.done", "item.name", "write", 2),
        "changed since the item was added: name",
    ),
    "item begins completed": (altered("output_item.added", "item.status", "completed"), "begins as `completed`"),
    "item ends in progress": (altered("output_item.done", "item.status", "in_progress"), "ends as `in_progress`"),
    "item begins with text": (altered("output_item.added", "item.arguments", "{}", 2), "not empty"),
    "delta for an unopened part": (without("content_part.added"), "no content part was added"),
    "delta for another item": (altered("output_text.delta", "item_id", "rs_1"), "is msg_1, not rs_1"),
    "delta after its done": (moved("output_text.delta", before="content_part.done"), "the deltas make"),
    "delta again after done": (again("output_text.delta", before="content_part.done"), "after the text was done"),
    "delta after the item is done": (
        lambda e: samples.renumber([*e[:-1], e[at(e, "output_text.delta")], e[-1]]),
        "is done",
    ),
    "delta of the wrong family": (refusal_in_a_text, "part at index 0 is output_text"),
    "delta lost": (without("output_text.delta"), "the deltas make"),
    "delta without logprobs": (altered("output_text.delta", "logprobs", ...), '"logprobs" is a required'),
    "text never done": (without("output_text.done"), "done before its text"),
    "text done twice": (again("output_text.done"), "done before"),
    "part never done": (without("content_part.done"), "while another one is open"),
    "last part never done": (without("content_part.done", 1), "left open"),
    "part says other text": (altered("content_part.done", "part.text", "Hi"), "the part says"),
    "part index skipped": (altered("content_part.added", "content_index", 1), "not the next one"),
    "part in the wrong item": (
        altered("content_part.added", "part", {"type": "reasoning_text", "text": ""}),
        "a message has no reasoning_text",
    ),
    "part begins with text": (altered("content_part.added", "part.text", "H"), "not empty before its first delta"),
    "annotation never added": (without("output_text.annotation.added"), "not those that were added"),
    "annotation index skipped": (altered("output_text.annotation.added", "annotation_index", 1), "leaves a gap"),
    "summary text lost": (without("reasoning_summary_text.delta"), "the deltas make"),
    "summary part left open": (without("reasoning_summary_part.done", 1), "left open"),
    "two spellings of reasoning": (other_spelling_midway, "in one stream"),
    "arguments never done": (without("function_call_arguments.done"), "never done"),
    "arguments delta lost": (without("function_call_arguments.delta", 1), "the deltas make"),
    "item says other arguments": (altered("output_item.done", "item.arguments", "{}", 2), "not what the deltas said"),
    "custom input never done": (without("custom_tool_call_input.done"), "never done"),
    "custom input for a function": (altered("custom_tool_call_input.delta", "output_index", 2), "is done"),
    "command left open": (without("shell_call_command.done", 1), "left open"),
    "command never added": (without("shell_call_command.added"), "no command was added"),
    "item says other commands": (
        altered("output_item.done", "item.action.commands", [], 4),
        "not what its events said",
    ),
    "search stages reversed": (moved("web_search_call.completed", before="web_search_call.searching"), "after"),
    "search never completed": (without("web_search_call.completed"), "never completed"),
    "terminal output differs": (
        altered("completed", "response.output.0.phase", "commentary"),
        "not the item that was done",
    ),
    "terminal output shorter": (altered("completed", "response.output", []), "in the output"),
}


@pytest.mark.parametrize(("defect", "complaint"), STREAM_DEFECTS.values(), ids=STREAM_DEFECTS)
def test_a_defective_stream_is_refused(defect: Change, complaint: str) -> None:
    events = samples.stream(
        "message", "reasoning", "function_call", "custom_tool_call", "shell_call", "web_search_call"
    )
    check_stream(events)
    with pytest.raises(AssertionError) as caught:
        check_stream(defect(events))
    assert complaint in str(caught.value)


def test_an_item_never_changes_its_type() -> None:
    events = samples.stream("local_shell_call")
    done = {**samples.ITEMS["apply_patch_call"], "id": "lsh_1"}
    events[at(events, "output_item.done")]["item"] = events[-1]["response"]["output"][0] = done
    with pytest.raises(AssertionError, match="changed since the item was added: type"):
        check_stream(events)


def test_an_empty_stream_is_refused() -> None:
    with pytest.raises(AssertionError, match="without a terminal event"):
        check_stream([])


def test_items_may_overlap_unless_one_at_a_time_is_asked_for() -> None:
    events = samples.stream("local_shell_call", "apply_patch_call")
    overlapping = moved("output_item.done", before="completed")(events)
    check_stream(overlapping)
    with pytest.raises(AssertionError, match=r"opens while \[0\] are open"):
        check_stream(overlapping, one_open_item=True)


def test_a_queued_response_may_start_later_or_fail_at_once() -> None:
    created, running, final = samples.stream()
    queued = {**created["response"], "status": "queued"}
    start = [{"type": "response.created", "response": queued}, {"type": "response.queued", "response": queued}]
    check_stream(samples.renumber([*start, running, final]))
    *_, failed = samples.stream(ending="failed")
    check_stream(samples.renumber([*start, failed]))


def test_a_cancelled_response_ends_its_stream_as_a_failure() -> None:
    *begun, _, final = samples.stream("message", ending="failed")
    cancelled = {**final, "response": {**final["response"], "status": "cancelled", "error": None}}
    assert check_stream(samples.renumber([*begun, cancelled]))["status"] == "cancelled"


def test_a_missing_or_flat_error_event_is_refused() -> None:
    error = next(event for event in samples.stream(ending="failed") if event["type"] == "error")
    for name in ("error", "message", "code", "param"):
        with pytest.raises(AssertionError, match=f'"{name}" is a required'):
            check_event({key: value for key, value in error.items() if key != name})


# The bytes around the events


def frames(events: list[Json]) -> list[bytes]:
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events] + [
        b"data: [DONE]\n\n"
    ]


def test_a_correct_body_passes_with_comments_between_its_frames() -> None:
    events = samples.stream("message")
    first, *others = frames(events)
    body = b"".join([b": hello\n\n", first, b": keep-alive\n\n", *others])
    assert read_frames(body) == events
    assert check_sse(body) == events[-1]["response"]


BODY_DEFECTS: dict[str, tuple[bytes, bytes, str]] = {
    "no DONE": (b"data: [DONE]\n\n", b"", "not `\\[DONE\\]`"),
    "CRLF": (b"\n", b"\r\n", "LF"),
    "cut off": (b"[DONE]\n\n", b"[DONE]\n", "no end"),
    "no event line": (b"event: response.created\n", b"", "does not begin with `event: `"),
    "wrong event line": (b"event: response.created", b"event: response.queued", "over a body of type"),
    "an id line": (b"event: response.created\n", b"event: response.created\nid: 1\n", "no `data: ` behind"),
    "two data lines": (b"\n\ndata: [DONE]", b"\ndata: x\n\ndata: [DONE]", "more than one data line"),
}


@pytest.mark.parametrize(("old", "new", "complaint"), BODY_DEFECTS.values(), ids=BODY_DEFECTS)
def test_a_defective_body_is_refused(old: bytes, new: bytes, complaint: str) -> None:
    body = b"".join(frames(samples.stream("message"))).replace(old, new)
    with pytest.raises(AssertionError, match=complaint):
        check_sse(body)


def test_an_empty_body_is_refused() -> None:
    with pytest.raises(AssertionError, match="no end"):
        check_sse(b"")
