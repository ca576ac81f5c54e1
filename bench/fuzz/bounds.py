"""Which limits a request or an answer exceeds: counted here once more, in the plainest way, for the judge.

Nothing of the product's own counting is used. Where the product may count more (it looks at an answer once for each
read, at nested tools, at values twice), it is free to refuse more; what is named here it must not let through.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from bench.fuzz.case import Case

ANSWER_READ: Final = 16_384
"""Bytes that may come in the read that ends an answer: they are told before they are counted."""
ANSWER_AROUND: Final = 256
"""Bytes of a chunk that are not counted."""


def exceeded_by_request(case: Case, limits: Mapping[str, int]) -> list[str]:
    try:
        body = json.loads(case.raw())
    except (RecursionError, ValueError):
        return ["a body that Python cannot read"]
    if case.chat:
        body.pop("input", None)  # means nothing there, so nobody counts what is in it
    items = _objects(body.get("messages" if case.chat else "input"))
    values, depth = measure(body)
    counts = {
        "max_fields": len(body),
        "max_items": len(items),
        "max_parts": sum(len(value) for item in items for value in item.values() if isinstance(value, list)),
        "max_tools": len(_objects(body.get("tools"))),
        "max_values": values,
        "max_depth": depth,
    }
    return [f"a request of {count:,} (`{name}`)" for name, count in counts.items() if count > limits[name]]


def exceeded_by_answer(case: Case, limits: Mapping[str, int]) -> list[str]:
    """Of a stream, only what is surely beyond: up to its end, and without the last read."""
    if not case.body.get("stream") or case.kept is not None:
        return []
    counted, size = 0, 0
    pieces = _until_end(case)
    left = sum(map(len, pieces)) - ANSWER_READ
    for piece in pieces:
        if size + len(piece) > left:
            break
        size += len(piece)
        counted += piece.startswith(b"data: {")
    counts = {"max_chunks": counted, "max_answer": size - ANSWER_AROUND * counted}
    return [f"an answer of {count:,} (`{name}`)" for name, count in counts.items() if count > limits[name]]


def _until_end(case: Case) -> list[bytes]:
    pieces = case.pieces()
    for number, (piece, chunk) in enumerate(zip(pieces, case.chunks, strict=True)):
        kind = chunk.get("type") if isinstance(chunk, dict) else None
        if b"[DONE]" in piece or (isinstance(kind, str) and kind not in _GOING_ON):
            return pieces[: number + 1]
    return pieces


_GOING_ON: Final = tuple(
    f"response.{kind}"
    for kind in (
        *("created", "output_item.added", "output_item.done", "content_part.added", "output_text.delta"),
        *("refusal.delta", "function_call_arguments.delta", "custom_tool_call_input.delta"),
    )
)
"""Native events behind which there surely is more."""


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def measure(body: Any) -> tuple[int, int]:
    """Values, and levels of objects and lists."""
    count, depth, level = 0, 0, [body]
    while level:
        count += len(level)
        depth += any(isinstance(value, dict | list) for value in level)
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return count, depth
