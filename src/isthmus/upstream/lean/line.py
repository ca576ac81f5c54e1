"""One connection: a request goes out in one write, its answer comes in as httptools reads it.

In: bytes. Out: an `Answer`. Worth knowing: pieces of a body and lines of a head go into a list and a table without a
call of Python each; what is held back is bounded by what came in since somebody read, which counts the head too. Who
speaks without being asked, or says more than was asked, is not listened to any longer: what it says next could be taken
for somebody else's answer.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Final, cast

import httptools

from isthmus.upstream.lean.answer import MAX_PIECE, Answer
from isthmus.upstream.trouble import (
    Stale,
    Trouble,
    broken_off,
    cut_short,
    malformed,
    system_words,
    tls_reason,
    unreachable,
)

MAX_INFORMATIONAL: Final = 1000
"""Informational answers before the answer: enough for `102 Processing` every few seconds for an hour."""
MAX_FIELD: Final = 8190
"""Bytes of one header."""
MAX_FIELDS: Final = 128
MAX_HEAD: Final = 128 * 1024
"""Bytes that may come without one of a body among them: of a head, or behind the last chunk."""
_HELD: Final = 2 * MAX_PIECE
"""Bytes that may wait for their reader before no more are taken from the socket."""
_AT_ONCE: Final = 1024 * 1024
"""Largest body that is written in one go: all of it waits in the transport. A larger one goes piece by piece."""
_SWITCHING: Final = 101
_LONG: Final = "its headers are too long, or too many"
_FAULTS: Final = (
    ("chunk", "the chunks of its answer are broken"),
    ("content-length", "its `content-length` is wrong"),
    ("expected http", "its answer is not HTTP, or is longer than its `content-length`"),
    ("data after", "its answer is longer than its `content-length`"),
)
"""Of the parser's words → ours."""


