"""The bytes of an SSE answer, as the specification wants them, before any event is looked at.

In: the whole body. Out: its events. Each frame is `event:` and one `data:` line, in this order, with LF line
ends; `event` equals the body's `type`; comments may stand between frames; `[DONE]` is the last one.
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


def read_frames(body: bytes) -> list[Json]:
    """The events of a body that is well-formed to the byte; `AssertionError` otherwise."""
    assert b"\r" not in body, "line ends are LF: some clients read CRLF as no end at all"
    assert body.endswith(b"\n\n"), "the last frame has no end"
    frames = [frame for frame in body.decode().removesuffix("\n\n").split("\n\n") if not _is_comment(frame)]
    assert frames[-1:] == ["data: [DONE]"], f"the last frame is not `[DONE]`: {frames[-1:]}"
    return [_read(frame) for frame in frames[:-1]]


def _is_comment(frame: str) -> bool:
    return all(line.startswith(":") for line in frame.split("\n"))


def _read(frame: str) -> Json:
    name, _, data = frame.partition("\n")
    assert name.startswith("event: "), f"a frame does not begin with `event: `: {frame[:200]}"
    assert data.startswith("data: "), f"a frame has no `data: ` behind its `event`: {frame[:200]}"
    assert "\n" not in data, f"a frame has more than one data line: {frame[:200]}"
    event: Json = json.loads(data.removeprefix("data: "))
    said = name.removeprefix("event: ")
    assert said == event.get("type"), f"`event: {said}` over a body of type `{event.get('type')}`"
    return event
