"""What a client says over a WebSocket → what it asks for; and our errors as frames.

A frame that cannot be read is an answer in waiting: it takes its turn in its lane like a request, so that its error is
never taken for the end of another one.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from isthmus.bridge.limits import RequestLimits
from isthmus.bridge.parse import Request, decode_json, parse_request
from isthmus.errors import BRIDGE_REQUEST_UNSUPPORTED_PARAMETER, IsthmusError, RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.server.errors import error_body, error_headers
from isthmus.server.steering import Steer, read_steer

_LANE: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_OURS: Final = frozenset({"type", "stream_id"})
"""Fields of the frame, not of the request in it."""


class Asked(msgspec.Struct, frozen=True):
    """One frame of a client: a request, or why there is none."""

    lane: str = ""
    """Its `stream_id`; empty: the default lane."""
    request: Request | None = None
    failure: IsthmusError | None = None
    parent: str = ""
    """The response that it continues."""
    size: int = 0
    steer: Steer | None = None
    """More words for a response that is being made: they wait for no turn."""


def read_frame(raw: bytes | bytearray, limits: RequestLimits) -> Asked:
    try:
        body = decode_json(raw, limits)
        if not isinstance(body, dict) or not isinstance(body.get("type"), str):
            wanted = (
                'a frame is a JSON object with a `type`; send `{"type": "response.create", "model": …, "input": …}`'
            )
            raise RequestRefused(wanted, code="invalid_type", param="type")
        if body["type"] == "response.steer":
            return Asked(steer=read_steer(body, limits, len(raw)), size=len(raw))
        if body["type"] != "response.create":
            words = f"`{body['type']}` is no event of a client; send `response.create` or `response.steer`"
            raise RequestRefused(words, code="unknown_event_type", param="type")
        lane = _read_lane(body.get("stream_id"))
    except IsthmusError as error:
        return Asked(failure=error, size=len(raw))
    parent = body.get("previous_response_id")
    try:
        request, failure = _read_request(body, limits, len(raw)), None
    except IsthmusError as error:
        request, failure = None, error
    return Asked(lane, request, failure, parent if isinstance(parent, str) else "", len(raw))


def _read_lane(given: Any) -> str:
    if given is None:
        return ""
    if not isinstance(given, str) or not _LANE.fullmatch(given):
        words = "`stream_id` must have 1 to 256 of these characters: letters, digits, `_`, `.`, `-`"
        raise RequestRefused(f"{words}; leave it out for the default lane", code="invalid_stream_id", param="stream_id")
    return given


def _read_request(frame: JsonObject, limits: RequestLimits, size: int) -> Request:
    if frame.get("background"):
        words = "a response over a WebSocket cannot be made in the background; leave `background` out, or use HTTP"
        raise RequestRefused(words, code=BRIDGE_REQUEST_UNSUPPORTED_PARAMETER, param="background")
    # openai-agents sends `stream` in every frame, against the specification; here everything is a stream.
    body = {**{name: value for name, value in frame.items() if name not in _OURS}, "stream": True}
    return msgspec.structs.replace(parse_request(body, limits), size=size)


def error_frame(error: IsthmusError, lane: str = "", *, specified: bool = False) -> JsonObject:
    """With everything that any client looks for: Codex ignores one without a `status`, pydantic-ai takes one without
    its lane for the end of the socket, OpenAI's SDKs read the code beside the error, others inside it."""
    inside = error_body(error, specified=specified)["error"]
    headers = error_headers(error)
    flat = {name: inside[name] for name in ("code", "message", "param")}
    frame = {"type": "error", "status": error.meaning.status, "sequence_number": 0, **flat}
    return {
        **frame,
        "error": {**inside, "headers": headers} if headers else inside,
        **({"stream_id": lane} if lane else {}),
    }
