"""A scripted upstream that speaks Responses: the same scene as `isthmus.testing.chat`, in the other dialect.

`native(...)` takes what `chat(...)` takes, so that a test can put one scene to both dialects and compare what the
client sees. Custom calls are those whose arguments are given as `Free(text)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from isthmus.testing import Handler, RecordedRequest, reply, stream
from isthmus.testing.replies import split

Json = dict[str, Any]


@dataclass(frozen=True)
class Free:
    """The input of a custom call."""

    text: str


Call = tuple[str, str, str | Mapping[str, Any] | Free]


def native_items(
    text: str | None = None,
    *,
    reasoning: str | None = None,
    summary: str | None = None,
    sealed: str | None = None,
    refusal: str | None = None,
    calls: Sequence[Call] = (),
    incomplete: bool = False,
) -> list[Json]:
    """The output items of the scene, in the order in which a vendor gives them."""
    items: list[Json] = []
    if reasoning or summary or sealed:
        item: Json = {"type": "reasoning", "id": "rs_up", "status": "completed"}
        item["summary"] = [{"type": "summary_text", "text": summary}] if summary else []
        if reasoning:
            item["content"] = [{"type": "reasoning_text", "text": reasoning}]
        if sealed:
            item["encrypted_content"] = sealed
        items.append(item)
    parts: list[Json] = [{"type": "output_text", "text": text, "annotations": []}] if text is not None else []
    parts += [{"type": "refusal", "refusal": refusal}] if refusal is not None else []
    if parts:
        items.append({"type": "message", "id": "msg_up", "role": "assistant", "status": "completed", "content": parts})
    items += [_call(number, call) for number, call in enumerate(calls)]
    if incomplete and items:
        items[-1]["status"] = "incomplete"
    return items


def native_reply(items: Sequence[Json], *, status: str = "completed", **rest: Any) -> Json:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    details = {"reason": "max_output_tokens"} if status == "incomplete" else None
    return {
        "id": "resp_up",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": "scripted",
        "status": status,
        "error": None,
        "incomplete_details": details,
        "output": list(items),
        "usage": usage,
        **rest,
    }


def native_events(items: Sequence[Json], *, pieces: int = 3, status: str = "completed", **rest: Any) -> list[Json]:
    """The whole life of a streamed response, with sequence numbers as the protocol wants them."""
    head = {**native_reply([], **rest), "status": "in_progress", "usage": None}
    events: list[Json] = [
        {"type": "response.created", "response": head},
        {"type": "response.in_progress", "response": head},
    ]
    for index, item in enumerate(items):
        events += _item_events(index, item, pieces)
    final = native_reply(items, status=status, **rest)
    events.append({"type": f"response.{status}", "response": final})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def named_sse(events: Iterable[Json]) -> Iterator[bytes]:
    """Events with their `event:` line, as OpenAI sends them; there is no `[DONE]`."""
    for event in events:
        yield b"event: " + event["type"].encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n"


def native(
    text: str | None = None, *, finish: str | None = None, pieces: int = 3, slice: int | None = None, **scene: Any
) -> Handler:
    """An answer in the mode that the request asks for; `finish="length"` cuts it off."""
    cut = finish == "length"
    items = native_items(text, incomplete=cut, **scene)
    status = "incomplete" if cut else "completed"

    def handle(request: RecordedRequest) -> Any:
        if request.json.get("stream"):
            events = native_events(items, pieces=pieces, status=status)
            return stream(named_sse(events), done=False, slice=slice)
        return reply(native_reply(items, status=status), slice=slice)

    return handle


def _call(number: int, call: Call) -> Json:
    call_id, name, arguments = call
    base = {"call_id": call_id, "name": name, "status": "completed"}
    if isinstance(arguments, Free):
        return {"type": "custom_tool_call", "id": f"ctc_{number}", **base, "input": arguments.text}
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return {"type": "function_call", "id": f"fc_{number}", **base, "arguments": text}


def _item_events(index: int, item: Json, pieces: int) -> Iterator[Json]:
    place = {"output_index": index, "item_id": item["id"]}
    opened = {**item, "status": "in_progress", **_EMPTY.get(item["type"], {})}
    yield {"type": "response.output_item.added", "output_index": index, "item": opened}
    for number, part in enumerate(item.get("summary", ())):
        for piece in split(part["text"], pieces):
            yield {"type": "response.reasoning_summary_text.delta", **place, "summary_index": number, "delta": piece}
    for number, part in enumerate(item.get("content", ())):
        kind, field = _PART_EVENTS[part["type"]]
        yield {"type": "response.content_part.added", **place, "content_index": number, "part": {**part, field: ""}}
        for piece in split(part[field], pieces):
            yield {"type": f"response.{kind}.delta", **place, "content_index": number, "delta": piece}
        for annotation in part.get("annotations", ()):
            at = {**place, "content_index": number, "annotation_index": 0}
            yield {"type": "response.output_text.annotation.added", **at, "annotation": annotation}
        yield {"type": f"response.{kind}.done", **place, "content_index": number, field: part[field]}
        yield {"type": "response.content_part.done", **place, "content_index": number, "part": part}
    for field, kind in (("arguments", "function_call_arguments"), ("input", "custom_tool_call_input")):
        for piece in split(item.get(field, ""), pieces):
            yield {"type": f"response.{kind}.delta", **place, "delta": piece}
        if field in item:
            yield {"type": f"response.{kind}.done", **place, field: item[field]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


_EMPTY: dict[str, Json] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
    "reasoning": {"summary": [], "content": []},
}
_PART_EVENTS = {
    "output_text": ("output_text", "text"),
    "refusal": ("refusal", "refusal"),
    "reasoning_text": ("reasoning_text", "text"),
}
