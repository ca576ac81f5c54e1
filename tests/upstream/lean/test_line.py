"""One connection: who may use it again, what is held back, and that answers are the same however they are cut."""

from __future__ import annotations

import asyncio
import gzip
import random
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import UpstreamFailed
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.lean.answer import Answer
from isthmus.upstream.lean.line import MAX_HEAD, MAX_INFORMATIONAL, Line
from isthmus.upstream.trouble import Stale, Trouble
from isthmus.upstream.wire import Wire
from own_time import turns
from upstream.talking_lines import talking
from upstream.test_wire_answers import CHUNKED, OK, SHAPES, ask, endpoint, packed

SURPLUS: Final = {
    "another answer": OK + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
    "half of another": OK + b"HTTP/1.1 200 OK\r\ncontent-le",
}


@pytest.mark.parametrize("said", SURPLUS.values(), ids=list(SURPLUS))
async def test_who_answers_more_than_was_asked_is_not_asked_again_on_that_connection(said: bytes) -> None:
    """Else the rest would be taken for the answer to the next request, which may be somebody else's."""
    async with talking(said, OK, OK) as server:
        wire = Wire(endpoint(server))
        assert await ask(wire) == (200, b"{}")
        await server.closed[0].wait()
        assert [await ask(wire) for _ in range(2)] == [(200, b"{}")] * 2
        await wire.aclose()
        assert server.used == [1, 2, 2]


