"""Is this what a client of the Responses API may be sent? Raises `AssertionError` with every reason why not.

    check_response(response)     one Response object, whatever its status
    check_item(item)             one output item
    check_event(event)           one stream event
    check_stream(events)         a whole stream, in order; gives the terminal response back
    check_sse(body)              the same, from the bytes of an SSE answer

Three judges look at each object: our own schemas (`items`, `objects`), the official SDK (`sdk`), and the
Open Responses document (`document`). `stream` then follows the events as a client would.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from typing import Any

import jsonschema_rs

from wire import document, sdk
from wire.frames import read_frames
from wire.items import ITEM
from wire.objects import EVENTS, RESPONSE
from wire.shapes import Schema, complaints
from wire.stream import follow

Json = dict[str, Any]


def check_response(response: Json) -> None:
    found = complaints(_response(), response)
    found = found or [*_facts(response), *sdk.judge_response(response), *document.judge_response(response)]
    _say(found, "response", response)


def check_item(item: Json) -> None:
    found = complaints(_item(), item)
    found = found or [*sdk.judge_item(item), *document.judge_item(item)]
    _say(found, "item", item)


def check_event(event: Json) -> None:
    kind = event.get("type")
    validator = _event(kind) if isinstance(kind, str) else None
    if validator is None:
        raise AssertionError(f"`{kind}` is no event that we send")
    found = complaints(validator, event)
    if not found:
        found = [f"response.{fact}" for fact in _facts(event["response"])] if "response" in event else []
        if type(event["sequence_number"]) is not int:
            found.append("sequence_number: a whole number is written without a fraction")
        found += [*sdk.judge_event(event), *document.judge_event(event)]
    _say(found, f"event {kind}", event)


def check_stream(events: Iterable[Json], *, one_open_item: bool = False) -> Json:
    """With `one_open_item`, an item must also be closed before the next one opens."""
    kept = list(events)
    for event in kept:
        check_event(event)
    return follow(kept, one_open_item=one_open_item)


def check_sse(body: bytes, *, one_open_item: bool = False) -> Json:
    return check_stream(read_frames(body), one_open_item=one_open_item)


def _facts(response: Json) -> list[str]:
    """What a schema cannot say: how status, times, error and items agree."""
    status = response["status"]
    items = response["output"]
    broken = [index for index, item in enumerate(items) if item["status"] in ("incomplete", "in_progress", "searching")]
    ids = [item["id"] for item in items]
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    text = "".join(part["text"] for part in parts if part["type"] == "output_text")
    over = status in ("completed", "incomplete", "failed", "cancelled")
    rules = {
        "created_at: a whole number is written without a fraction": type(response["created_at"]) is int,
        "completed_at: set exactly when the status is `completed`": (
            (response["completed_at"] is not None) == (status == "completed")
        ),
        "completed_at: before created_at": (response["completed_at"] or response["created_at"])
        >= response["created_at"],
        "error: set exactly when the status is `failed`": (response["error"] is not None) == (status == "failed"),
        "incomplete_details: set exactly when the status is `incomplete`": (
            (response["incomplete_details"] is not None) == (status == "incomplete")
        ),
        "output_text: not the text of the messages": response.get("output_text", text) == text,
        "output: two items share an id": len(set(ids)) == len(ids),
        "output: an item is unfinished in a completed response": status != "completed" or not broken,
        # A cut call may stand before others: vendors interleave parallel calls, and half a call is never complete.
        "output: an unfinished item is not the last": not over
        or all(index == len(items) - 1 or items[index]["type"].endswith("_call") for index in broken),
        "output: an item is still in progress": not over
        or all(item["status"] not in ("in_progress", "searching") for item in items),
    }
    return [rule for rule, kept in rules.items() if not kept]


def _say(found: list[str], what: str, value: Json) -> None:
    if found:
        reasons = "\n  ".join(found)
        raise AssertionError(f"{what} is not fit to be sent:\n  {reasons}\n{json.dumps(value, default=repr)[:2000]}")


@functools.cache
def _response() -> jsonschema_rs.Validator:
    return _compile(RESPONSE)


@functools.cache
def _item() -> jsonschema_rs.Validator:
    return _compile(ITEM)


@functools.cache
def _event(kind: str) -> jsonschema_rs.Validator | None:
    return _compile(EVENTS[kind]) if kind in EVENTS else None


def _compile(schema: Schema) -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(schema)