class Line(asyncio.Protocol):
    __slots__ = (
        "_answer",
        "_free",
        "_full",
        "_gone",
        "_headers",
        "_informational",
        "_keep",
        "_loop",
        "_parser",
        "_pieces",
        "_served",
        "_surplus",
        "_transport",
        "_unsent",
        "_waiter",
        "held",
        "on_body",
        "on_header",
        "origin",
        "paused",
        "since",
    )
    _transport: asyncio.Transport
    since: float
    """When it was last used."""

    def __init__(
        self, origin: tuple[str, str, int], free: Callable[[Line], None], gone: Callable[[Line], None]
    ) -> None:
        """`free`: told when another request may have it; `gone`: when none ever will."""
        self.origin = origin
        self._free = free
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._answer: Answer | None = None
        """What is asked for, until its end is here."""
        self._waiter: asyncio.Future[None] | None = None
        self._headers: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._served = self._informational = self.held = 0
        self.paused = self._full = self._keep = self._surplus = self._unsent = False
        # The parser calls these two, which are not written in Python: of two headers of a name it keeps the first.
        self.on_header = self._headers.setdefault
        self.on_body = self._pieces.append
        self._parser = httptools.HttpResponseParser(self)
        # As browsers do: a line that ends without CR, a space behind the size of a chunk.
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True)

    @property
    def open(self) -> bool:
        return not self._transport.is_closing()

    async def ask(self, head: bytes, body: bytes | None, *, bare: bool) -> Answer:
        """The answer, whose head is there. `bare`: none of its body will come, whatever it says of it."""
        if self._transport.is_closing():  # nobody will tell of its end any more
            raise unreachable("the server closed the connection")
        answer = self._answer = Answer(self, self._pieces, bare=bare)
        self._served += 1
        self._informational = self.held = 0
        try:
            if body is None:
                self._transport.write(head)
            elif len(body) <= _AT_ONCE:
                self._transport.writelines((head, body))
            else:
                await self._write_slowly(answer, head, body)
            while not answer.status and answer.error is None:
                await self.news()
        except BaseException:
            answer.close()  # not the line itself: if all had come by then, it is somebody else's already
            raise
        if answer.status:
            return answer
        self.drop()
        if self._served > 1 and not self.held and not self._informational and isinstance(answer.error, OSError):
            raise Stale
        raise _explain(answer.error)

    async def _write_slowly(self, answer: Answer, head: bytes, body: bytes) -> None:
        """As the socket takes it, and until something is heard: who has answered early does not want the rest."""
        self._unsent = True
        self._transport.write(head)
        whole = memoryview(body)
        for start in range(0, len(body), _AT_ONCE // 4):
            if answer.status or answer.error is not None:
                return
            self._transport.write(whole[start : start + _AT_ONCE // 4])
            while self._full and not answer.status and answer.error is None:
                await self.news()
            await asyncio.sleep(0)  # where the socket takes everything, others still have their turn
        self._unsent = False

    def news(self) -> asyncio.Future[None]:
        """Done when something has come, or nothing will come any more."""
        waiter = self._waiter = self._loop.create_future()
        return waiter

    def resume(self) -> None:
        """Its reader has taken what was held."""
        self.paused = False
        self._transport.resume_reading()

    def drop(self) -> None:
        """Nobody listens any more."""
        self._answer = None
        self._transport.abort()
        self._wake()

    def close(self) -> None:
        """Likewise; whoever still does is told."""
        if self._answer is None:
            self.drop()
        else:
            self._answer.fail(broken_off("its connection was closed on our side"))

    # ── what the transport says ────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None:  # it speaks without being asked
            self.drop()
            return
        self.held += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._refuse(answer, error)
        else:
            if self._answer is None:
                self._end()
            elif self.held > _HELD:
                self._hold_back(answer)
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        answer, self._answer = self._answer, None
        self._gone(self)
        if answer is not None:
            if answer.status and answer.until_closed and exc is None:
                answer.end()
            else:
                answer.fail(_lost(exc) if not answer.status else _broken(answer, exc))
            self._wake()
        del self.on_header, self.on_body, self._parser  # they hold one another

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._wake()

    # ── what the parser says ───────────────────────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        if self._answer is None:
            self._surplus = True

    def on_headers_complete(self) -> None:
        answer, status, headers = self._answer, self._parser.get_status_code(), self._headers
        if answer is None:
            return
        if len(headers) > MAX_FIELDS or (self.held > MAX_FIELD and _has_long(headers)):
            raise malformed(_LONG)
        if 100 <= status < 200 and status != _SWITCHING:
            headers.clear()
            self.held = 0
            self._informational += 1
            if self._informational > MAX_INFORMATIONAL:
                raise malformed(f"it sent more than {MAX_INFORMATIONAL} informational answers (1xx)")
            return
        answer.begin(status, headers)
        headers.clear()
        if answer.bare:
            self._answer, self._keep = None, False
            answer.end()

    def on_message_complete(self) -> None:
        answer = self._answer
        if answer is not None and answer.status:
            self._answer, self._keep = None, self._parser.should_keep_alive()
            self._headers.clear()  # of its trailers
            answer.end()

    # ── what follows from it ───────────────────────────────────────────────────────────────────────────

    def _end(self) -> None:
        if not self._keep or self._surplus or self._unsent:
            self._transport.abort()
            return
        if self.paused:
            self.resume()
        self._free(self)

    def _hold_back(self, answer: Answer) -> None:
        if self._pieces or answer.cut:
            if not self.paused:
                self.paused = True
                self._transport.pause_reading()
        elif self.held > MAX_HEAD:
            answer.fail(malformed(_LONG))

    def _refuse(self, answer: Answer, error: Exception) -> None:
        if answer.status != _SWITCHING:
            ours = error.__context__
            answer.fail(ours if isinstance(ours, Trouble) else malformed(_name_fault(str(error))))
        self.drop()  # its answer may have let go of it before

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _has_long(headers: Mapping[bytes, bytes]) -> bool:
    return any(len(name) + len(value) > MAX_FIELD for name, value in headers.items())


def _name_fault(words: str) -> str:
    said = words.lower()
    return next((ours for theirs, ours in _FAULTS if theirs in said), "its answer is not HTTP")


def _lost(error: Exception | None) -> OSError:
    return error if isinstance(error, OSError) else ConnectionError()


def _broken(answer: Answer, error: Exception | None) -> Trouble:
    if answer.until_closed and isinstance(error, OSError):
        return broken_off(_system_words(error))
    return broken_off(cut_short(counted="content-length" in answer.headers))


def _explain(error: Exception | None) -> Exception:
    if not isinstance(error, OSError):
        return error or unreachable("the connection broke")
    return unreachable(_system_words(error) if error.args else "the server closed the connection")


def _system_words(error: OSError) -> str:
    return f"TLS failed ({tls_reason(error)})" if isinstance(error, ssl.SSLError) else system_words(error)
