"""Follows a stream as a strict client would, and says at which event it stopped making sense.

In: events that are each well-formed. Out: the terminal response. The machine:

    idle ── created ──▶ created ── [queued] ── in_progress ──▶ running ── completed │ incomplete │ failed ──▶ ended
                        running: in_progress again (a heartbeat), and the items' own events
                        `error` may only stand right before `failed`; `failed` may also follow `created`

    item     added ── its own events ── done              part   added ── delta* ── done text ── part done
    call     delta* ── done text                          command   added ── delta* ── done
"""

from __future__ import annotations

from typing import Any, Final

from wire.parts import (
    CALL_TEXTS,
    Item,
    add_item,
    add_part,
    command,
    expect,
    finish_item,
    finish_part,
    open_part,
    part_text,
    stage,
)

Json = dict[str, Any]

_PART_TEXTS: Final = {
    "response.output_text": ("content", "output_text"),
    "response.refusal": ("content", "refusal"),
    "response.reasoning_text": ("content", "reasoning_text"),
    "response.reasoning": ("content", "reasoning_text"),
    "response.reasoning_summary_text": ("summary", "summary_text"),
}
_STATUSES: Final = {
    "response.created": ("in_progress", "queued"),
    "response.queued": ("queued",),
    "response.in_progress": ("in_progress",),
    "response.completed": ("completed",),
    "response.incomplete": ("incomplete",),
    # No event says "cancelled": a cancelled response ends its stream as a failure.
    "response.failed": ("failed", "cancelled"),
}
_CHANGING: Final = (
    "status",
    "completed_at",
    "error",
    "incomplete_details",
    "output",
    "usage",
    "service_tier",
    "output_text",
    "tool_usage",
    "isthmus",
)
"""What may differ between two snapshots of one response; all the rest was settled at the start."""


def follow(events: list[Json], *, one_open_item: bool = False) -> Json:
    """The terminal response; `AssertionError` names the event that broke a rule."""
    machine = _Machine(one_open_item)
    for number, event in enumerate(events):
        try:
            machine.feed(number, event)
        except AssertionError as error:
            raise AssertionError(f"event {number} ({event['type']}): {error}") from None
    expect(machine.final is not None, "the stream ended without a terminal event")
    assert machine.final is not None
    return machine.final


class _Machine:
    def __init__(self, one_open_item: bool) -> None:
        self.final: Json | None = None
        self._one_open_item = one_open_item
        self._state = "idle"
        self._first: Json = {}
        self._items: list[Item] = []
        self._spelling: str | None = None

    def feed(self, number: int, event: Json) -> None:
        kind = event["type"]
        expect(event["sequence_number"] == number, f"sequence_number is {event['sequence_number']}, not {number}")
        expect(self._state != "ended", "something follows the terminal event")
        expect(self._state != "failing" or kind == "response.failed", "`error` is not followed by `response.failed`")
        if kind == "error":
            expect(self._state != "idle", "the stream does not begin with `response.created`")
            self._state = "failing"
        elif "response" in event:
            self._snapshot(kind, event["response"])
        else:
            expect(self._state == "running", f"an item's event while the response is {self._state}")
            self._item_event(kind, event)

    def _snapshot(self, kind: str, response: Json) -> None:
        expect(response["status"] in _STATUSES[kind], f"the response inside says `{response['status']}`")
        if self._state == "idle":
            expect(kind == "response.created", "the stream does not begin with `response.created`")
            expect(response["output"] == [], "a response is created with no output")
            self._first = response
            self._state = "created"
            return
        expect(kind != "response.created", "the response was created before")
        self._compare(response)
        if kind == "response.queued":
            expect(self._state == "created", f"queued while the response is {self._state}")
        elif kind == "response.in_progress":
            self._state = "running"
        else:
            self._end(kind, response)

    def _compare(self, response: Json) -> None:
        keys = [key for key in {**self._first, **response} if key not in _CHANGING]
        changed = [key for key in keys if self._first.get(key) != response.get(key)]
        expect(not changed, f"changed since `response.created`: {', '.join(changed)}")

    def _end(self, kind: str, response: Json) -> None:
        expect(self._state == "running" or kind == "response.failed", "`response.in_progress` never came")
        left = [index for index, item in enumerate(self._items) if item.done is None]
        expect(not left, f"items left open: {left}")
        done = [item.done for item in self._items]
        expect(len(response["output"]) == len(done), f"{len(done)} items done, {len(response['output'])} in the output")
        for index, (said, item) in enumerate(zip(response["output"], done, strict=True)):
            expect(said == item, f"output[{index}] is not the item that was done: {said} is not {item}")
        self._state = "ended"
        self.final = response

    def _item_event(self, kind: str, event: Json) -> None:
        if kind == "response.output_item.added":
            self._add_item(event)
            return
        item = self._open_item(event)
        family, _, verb = kind.rpartition(".")
        if kind == "response.output_item.done":
            finish_item(item, event["item"])
        elif kind in ("response.content_part.added", "response.reasoning_summary_part.added"):
            add_part(item, event)
        elif kind in ("response.content_part.done", "response.reasoning_summary_part.done"):
            finish_part(item, event)
        elif kind == "response.output_text.annotation.added":
            part = open_part(item, event, "content", "output_text")
            expect(event["annotation_index"] == len(part.annotations), "annotation_index leaves a gap")
            part.annotations.append(event["annotation"])
        elif family in _PART_TEXTS:
            self._one_spelling(family)
            part_text(open_part(item, event, *_PART_TEXTS[family]), verb, event)
        elif family in CALL_TEXTS:
            owner, name = CALL_TEXTS[family]
            expect(item.type == owner, f"the item at this index is a {item.type}")
            item.text.add(event["delta"]) if verb == "delta" else item.text.finish(event[name])
        elif family == "response.shell_call_command":
            command(item, verb, event)
        else:
            stage(item, family, verb)

    def _one_spelling(self, family: str) -> None:
        if family in ("response.reasoning", "response.reasoning_text"):
            expect(self._spelling in (None, family), f"{family} and {self._spelling} in one stream")
            self._spelling = family

    def _add_item(self, event: Json) -> None:
        item = event["item"]
        expect(event["output_index"] == len(self._items), f"output_index is not the next one, {len(self._items)}")
        expect(all(item["id"] != known.added["id"] for known in self._items), f"id {item['id']} is taken")
        still_open = [index for index, known in enumerate(self._items) if known.done is None]
        expect(not (self._one_open_item and still_open), f"an item opens while {still_open} are open")
        self._items.append(add_item(item))

    def _open_item(self, event: Json) -> Item:
        index = event["output_index"]
        expect(index < len(self._items), f"no item was added at output_index {index}")
        item = self._items[index]
        expect(item.done is None, f"the item at output_index {index} is done")
        said = event["item"]["id"] if "item" in event else event.get("item_id", item.added["id"])
        expect(said == item.added["id"], f"the item at output_index {index} is {item.added['id']}, not {said}")
        return item
