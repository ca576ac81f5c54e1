"""One request on its connection: what came, what goes, and when nobody has to be waited for."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from isthmus.server.cycle import SENT
from one_cycle import Scene

TEXT = (b"content-type", b"text/plain")


def play(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scene())  # type: ignore[arg-type]


# ── what goes ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_whole_answer_is_one_write() -> None:
    async def scene() -> None:
        made = Scene()
        assert made.cycle.answer(200, [TEXT, (b"content-length", b"2")], b"hi") is SENT
        await SENT
        assert made.line.writes == [b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nhi"]
        assert (made.cycle.response_complete, made.over, made.line.closed) == (True, 1, False)

    play(scene)


def test_the_same_in_messages_says_the_same() -> None:
    async def scene() -> None:
        made = Scene()
        headers = [TEXT, (b"content-length", b"2")]
        await made.cycle.send({"type": "http.response.start", "status": 200, "headers": headers})
        await made.cycle.send({"type": "http.response.body", "body": b"hi"})
        assert made.told == b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nhi"
        assert made.over == 1

    play(scene)


def test_a_stream_is_chunked_each_piece_in_one_write_and_nobody_waits() -> None:
    async def scene() -> None:
        made = Scene()
        await made.cycle.send({"type": "http.response.start", "status": 200, "headers": [TEXT]})
        assert made.cycle.put(b"hello, world") is None
        assert made.cycle.put(b"") is None  # an empty chunk would be the end
        await made.cycle.send({"type": "http.response.body", "body": b"x", "more_body": True})
        await made.cycle.send({"type": "http.response.body", "body": b"", "more_body": False})
        head, *pieces = made.line.writes
        assert head.endswith(b"transfer-encoding: chunked\r\n\r\n")
        assert pieces == [b"c\r\nhello, world\r\n", b"1\r\nx\r\n", b"0\r\n\r\n"]

    play(scene)


@pytest.mark.parametrize("way", ["put", "send", "answer"])
def test_a_client_that_does_not_read_is_waited_for_and_one_that_leaves_meanwhile_is_told_nothing(way: str) -> None:
    async def scene(leaves: bool) -> None:
        made = Scene()
        if way != "answer":
            await made.cycle.send({"type": "http.response.start", "status": 200, "headers": [TEXT]})
        before = len(made.line.writes)
        made.flow.pause_writing()
        said: Any = {
            "put": lambda: made.cycle.put(b"late"),
            "send": lambda: made.cycle.send({"type": "http.response.body", "body": b"late", "more_body": True}),
            "answer": lambda: made.cycle.answer(200, [(b"content-length", b"4")], b"late"),
        }[way]()
        waiting = asyncio.ensure_future(said)
        await asyncio.sleep(0)
        assert not waiting.done()
        assert len(made.line.writes) == before
        if leaves:
            made.cycle.tell()
        made.flow.resume_writing()
        await waiting
        assert (b"late" in made.told) is not leaves

    play(lambda: scene(False))
    play(lambda: scene(True))


def test_who_is_gone_is_told_nothing() -> None:
    async def scene() -> None:
        made = Scene()
        made.cycle.tell()
        await made.cycle.answer(200, [(b"content-length", b"2")], b"hi")
        await made.cycle.send({"type": "http.response.start", "status": 200, "headers": []})
        assert made.cycle.put(b"x") is None
        assert made.line.writes == []

    play(scene)


@pytest.mark.parametrize(
    ("facts", "headers", "expected"),
    [
        ({}, [(b"content-length", b"2")], b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"),
        ({"sends_body": False}, [(b"content-length", b"2")], b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"),
        (
            {"keep_alive": False},
            [(b"content-length", b"2")],
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi",
        ),
        (
            {},
            [(b"content-length", b"2"), (b"connection", b"close")],
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi",
        ),
    ],
    ids=["plain", "only its head", "not kept", "closed by us"],
)
def test_the_head_says_what_becomes_of_the_connection(facts: Any, headers: Any, expected: bytes) -> None:
    async def scene() -> None:
        made = Scene(**facts)
        await made.cycle.answer(200, headers, b"hi")
        assert made.told == expected
        assert made.line.closed is (b"close" in expected)

    play(scene)


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\x00", b"\x7f"])
def test_a_header_cannot_begin_another(value: bytes) -> None:
    async def scene() -> None:
        made = Scene()
        with pytest.raises(RuntimeError, match="header"):
            made.cycle.answer(200, [(b"x-a", value), (b"content-length", b"0")], b"")
        assert made.line.writes == []

    play(scene)


@pytest.mark.parametrize("length", [b"1", b"3"])
def test_an_answer_of_another_length_than_it_says_is_a_bug_that_is_told(length: bytes) -> None:
    async def scene() -> None:
        made = Scene()
        with pytest.raises(RuntimeError, match="not as long"):
            made.cycle.answer(200, [(b"content-length", length)], b"hi")

    play(scene)


# ── what comes ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_that_is_here_is_taken_at_once_and_only_its_end_makes_it_whole() -> None:
    async def scene() -> None:
        made = Scene()
        assert made.cycle.come(b"he") == 2
        assert made.cycle.come(b"llo") == 5
        assert not made.cycle.whole
        made.cycle.more_body = False
        assert made.cycle.whole
        assert made.cycle.take() == b"hello"

    play(scene)


@pytest.mark.parametrize("facts", [{"expects": True}, {}])
def test_who_expects_a_word_first_gets_it_and_who_is_gone_has_sent_nothing(facts: Any) -> None:
    async def scene() -> None:
        made = Scene(**facts)
        made.cycle.more_body = False
        if facts:
            assert not made.cycle.whole
            made.cycle.wake()
            assert await made.cycle.receive() == {"type": "http.request", "body": b"", "more_body": False}
            assert made.told == b"HTTP/1.1 100 Continue\r\n\r\n"
        else:
            made.cycle.tell()
            assert not made.cycle.whole
            assert await made.cycle.receive() == {"type": "http.disconnect"}

    play(scene)


def test_pieces_are_received_as_they_come_and_then_the_leaving() -> None:
    async def scene() -> None:
        made = Scene()
        receiving = asyncio.ensure_future(made.cycle.receive())
        await asyncio.sleep(0)
        assert not receiving.done()
        made.cycle.come(b"a")
        assert await receiving == {"type": "http.request", "body": b"a", "more_body": True}
        made.cycle.more_body = False
        made.cycle.wake()
        assert await made.cycle.receive() == {"type": "http.request", "body": b"", "more_body": False}
        leaving = asyncio.ensure_future(made.cycle.receive())
        await asyncio.sleep(0)
        assert not leaving.done()
        made.cycle.tell()
        assert await leaving == {"type": "http.disconnect"}

    play(scene)


# ── who answers ────────────────────────────────────────────────────────────────────────────────────────


async def silent(scope: Any, receive: Any, send: Any) -> None:
    pass


async def broken(scope: Any, receive: Any, send: Any) -> None:
    raise ValueError("a bug")


async def halfway(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await broken(scope, receive, send)


@pytest.mark.parametrize("app", [silent, broken, halfway])
def test_whoever_does_not_answer_is_answered_for_or_cut(app: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        made = Scene()
        await made.cycle.run(app, {})
        assert made.line.closed
        assert made.told.startswith(b"HTTP/1.1 200" if app is halfway else b"HTTP/1.1 500 Internal Server Error")
        assert "ASGI callable" in caplog.text or "a bug" in caplog.text

    play(scene)


def test_what_was_asked_is_forgotten_with_it_at_once() -> None:
    class Held(dict[str, Any]):
        pass

    async def answers(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def scene() -> None:
        made = Scene()
        scope = Held()
        scope["cycle"] = made.cycle
        seen = weakref.ref(scope)
        await made.cycle.run(answers, scope)
        del scope
        assert seen() is None, "no circle keeps it"

    gc.disable()
    try:
        play(scene)
    finally:
        gc.enable()
