"""Answers of every shape, as bytes on a socket: what is read of them, and who may use their connection afterwards."""

from __future__ import annotations

import asyncio
import gzip
import sys
import zlib
from dataclasses import dataclass
from typing import Any, Final

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.wire import Wire
from upstream.talking_lines import CLOSE, Talking, talking

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.usefixtures("either_client")

OK: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
BODY: Final = b'{"words": "many words, many words, many words"}'


def packed(encoding: bytes, data: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\ncontent-length: %d\r\n\r\n%b" % (encoding, len(data), data)


def chunks(*pieces: bytes, trailers: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in pieces) + b"0\r\n" + trailers + b"\r\n"


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CHUNKED: Final = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Shape:
    said: bytes
    body: bytes = BODY
    status: int = 200
    kept: bool = True
    """Whether its connection may be used again."""
    closes: bool = False
    """Whether the server closes it behind its answer."""
    method: str = "POST"


SHAPES: Final = {
    "a length": Shape(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)),
    "chunks": Shape(CHUNKED + chunks(BODY[:5], BODY[5:])),
    "chunks and trailers": Shape(CHUNKED + chunks(BODY, trailers=b"x-late: yes\r\nx-more: 3\r\n")),
    "a chunk's extension": Shape(CHUNKED + b"%x;name=value\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)),
    "until the end": Shape(b"HTTP/1.1 200 OK\r\n\r\n" + BODY, kept=False, closes=True),
    "HTTP/1.0": Shape(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}", b"{}", kept=False),
    "told to close": Shape(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}", b"{}", kept=False),
    "no content": Shape(b"HTTP/1.1 204 No Content\r\n\r\n", b"", 204),
    "not modified": Shape(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", b"", 304),
    "nothing": Shape(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b""),
    "a refusal": Shape(b"HTTP/1.1 429 Slow Down\r\ncontent-length: 2\r\n\r\n{}", b"{}", 429),
    "no reason": Shape(b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\n{}", b"{}"),
    "lines without CR": Shape(b"HTTP/1.1 200 OK\ncontent-length: 2\n\n{}", b"{}"),
    "information first": Shape(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: </x>\r\n\r\n" + OK, b"{}"),
    "gzip": Shape(packed(b"gzip", gzip.compress(BODY))),
    "gzip in chunks": Shape(
        b"HTTP/1.1 200 OK\r\ncontent-encoding: GZIP\r\ntransfer-encoding: chunked\r\n\r\n"
        + chunks(gzip.compress(BODY)[:9], gzip.compress(BODY)[9:])
    ),
    "deflate": Shape(packed(b"deflate", zlib.compress(BODY))),
    "bare deflate": Shape(packed(b"deflate", bare_deflate(BODY))),
    "zstd": Shape(packed(b"zstd", zstd.compress(BODY))),
    "nothing, packed": Shape(packed(b"gzip", b""), b""),
    "identity": Shape(packed(b"identity", BODY)),
    "a large one": Shape(b"HTTP/1.1 200 OK\r\ncontent-length: 300000\r\n\r\n" + b"x" * 300_000, b"x" * 300_000),
}


def endpoint(server: Talking, **more: Any) -> Endpoint:
    return Endpoint("mine", server.url, trust_env=False, **more)


async def ask(wire: Wire, method: str = "POST") -> tuple[int, bytes]:
    incoming = await wire.send(b"{}" if method == "POST" else None, method=method)
    try:
        return incoming.status, await incoming.whole()
    finally:
        incoming.close()


@pytest.mark.parametrize("cut", [0, 1, 7], ids=["whole", "byte by byte", "in sevens"])
@pytest.mark.parametrize("name", SHAPES)
async def test_an_answer_is_read_whatever_its_shape_and_its_connection_kept_if_it_can_be(name: str, cut: int) -> None:
    shape = SHAPES[name]
    if cut and len(shape.said) > 10_000:
        cut *= 10_000
    parts = [shape.said[at : at + cut] for at in range(0, len(shape.said), cut)] if cut else [shape.said]
    async with talking([*parts, *([CLOSE] if shape.closes else [])], OK) as server:
        wire = Wire(endpoint(server))
        assert await ask(wire) == (shape.status, shape.body)
        assert await ask(wire) == (200, b"{}")
        await wire.aclose()
        assert server.used == ([1, 1] if shape.kept else [1, 2])


async def test_the_answer_to_head_has_no_body_whatever_it_says() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\ncontent-encoding: gzip\r\n\r\n"
    async with talking(head, OK) as server:
        wire = Wire(endpoint(server))
        assert await ask(wire, "HEAD") == (200, b"")
        assert await ask(wire, "GET") == (200, b"{}")
        await wire.aclose()
        assert [said.partition(b" ")[0] for _, said in server.asked] == [b"HEAD", b"GET"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}", "before it was whole, as told by its `content-length`"),
        (CHUNKED + b"9\r\n{}", "before it was whole"),
        (CHUNKED + b"2\r\n{}\r\n", "before it was whole"),
        (CHUNKED + b"2\r\n{}\r\n0\r\nx-late: y", "before it was whole"),
    ],
    ids=["a length", "within a chunk", "between chunks", "within a trailer"],
)
async def test_an_answer_that_is_cut_off_is_told_as_broken(said: bytes, words: str) -> None:
    async with talking([said, CLOSE]) as server:
        wire = Wire(endpoint(server))
        with pytest.raises(UpstreamFailed, match=words):
            await ask(wire)
        await wire.aclose()


BOUNDS: Final = {
    "a header": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 9000 + b"\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: y\r\n" % each for each in range(200)) + b"\r\n",
    "a header without an end": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 400_000,
    "a name without an end": b"HTTP/1.1 200 OK\r\n" + b"y" * 400_000,
}


@pytest.mark.parametrize("said", BOUNDS.values(), ids=list(BOUNDS))
async def test_a_head_is_bounded(said: bytes) -> None:
    async with talking(said) as server:
        wire = Wire(endpoint(server))
        with pytest.raises(UpstreamFailed) as failed:
            await ask(wire)
        await wire.aclose()
    assert (failed.value.code, "headers are too long, or too many" in failed.value.message) == (
        "upstream_malformed",
        True,
    )


async def test_of_a_header_that_comes_twice_the_first_counts_and_names_have_no_case() -> None:
    told = b"X-Request-Id: one\r\nX-Request-Id: two\r\nCONTENT-TYPE: Text/HTML; charset=x\r\n"
    said = b"HTTP/1.1 200 OK\r\n%bcontent-length: 0\r\n\r\n" % told
    async with talking(said) as server:
        wire = Wire(endpoint(server))
        incoming = await wire.send(b"{}")
        assert (incoming.request_id, incoming.kind) == ("one", "text/html")
        incoming.close()
        await wire.aclose()


@pytest.mark.parametrize("told", [b"", b"content-type: nonsense\r\n", b"content-type: a/b/c\r\n"])
async def test_an_answer_that_does_not_say_what_it_is_may_be_anything(told: bytes) -> None:
    async with talking(b"HTTP/1.1 200 OK\r\n%bcontent-length: 0\r\n\r\n" % told) as server:
        wire = Wire(endpoint(server))
        incoming = await wire.send(b"{}")
        assert incoming.kind == "application/octet-stream"
        incoming.close()
        await wire.aclose()


async def test_who_answers_before_a_large_request_has_arrived_is_heard() -> None:
    """And its connection, on which the rest of the request is missing, is not used again."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        if len(asked) > 1:
            writer.write(OK)
        else:
            writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()
        await reader.read(1)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, limit=1024) as server:
        wire = Wire(Endpoint("mine", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", trust_env=False))
        incoming = await wire.send(b"x" * 40_000_000)
        assert incoming.status == 413
        incoming.close()
        assert (await ask(wire))[0] == 200
        await wire.aclose()
    assert len(asked) == 2


async def test_a_silence_within_an_answer_is_told_and_its_connection_closed() -> None:
    async with talking(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}") as server:
        wire = Wire(endpoint(server, patience=Patience(idle=0.05)))
        incoming = await wire.send(b"{}")
        assert await incoming.read() == b"{}"
        with pytest.raises(UpstreamFailed, match=r"was silent for 0\.05 s"):
            await incoming.read()
        incoming.close()
        await server.closed[0].wait()
        await wire.aclose()


async def test_user_and_password_of_an_address_are_shown_to_its_server() -> None:
    async with talking(OK) as server:
        wire = Wire(Endpoint("mine", server.url.replace("//", "//joe:hush@"), trust_env=False))
        await ask(wire)
        await wire.aclose()
        assert b"\r\nauthorization: basic am9lomh1c2g=\r\n" in server.asked[0][1].lower()


async def test_what_is_asked_for_is_what_can_be_unpacked() -> None:
    async with talking(OK) as server:
        wire = Wire(endpoint(server))
        await ask(wire)
        await wire.aclose()
        assert b"\r\naccept-encoding: gzip, deflate, zstd\r\n" in server.asked[0][1].lower()
