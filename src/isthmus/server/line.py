"""The line between a worker and its supervisor: messages both ways, each behind its length.

Neither side ever waits for the other: what is not read there is thrown away here once too much of it lies about, and
whoever asked is told so by the silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from isthmus.observe.metrics.meters import Reading

LONGEST: Final = 16_000_000
"""Bytes of one message: a gateway with a hundred models tells a tenth of a percent of that."""
MOST_UNREAD: Final = 32_000_000
"""Bytes that may wait for the other side."""
_HEAD: Final = 4


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker serves."""


class Beat(msgspec.Struct, frozen=True, tag=True):
    """Its loop goes round."""


class Ask(msgspec.Struct, frozen=True, tag=True):
    """What has been counted? To a worker; the number comes back with the answer."""

    number: int


class Told(msgspec.Struct, frozen=True, tag=True):
    """What this worker has counted; number 0: nobody asked."""

    number: int
    readings: list[Reading]


class Collect(msgspec.Struct, frozen=True, tag=True):
    """From a worker: what has been counted by all? This is its own part."""

    number: int
    readings: list[Reading]


class Sum(msgspec.Struct, frozen=True, tag=True):
    number: int
    readings: list[Reading]
    answering: int
    silent: int


Message = Ready | Beat | Ask | Told | Collect | Sum

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Message).decode


class Line(asyncio.Protocol):
    """One end of it."""

    def __init__(self, hear: Callable[[Message], None], lost: Callable[[], None]) -> None:
        self._hear = hear
        self._lost = lost
        self._held = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")  # uvloop has classes of its own
        self._transport = transport  # type: ignore[assignment]

    def say(self, message: Message) -> bool:
        """False: it does not go anywhere."""
        transport = self._transport
        if transport is None or transport.is_closing() or transport.get_write_buffer_size() > MOST_UNREAD:
            return False
        data = _encode(message)
        if len(data) > LONGEST:
            return False
        transport.write(len(data).to_bytes(_HEAD, "big") + data)
        return True

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        held = self._held
        held += data
        while len(held) >= _HEAD:
            size = int.from_bytes(held[:_HEAD], "big")
            if size > LONGEST:
                self.close()
                return
            if len(held) < _HEAD + size:
                return
            told = bytes(held[_HEAD : _HEAD + size])
            del held[: _HEAD + size]
            try:
                message = _decode(told)
            except msgspec.DecodeError:  # of another version, while one takes the other's place
                continue
            self._hear(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._lost()
