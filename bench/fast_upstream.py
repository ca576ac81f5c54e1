"""A Chat Completions server that answers from memory, as fast as a socket allows: the other end of benchmarks.

`python -m bench.fast_upstream` prints its port. The model's name says how a stream is sent: `burst`, all deltas in one
write; `paced`, each delta in a write of its own, a millisecond after the one before.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final, cast

DELTAS: Final = 200
_WORDS: Final = "Tokens are small, "
_PACE: Final = 0.001
"""Seconds between the deltas of a paced stream: each wakes the reader on its own."""


def _chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "burst"}
    data = b"data: " + json.dumps({**head, "choices": [choice], **more}, separators=(",", ":")).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


_USAGE: Final = {"prompt_tokens": 10, "completion_tokens": DELTAS, "total_tokens": DELTAS + 10}
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_PIECES: Final = [
    _chunk({"role": "assistant", "content": ""}),
    *(_chunk({"content": _WORDS}) for _ in range(DELTAS)),
    _chunk({}, "stop", usage=_USAGE) + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
]
_REPLY: Final = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "burst",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": _WORDS * 10}, "finish_reason": "stop"}],
        "usage": _USAGE,
    }
).encode()
_WHOLE: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(_REPLY),
    _REPLY,
)

_NOTHING: Final = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = b""
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, ended, rest = self._buffer.partition(b"\r\n\r\n")
        if not ended:
            return
        if not head.startswith(b"POST"):  # which models there are: whoever asks for one of ours knows
            self._buffer = rest
            self._transport.write(_NOTHING)
            return
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(rest) < size:
            return
        self._buffer = rest[size:]
        body = json.loads(rest[:size])
        if not body.get("stream"):
            self._transport.write(_WHOLE)
        elif body["model"].endswith("paced"):
            self._transport.write(_HEAD)
            self._send(0)
        else:
            self._transport.write(_HEAD + b"".join(_PIECES))

    def _send(self, number: int) -> None:
        if number < len(_PIECES) and not self._lost:
            self._transport.write(_PIECES[number])
            asyncio.get_running_loop().call_later(_PACE, self._send, number + 1)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
