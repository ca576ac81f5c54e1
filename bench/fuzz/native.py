"""What native Responses streams are made of: items with their parts and deltas, more or less as providers send them.

Some leave out ids or indexes, tell an item only by its end or only in the final object, tell it twice, or end it with
something else than it began with.
"""

from __future__ import annotations

import random
from typing import Any, Final

from bench.fuzz.grammar import ARGUMENTS, NAMES, WORDS, make_error

Json = dict[str, Any]
ENDS: Final = ("completed", "completed", "completed", "incomplete", "failed", "cancelled", "done")
_TEXTS: Final = ("output_text", "refusal", "reasoning_text", "reasoning_summary_text", "reasoning")
_HOSTED: Final = ("web_search_call.searching", "mcp_call.in_progress", "image_generation_call.partial_image", "odd")


def make_native(chance: random.Random) -> tuple[Json | bytes, ...]:
    """The events of one stream."""
    events: list[Json | bytes] = [_event("created", response=_response(chance, [], "in_progress"))]
    items = [_item(chance, index) for index in range(chance.randint(0, 3))]
    for index, item in enumerate(items):
        events += _tell(chance, item, index)
    if chance.random() < 0.1:
        events.insert(chance.randrange(len(events) + 1), {"type": "error", **make_error(chance)})
    if chance.random() < 0.9:
        shown = items if chance.random() < 0.8 else items[: chance.randint(0, len(items))]
        end = chance.choice(ENDS)
        events.append(_event(end, response=_response(chance, shown, end)))
    if chance.random() < 0.3:
        events.append(b"data: [DONE]\n\n")
    return tuple(events)


def whole_native(chunks: tuple[Json | bytes, ...]) -> Json:
    """The last response that the events tell of: what a request without a stream is answered with."""
    told = [each["response"] for each in chunks if isinstance(each, dict) and isinstance(each.get("response"), dict)]
    return told[-1] if told else next((each for each in chunks if isinstance(each, dict)), {})


def spoken(text: str) -> Json:
    """A piece of the first message."""
    return _event("output_text.delta", delta=text, item_id="item_0", output_index=0, content_index=0)


def _tell(chance: random.Random, item: Json, index: int) -> list[Json | bytes]:
    at: Json = {"output_index": chance.choice((index, index, index, None, 0, 10**9))}
    if chance.random() < 0.8:
        at["item_id"] = item.get("id")
    if chance.random() < 0.9:
        events: list[Json | bytes] = [_event("output_item.added", item={**item, "status": "in_progress"}, **at)]
    else:
        events = []
    for number in range(chance.randint(0, 4)):
        events.append(_step(chance, item, {**at, "content_index": chance.choice((0, 0, 1, None)), "summary_index": 0}))
        if number == 0 and chance.random() < 0.3:
            events.append(_event("content_part.added", part={"type": "output_text", "text": ""}, **at))
    if chance.random() < 0.8:
        events.append(_event("output_item.done", item=item, **at))
    return events


def _step(chance: random.Random, item: Json, at: Json) -> Json:
    match item["type"], chance.randrange(6):
        case "function_call" | "custom_tool_call", _:
            kind = "custom_tool_call_input" if item["type"] == "custom_tool_call" else "function_call_arguments"
            return _event(f"{kind}.{chance.choice(('delta', 'delta', 'done'))}", delta=chance.choice(ARGUMENTS), **at)
        case _, 0:
            return _event(chance.choice(_HOSTED), **at)
        case _, 1:
            annotation = {"type": "url_citation", "url": "x", "start_index": -1, "end_index": 9**9, "title": None}
            return _event("output_text.annotation.added", annotation=annotation, **at)
        case _, 2:
            text = chance.choice(WORDS)
            return _event(f"{chance.choice(_TEXTS)}.done", text=text, part={"type": "output_text", "text": text}, **at)
        case _:
            return _event(f"{chance.choice(_TEXTS)}.delta", delta=chance.choice((*WORDS, None, 7)), **at)


def _item(chance: random.Random, index: int) -> Json:
    text = {"type": chance.choice(("output_text", "refusal", "text")), "text": chance.choice(WORDS), "annotations": []}
    call = {"call_id": chance.choice(("c1", "c2", None)), "name": chance.choice((*NAMES, None))}
    kinds: tuple[Json, ...] = (
        {"type": "message", "role": "assistant", "content": [text] * chance.randint(0, 2)},
        {"type": "message", "role": "assistant", "content": [text], "phase": chance.choice(("commentary", "odd"))},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"},
        {"type": "function_call", "arguments": chance.choice(ARGUMENTS), **call},
        {"type": "custom_tool_call", "input": chance.choice(WORDS), **call},
        {"type": "web_search_call", "action": {"type": "search", "query": "q"}},
        {"type": "mcp_call", "server_label": "s", "arguments": "{}", "output": chance.choice(WORDS), **call},
        {"type": "computer_call", "action": {}, **call},
        {"type": "odd"},
    )
    made = dict(chance.choice(kinds))
    if chance.random() < 0.9:
        made["id"] = f"item_{chance.choice((index, index, 0))}"
    return made


def _event(kind: str, **fields: Any) -> Json:
    return {"type": f"response.{kind}", "sequence_number": 0, **fields}


def _response(chance: random.Random, items: list[Json], end: str) -> Json:
    count = (0, 5, 1e308, -3, 2**70, None, "7", True)
    usage = {"input_tokens": chance.choice(count), "output_tokens": chance.choice(count), "total_tokens": 9}
    return {
        "id": "resp_theirs",
        "object": "response",
        "status": chance.choice((end, end, end, "completed", None)),
        "output": items,
        "error": make_error(chance).get("error") if end == "failed" else None,
        "incomplete_details": {"reason": chance.choice(("max_output_tokens", "content_filter", 7))},
        "usage": chance.choice((usage, None)),
    }
