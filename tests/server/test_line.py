"""Messages between a worker and its supervisor, however they are cut on the way."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from isthmus.observe.metrics.meters import Reading
from isthmus.server.line import LONGEST, MOST_UNREAD, Ask, Beat, Collect, Line, Message, Ready, Sum, Told

ALL: list[Message] = [
    Ready(),
    Beat(),
    Ask(3),
    Told(3, [Reading("isthmus_info", [(("1.0",), 1.0)])]),
    Collect(4, [Reading("isthmus_store_seconds", spread=[(("read",), [1.0, 2.0])])]),
    Sum(4, [], 2, 1),
]


class Transport:
    def __init__(self, unread: int = 0) -> None:
        self.sent = bytearray()
        self.unread = unread
        self.closed = False

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.unread

    def close(self) -> None:
        self.closed = True


def line(transport: Any, heard: list[Message] | None = None) -> Line:
    made = Line((heard if heard is not None else []).append, lambda: None)
    made.connection_made(transport)
    return made


@given(st.lists(st.integers(1, 40), max_size=40))
def test_whole_messages_come_out_however_they_are_cut(cuts: list[int]) -> None:
    transport, heard = Transport(), list[Message]()
    sender, hearer = line(transport), line(Transport(), heard)
    assert all(map(sender.say, ALL))
    rest = bytes(transport.sent)
    for cut in cuts:
        hearer.data_received(rest[:cut])
        rest = rest[cut:]
    hearer.data_received(rest)
    assert heard == ALL


def test_nobody_waits_for_a_side_that_does_not_read() -> None:
    transport = Transport(MOST_UNREAD + 1)
    assert not line(transport).say(Beat())
    assert not transport.sent


def test_a_message_that_is_too_long_is_not_sent_and_one_that_claims_to_be_ends_the_line() -> None:
    transport = Transport()
    assert not line(transport).say(Told(1, [Reading("x" * LONGEST)]))
    assert not transport.sent
    line(transport).data_received((LONGEST + 1).to_bytes(4, "big"))
    assert transport.closed


def test_a_message_of_another_version_is_passed_over() -> None:
    heard: list[Message] = []
    hearer, beat = line(Transport(), heard), Transport()
    line(beat).say(Beat())
    hearer.data_received(b"\x00\x00\x00\x01\xc0" + bytes(beat.sent))
    assert heard == [Beat()]


async def test_over_a_real_pair_of_sockets_and_its_end_is_told() -> None:
    ours, theirs = socket.socketpair()
    heard, lost = asyncio.Queue[Message](), asyncio.Event()
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    one, other = Line(heard.put_nowait, lost.set), Line(heard.put_nowait, gone.set)
    await loop.create_unix_connection(lambda: one, sock=ours)
    await loop.create_unix_connection(lambda: other, sock=theirs)
    assert other.say(Ask(7))
    assert await heard.get() == Ask(7)
    other.close()
    await lost.wait()
    await gone.wait()
    assert not one.say(Beat())