@pytest.mark.parametrize("said", [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil", b"x", OK[:20]])
async def test_who_speaks_before_it_is_asked_is_not_asked(said: bytes) -> None:
    async with talking(OK, OK) as server:
        wire = Wire(endpoint(server))
        await ask(wire)
        server.talk[0].write(said)
        await server.closed[0].wait()
        assert await ask(wire) == (200, b"{}")
        await wire.aclose()
        assert server.used == [1, 2]


async def test_another_protocol_is_not_followed() -> None:
    async with talking(
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\nevil", OK
    ) as server:
        wire = Wire(endpoint(server))
        assert (await ask(wire))[0] == 101
        assert await ask(wire) == (200, b"{}")
        await wire.aclose()
        assert server.used == [1, 2]


async def test_a_bomb_is_unpacked_only_as_far_as_it_is_read() -> None:
    bomb = gzip.compress(b"\0" * 100_000_000)
    async with talking(packed(b"gzip", bomb)) as server:
        wire = Wire(endpoint(server))
        incoming = await wire.send(b"{}")
        pieces = [await incoming.read() for _ in range(20)]
        assert 0 < sum(map(len, pieces)) < 20_000_000
        assert await incoming.within(1000) is None
        incoming.close()
        await wire.aclose()


async def test_closing_the_wire_closes_its_connections_and_the_next_request_opens_another() -> None:
    async with talking(OK, b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}", OK) as server:
        wire = Wire(endpoint(server))
        await ask(wire)
        incoming = await wire.send(b"{}")
        assert await incoming.read() == b"{}"
        await wire.aclose()
        await server.closed[0].wait()
        with pytest.raises(UpstreamFailed):
            await incoming.read()
        incoming.close()
        assert await ask(wire) == (200, b"{}")
        await wire.aclose()
        assert server.used == [1, 1, 2]


# ── however an answer is cut ───────────────────────────────────────────────────────────────────────


class Wired(asyncio.Transport):
    """Leads nowhere; what comes in is fed by hand."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self.line = line
        self.sent: list[bytes] = []
        self.aborted = False

    def write(self, data: Any) -> None:
        self.sent.append(bytes(data))

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        if not self.aborted:
            self.aborted = True
            asyncio.get_running_loop().call_soon(self.line.connection_lost, None)

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Connected:
    def __init__(self) -> None:
        self.freed = 0
        self.line = Line(("http", "h", 80), self._free, lambda line: None)
        self.transport = Wired(self.line)
        self.line.connection_made(self.transport)

    def _free(self, line: Line) -> None:
        self.freed += 1

    async def ask(self) -> Answer:
        return await self.line.ask(b"POST / HTTP/1.1\r\n\r\n", b"{}", bare=False)


async def hear(parts: list[bytes], *, closes: bool) -> tuple[int, bytes, int]:
    """Status, body, and how often the connection was given back."""
    one = Connected()
    asking = asyncio.create_task(one.ask())
    await asyncio.sleep(0)
    feeding = iter(parts)
    while not asking.done():
        one.line.data_received(next(feeding))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    answer, said = asking.result(), b""
    for part in feeding:
        one.line.data_received(part)
        said += answer.take()
    if closes:
        one.line.connection_lost(None)
    while not answer.over:
        if (news := answer.news()) is not None:
            await news
        said += answer.take()
    return answer.status, said, one.freed


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=15)
@given(data=st.data())
def test_law_an_answer_is_the_same_however_it_is_cut(name: str, data: st.DataObject) -> None:
    shape = SHAPES[name]
    cuts = sorted(data.draw(st.lists(st.integers(1, len(shape.said) - 1), max_size=12)))
    parts = [shape.said[a:b] for a, b in zip([0, *cuts], [*cuts, len(shape.said)], strict=True) if a != b]
    heard = asyncio.run(hear(parts, closes=shape.closes))
    assert heard == (shape.status, shape.body, 1 if shape.kept else 0)


@settings(max_examples=60)
@given(st.binary(max_size=200), st.integers(0, 300))
def test_law_whatever_is_said_ends_in_an_answer_or_in_trouble(noise: bytes, at: int) -> None:
    """Nothing else leaves a connection, and none of it hangs."""
    said = CHUNKED + b"2\r\n{}\r\n0\r\n\r\n"
    said = said[:at] + noise + said[at:]

    async def main() -> None:
        one = Connected()
        asking = asyncio.create_task(one.ask())
        await asyncio.sleep(0)
        one.line.data_received(said)
        if not one.transport.aborted:
            one.line.connection_lost(None)
        with suppress(Trouble):
            answer = await asking
            while not answer.over:
                if (news := answer.news()) is not None:
                    await news
                answer.take()

    asyncio.run(asyncio.wait_for(main(), 60))


# ── bounds ─────────────────────────────────────────────────────────────────────────────────────────


async def test_trailers_without_an_end_are_given_up() -> None:
    async with talking(CHUNKED + b"2\r\n{}\r\n0\r\nx: " + b"y" * (MAX_HEAD * 4)) as server:
        wire = Wire(endpoint(server))
        with pytest.raises(UpstreamFailed, match="headers are too long, or too many"):
            await ask(wire)
        await wire.aclose()


async def test_information_is_counted_for_each_answer_alone() -> None:
    said = b"HTTP/1.1 102 Processing\r\n\r\n" * (MAX_INFORMATIONAL - 1) + OK
    async with talking(said, said) as server:
        wire = Wire(endpoint(server))
        assert [await ask(wire) for _ in range(2)] == [(200, b"{}")] * 2
        await wire.aclose()
        assert server.used == [1, 1]


async def test_an_answer_that_nobody_reads_is_not_taken_from_the_socket() -> None:
    written = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 50000000\r\n\r\n")
        for _ in range(500):
            writer.write(b"x" * 100_000)
            await writer.drain()
            written += 100_000
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        wire = Wire(Endpoint("mine", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", trust_env=False))
        incoming: Any = await wire.send(b"{}")
        line = incoming._answer._line
        while not line.paused:
            await turns(1)
        first = written
        await turns(200)
        assert written - first < 10_000_000  # what lies in the system's buffers
        pieces = [piece for _ in range(400) if (piece := await incoming.read())]
        assert max(map(len, pieces)) <= 16 * 1024
        size = sum(map(len, pieces))
        while piece := await incoming.read():
            size += len(piece)
        assert size == 50_000_000
        incoming.close()
        await wire.aclose()


# ── dead connections ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("came", "stale"),
    [(b"", True), (b"H", False), (b"HTTP/1.1 100 Continue\r\n\r\n", False)],
    ids=["nothing", "a byte", "information"],
)
async def test_only_where_nothing_came_of_an_answer_it_may_be_asked_for_again(came: bytes, stale: bool) -> None:
    one = Connected()
    for said in (OK, came):
        asking = asyncio.create_task(one.ask())
        await asyncio.sleep(0)
        if said:
            one.line.data_received(said)
        await asyncio.sleep(0)
    one.line.connection_lost(ConnectionResetError(104, "reset"))
    with pytest.raises(Stale if stale else Trouble):
        await asking


async def test_a_new_connection_is_not_stale() -> None:
    one = Connected()
    asking = asyncio.create_task(one.ask())
    await asyncio.sleep(0)
    one.line.connection_lost(None)
    with pytest.raises(Trouble, match="the server closed the connection"):
        await asking
    with pytest.raises(Trouble, match="the server closed the connection"):
        one.transport.aborted = True
        await one.ask()  # not waited for: nobody would tell


async def test_a_request_of_one_write_is_head_and_body_together() -> None:
    one = Connected()
    asking = asyncio.create_task(one.ask())
    await asyncio.sleep(0)
    assert one.transport.sent == [b"POST / HTTP/1.1\r\n\r\n{}"]
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert one.transport.aborted  # who leaves takes the connection along


async def test_who_leaves_when_all_has_come_leaves_the_connection_to_the_next() -> None:
    """Both happen in one turn of a loop that was busy for long: the next one has it before the first has left."""
    one = Connected()
    leaving = asyncio.create_task(one.ask())
    await asyncio.sleep(0)
    asking = asyncio.create_task(one.ask())
    one.line.data_received(OK)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert (one.freed, one.transport.aborted) == (1, False)
    one.line.data_received(OK)
    assert (await asking).status == 200


async def test_many_at_once_each_get_their_own_answer() -> None:
    """On few connections, in any order, cut anywhere."""
    chance = random.Random(7)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
                body = await reader.readexactly(size)
                said = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (size, body)
                at = chance.randrange(len(said))
                writer.write(said[:at])
                await asyncio.sleep(0)
                writer.write(said[at:])
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        wire = Wire(Endpoint("mine", url, trust_env=False, max_connections=8))

        async def echo(number: int) -> bool:
            data = b"%d " % number * (number % 50 + 1)
            incoming = await wire.send(data)
            try:
                return await incoming.whole() == data
            finally:
                incoming.close()

        assert all(await asyncio.gather(*(echo(number) for number in range(400))))
        await wire.aclose()
