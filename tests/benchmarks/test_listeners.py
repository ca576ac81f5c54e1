"""Streams that are only listened to: every right end counts, nothing else does, and the gaps are those of the words."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable

import pytest
from bench.gateways.listeners import Listeners
from bench.gateways.streams import is_held
from bench.gateways.subjects import DIRECT
from bench.gateways.upstream import Connection
from bench.gateways.workloads import Workload

from waiting import until_soon

TEN_WORDS = Workload("held", "responses", "text-10-20", stream=True)
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Saying(asyncio.Protocol):
    """Says the same to everybody who asks, and hangs up or stays."""

    def __init__(self, words: bytes, *, stays: bool) -> None:
        self._words = words
        self._stays = stays

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._words)
        if not self._stays:
            self._transport.close()


async def listened(
    server: Callable[[], asyncio.BaseProtocol], streams: int, patience: float
) -> tuple[int, list[float]]:
    made = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    port = made.sockets[0].getsockname()[1]
    async with made:
        with Listeners() as listeners:
            for _ in range(streams):
                listeners.begin(DIRECT.ask(TEN_WORDS, port, port))
            right = await asyncio.to_thread(listeners.right, patience)
            return right, list(listeners.gaps)


async def test_every_stream_is_heard_to_its_right_end_with_its_gaps() -> None:
    right, gaps = await listened(Connection, 30, patience=60)
    assert right == 30
    assert len(gaps) >= 30 * 5  # ten words and an end, some of which may have come together on a busy machine
    assert statistics.median(gaps) >= 0.015


@pytest.mark.parametrize(
    ("words", "stays"),
    [
        (b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 2\r\n\r\n{}", True),
        (HEAD + b"5\r\nToken\r\n", False),
        (HEAD + b"5\r\nToken\r\n0\r\n\r\n", True),
        (b"", False),
    ],
    ids=["refused", "cut", "wrong words", "hung up"],
)
async def test_whatever_else_comes_is_no_right_end_and_is_not_waited_for(words: bytes, stays: bool) -> None:
    right, _ = await listened(lambda: Saying(words, stays=stays), 3, patience=60)
    assert right == 0


async def test_who_never_ends_is_not_waited_for_longer_than_said() -> None:
    right, _ = await listened(lambda: Saying(HEAD + b"5\r\nToken\r\n", stays=True), 2, patience=0.2)
    assert right == 0


@pytest.mark.parametrize(
    ("figures", "held"),
    [
        ({"completed": 10, "gap_p99": 99.0, "gaps": 900}, True),
        ({"completed": 9, "gap_p99": 51.0, "gaps": 900}, False),
        ({"completed": 10, "gap_p99": 102.0, "gaps": 900}, False),
        ({"completed": 10, "gap_p99": 1.0, "gaps": 100}, False),
    ],
    ids=["held", "one is lost", "late", "kept back"],
)
def test_streams_are_held_where_all_are_whole_in_time_and_word_by_word(figures: dict[str, float], held: bool) -> None:
    assert is_held({**figures, "expected_gaps": 1000}, {"gap_p99": 50.0}, 10) is held


async def test_words_at_a_pace_stop_for_whoever_has_left() -> None:
    made: list[Connection] = []

    def server() -> Connection:
        made.append(Connection())
        return made[-1]

    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        with Listeners() as listeners:
            listeners.begin(DIRECT.ask(TEN_WORDS, port, port))
            await until_soon(lambda: bool(listeners.gaps), "no word came")
        await until_soon(lambda: made[0].lost, "the upstream did not see it")
