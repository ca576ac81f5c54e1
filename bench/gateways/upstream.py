"""A Chat Completions server that answers from memory, as fast as a socket allows: the other end of all measuring.

`python -m bench.gateways.upstream` prints its port. The model's name says what is told: `text-200-2` is a text of 200
deltas, 2 ms apart; `call-200-0` the arguments of a tool call in as many, with no pause. Every delta is a write of its
own: without a pause the kernel hands several to a reader at once, with one each wakes it alone.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque
from functools import cache
from typing import Any, Final, NamedTuple, cast

WORD: Final = "Token"
"""How every delta of a text begins. No two are the same: some take a model that repeats itself for a broken one."""
ANSWER: Final = '{"city": "Ulm", "people": 128928, "tags": ["old-town", "danube"]}'
"""What the model says where an object is asked for (`json-…`)."""
TOOL: Final = "exec_command"
_OPENING: Final = '{"cmd": "'
_CLOSING: Final = '"}'
_ID: Final = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "some"}
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_END: Final = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
_NOTHING: Final = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


class Told(NamedTuple):
    """What a model's name says."""

    kind: str
    deltas: int
    pause: float

    @classmethod
    def by(cls, model: str) -> Told:
        kind, deltas, pause = model.rpartition("/")[2].split("-")
        return cls(kind, int(deltas), int(pause) / 1000)


def said(kind: str, deltas: int) -> str:
    """The whole text, or the whole arguments, of an answer."""
    match kind:
        case "json":
            return ANSWER
        case "call":
            return _OPENING + "".join(_words(deltas)) + _CLOSING
        case _:
            return "".join(_words(deltas))


@cache
def pieces(kind: str, deltas: int) -> list[bytes]:
    match kind:
        case "call":
            call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": TOOL, "arguments": _OPENING}}
            told = [{"role": "assistant", "content": None, "tool_calls": [call]}]
            told += [_arguments(text) for text in (*_words(deltas), _CLOSING)]
        case "json":
            told = [{"role": "assistant", "content": ""}, {"content": ANSWER}]
        case _:
            told = [{"role": "assistant", "content": ""}, *({"content": text} for text in _words(deltas))]
    end = _chunk({}, "tool_calls" if kind == "call" else "stop", usage=_usage(deltas)) + _END
    return [*map(_chunk, told), end]


@cache
def whole(kind: str, deltas: int) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": said(kind, deltas)}
    if kind == "call":
        call = {"name": TOOL, "arguments": said(kind, deltas)}
        message = {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function"}]}
        message["tool_calls"][0]["function"] = call
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if kind == "call" else "stop"}
    body = _encode({**_ID, "object": "chat.completion", "choices": [choice], "usage": _usage(deltas)})
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def _words(deltas: int) -> list[str]:
    return [f"{WORD} {number:03d} is small, " for number in range(deltas)]


def _arguments(text: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}


def _chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    data = b"data: %b\n\n" % _encode({**_ID, "object": "chat.completion.chunk", "choices": [choice], **more})
    return b"%x\r\n%b\r\n" % (len(data), data)


def _usage(deltas: int) -> dict[str, int]:
    return {"prompt_tokens": 10, "completion_tokens": deltas, "total_tokens": deltas + 10}


def _encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._need = 0
        """Bytes of a request that is on its way, if its head has been read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._file = transport.get_extra_info("socket").fileno()
        self.lost = False

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) < self._need:
            return
        head, ended, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if not ended:
            return
        lower = head.lower()
        if not head.startswith(b"POST"):  # which models there are: whoever asks for one of ours knows
            self._buffer = bytearray(rest)
            self._transport.write(_NOTHING)
            return
        known = b"/chat/completions " in head.split(b"\r\n", 1)[0]
        if b"\r\ntransfer-encoding:" in lower:
            if not rest.endswith(b"0\r\n\r\n"):
                return
            body, rest = _joined(rest), b""
        else:
            size = int(lower.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            self._need = len(head) + 4 + size
            if len(rest) < size:
                return
            body, rest = rest[:size], rest[size:]
        self._need, self._buffer = 0, bytearray(rest)
        if known:
            self._answer(body)
        else:  # another dialect: whoever sends it on as it is has translated nothing
            self._transport.write(_NOTHING)

    def _answer(self, body: bytes) -> None:
        asked = json.loads(body)
        told = Told.by(asked["model"])
        if not asked.get("stream"):
            self._transport.write(whole(told.kind, told.deltas))
            return
        parts = pieces(told.kind, told.deltas)
        if told.pause:
            self.now(_HEAD + parts[0])
            _pace(told.pause).add(self, parts)
        else:
            self.now(_HEAD)
            for each in parts:
                self.now(each)

    def now(self, data: bytes) -> None:
        """A write of its own, at once: a transport would join what it is given in one turn of the loop."""
        if self.lost:
            return
        sent = 0
        if self._transport.get_write_buffer_size() == 0:
            try:
                sent = os.write(self._file, data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._transport.abort()
                return
        if sent < len(data):
            self._transport.write(data[sent:])


class Pace:
    """Everyone who is told a word every so often, with one timer for all: who was served last is due last."""

    def __init__(self, pause: int) -> None:
        self._pause = pause
        """Milliseconds, as all times here: the loop's clock has no smaller ones."""
        self._due: deque[tuple[int, Connection, list[bytes], int]] = deque()

    def add(self, connection: Connection, parts: list[bytes]) -> None:
        """The first of these is told."""
        waiting = bool(self._due)
        self._due.append((_now() + self._pause, connection, parts, 1))
        if not waiting:
            self._wait()

    def _tick(self) -> None:
        due, now = self._due, _now()
        while due and due[0][0] <= now:
            _, connection, parts, number = due.popleft()
            connection.now(parts[number])
            if number + 1 < len(parts) and not connection.lost:
                due.append((now + self._pause, connection, parts, number + 1))
        if due:
            self._wait()

    def _wait(self) -> None:
        asyncio.get_running_loop().call_later((self._due[0][0] - _now()) / 1000, self._tick)


@cache
def _pace(pause: float) -> Pace:
    return Pace(round(pause * 1000))


def _now() -> int:
    return round(asyncio.get_running_loop().time() * 1000)


def _joined(chunks: bytes) -> bytes:
    found = b""
    while chunks:
        size, _, chunks = chunks.partition(b"\r\n")
        length = int(size, 16)
        found, chunks = found + chunks[:length], chunks[length + 2 :]
        if not length:
            break
    return found


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import resource

    import uvloop

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else 65536, hard))
    uvloop.run(main())
