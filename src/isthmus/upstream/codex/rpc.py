"""JSON-RPC as a Codex app-server speaks it, without IO: bytes in, messages out, and back.

One JSON object per line and no `jsonrpc` field. Ids are numbers or strings of either side's own choosing;
the server counts its requests from 0, so an id is never tested for truth. A line that is no message is
counted and passed over, as the server does with ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from isthmus.protocol.json import JsonObject

RequestId = int | str


@dataclass(frozen=True, slots=True)
class Request:
    """The other side asks and waits for an answer."""

    id: RequestId
    method: str
    params: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notification:
    method: str
    params: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    id: RequestId
    value: Any


@dataclass(frozen=True, slots=True)
class Refused:
    id: RequestId | None
    code: int
    message: str


Message = Request | Notification | Result | Refused


class MessageReader:
    """Cuts a byte stream into messages; the bytes may come in any pieces."""

    def __init__(self, *, max_line: int = 64 * 1024 * 1024) -> None:
        self.malformed = 0
        self._max_line = max_line
        self._buffer = bytearray()
        self._searched = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[Message]:
        self._buffer += data
        messages: list[Message] = []
        start = 0
        while (end := self._buffer.find(b"\n", max(start, self._searched))) >= 0:
            line = bytes(self._buffer[start:end])
            start = end + 1
            if self._skipping:
                self._skipping = False
            elif (message := self._read(line)) is not None:
                messages.append(message)
        del self._buffer[:start]
        self._searched = len(self._buffer)
        if len(self._buffer) > self._max_line:
            self._drop_long_line()
        return messages

    def _read(self, line: bytes) -> Message | None:
        if not line.strip():
            return None
        try:
            message = read_message(msgspec.json.decode(line))
        except (msgspec.DecodeError, RecursionError):
            message = None
        if message is None:
            self.malformed += 1
        return message

    def _drop_long_line(self) -> None:
        if not self._skipping:
            self.malformed += 1
        self._skipping = True
        self._buffer.clear()
        self._searched = 0


def read_message(value: Any) -> Message | None:
    """One decoded line as a message; `None` where it is none."""
    if not isinstance(value, dict):
        return None
    identity, method = value.get("id"), value.get("method")
    has_id = isinstance(identity, int | str) and not isinstance(identity, bool)
    if isinstance(method, str):
        params = value.get("params")
        fields = params if isinstance(params, dict) else {}
        return Request(identity, method, fields) if has_id else Notification(method, fields)  # type: ignore[arg-type]
    error = value.get("error")
    if isinstance(error, dict):
        code = error.get("code")
        return Refused(
            identity if has_id else None,
            code if isinstance(code, int) else 0,
            str(error.get("message") or "no message"),
        )
    if has_id and "result" in value:
        return Result(identity, value["result"])  # type: ignore[arg-type]
    return None


def encode_request(identity: RequestId, method: str, params: Any) -> bytes:
    return _line({"id": identity, "method": method, "params": params})


def encode_notification(method: str, params: Any = None) -> bytes:
    return _line({"method": method} if params is None else {"method": method, "params": params})


def encode_result(identity: RequestId, result: Any) -> bytes:
    return _line({"id": identity, "result": result})


def encode_error(identity: RequestId, code: int, message: str) -> bytes:
    return _line({"id": identity, "error": {"code": code, "message": message}})


def _line(message: JsonObject) -> bytes:
    return msgspec.json.encode(message) + b"\n"
