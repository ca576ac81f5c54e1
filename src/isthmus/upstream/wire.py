"""The one way out by HTTP: under every provider, a gateway at an address, the probe and the command line.

In: an endpoint and the bytes for it. Out: a `Incoming`, or `UpstreamFailed` with the endpoint's name and without our
secrets: the words are scrubbed, and the client's own error is not its cause. Worth knowing: the clock of the answer
stands still while all connections that we allow ourselves are in use, and the idle clock runs only while we wait for
the upstream, never while our own client is slow to read. A kept connection that turns out to be dead is replaced at
once, without a wait and without counting as an attempt: a server that closes a connection which idled may do so just as
our next request is on its way. HTTP allows that for GET and its like, not for POST, which might have been carried out;
ours only asks for text. Who carries the bytes is decided in `client.py`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from isthmus.errors import UpstreamFailed
from isthmus.log import tell
from isthmus.protocol.unpack import can_unpack
from isthmus.scrub import Scrubber, Secret, url_secrets
from isthmus.upstream.breaker import Breaker
from isthmus.upstream.client import Answer, Client, open_client
from isthmus.upstream.clocks import Deadline, Silence
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.proxies import environment_proxy, proxy_fault
from isthmus.upstream.queue import Places, Queue, QueueFull
from isthmus.upstream.reach import reach
from isthmus.upstream.retry_after import parse_retry_after
from isthmus.upstream.sign import CannotSign
from isthmus.upstream.trouble import Stale, Trouble, malformed

log: Final = logging.getLogger("isthmus.upstream")

MAX_REPLY: Final = 64 * 1024 * 1024
_LINGER: Final = 0.1
"""Seconds that the end of a stream may lag behind its `[DONE]` before its connection is given up."""


class Wire:
    """One pool of connections to one endpoint."""

    def __init__(self, endpoint: Endpoint, more_secrets: Sequence[Secret] = ()) -> None:
        """`more_secrets`: those of the provider's other places and keys."""
        self.endpoint = endpoint
        # Found once, not for every request.
        self._proxy = endpoint.proxy or (environment_proxy(endpoint.url) if endpoint.trust_env else None)
        self._proxy_fault = proxy_fault(self._proxy)
        self._scrubber = Scrubber((*endpoint.secrets(), *url_secrets(self._proxy or ""), *more_secrets))
        plain = {"content-type": "application/json", "user-agent": "isthmus"}
        self._headers = {"": _fold(plain, endpoint.headers)}
        self._headers |= {name: _fold(plain, other.headers) for name, other in endpoint.others.items()}
        self._client: Client = open_client(endpoint, self._headers, self._proxy)
        self._queue = Queue(
            endpoint.provider,
            endpoint.max_connections,
            endpoint.max_queued,
            self._queue_timeout,
            endpoint.max_queued_per_owner,
        )
        self.breaker = Breaker(endpoint.provider, endpoint.breaker, called=endpoint.called)

    @property
    def queue(self) -> int:
        """How far from the front one more request would stand; 0: it would be sent at once."""
        return self._queue.length

    @property
    def load(self) -> tuple[int, int]:
        """How many requests are on their way, and how many wait for a connection."""
        return self._queue.taken, self._queue.waiting

    @property
    def scrubber(self) -> Scrubber:
        """With what the last request was signed with: tokens come and go."""
        signer = self.endpoint.signer
        return self._scrubber if signer is None else self._scrubber.and_also(signer.secrets)

    async def send(
        self,
        data: bytes | None,
        *,
        method: str = "POST",
        url: str = "",
        headers: Mapping[str, str] | None = None,
        dialect: str = "",
        owner: str = "",
    ) -> Incoming:
        """The answer, whose head is there; to be closed. `url`: where it is not the endpoint's own; `headers`: those of
        this request alone. `dialect`: what is spoken, for it may be spoken elsewhere. `owner`: among whose requests it
        waits, if it has to."""
        other = self.endpoint.others.get(dialect)
        places = await self._take_place(owner)
        try:
            if other is None:
                answer = await self._ask(method, url or self.endpoint.url, data, headers)
            else:
                answer = await self._ask(method, other.url, data, headers, dialect)
        except BaseException:
            places.release()
            raise
        return Incoming(self, answer, places)

    async def reach(self) -> str | None:
        """What keeps us from asking, in words; `None`: nothing. Nothing is sent."""
        if (resting := self.breaker.words()) is not None:
            return resting
        if self._proxy_fault is not None:
            return f"cannot be reached: {self._proxy_fault}"
        return await reach(self._proxy or self.endpoint.url, self.endpoint.patience.connect)

    async def aclose(self) -> None:
        self._queue.reset()
        await self._client.aclose()
        if self.endpoint.signer is not None:
            await self.endpoint.signer.aclose()

    def failed(self, words: str, code: str | None = None, *, spent: bool = False) -> UpstreamFailed:
        """`words` follow its name. `spent`: it took all the patience there is; nobody should begin anew."""
        endpoint = self.endpoint
        metadata = {"provider": endpoint.provider, "spent": True} if spent else {"provider": endpoint.provider}
        name = endpoint.called or f"provider `{endpoint.provider}`"
        return UpstreamFailed(f"{name} {self.scrubber.text(words)}", code=code, metadata=metadata)

    @property
    def _queue_timeout(self) -> float:
        own = self.endpoint.queue_timeout
        return self.endpoint.patience.first_byte if own is None else own

    async def _take_place(self, owner: str) -> Places:
        try:
            return await self._queue.take(owner)
        except QueueFull as full:
            failure = self._busy(self._why_not(full), full.wait)
        except TimeoutError:
            failure = self._busy(f"and none of them ended within {self._queue_timeout:g} s")
        raise failure

    def _why_not(self, full: QueueFull) -> str:
        endpoint = self.endpoint
        match full.why:
            case "full":
                return f"and {endpoint.max_queued} more wait, as `max_queued` beside it allows"
            case "own":
                most = endpoint.max_queued_per_owner
                return f"and {most} more of yours wait, as `max_queued_per_owner` beside it allows"
            case "displaced":
                return f"and {endpoint.max_queued} more wait; this one made room for somebody who had fewer of them"
        wait = f"and one more would wait for about {full.wait or 0.0:.0f} s"
        return f"{wait}, longer than `queue_timeout` beside it allows ({self._queue_timeout:g} s)"

    def _busy(self, why: str, wait: float | None = None) -> UpstreamFailed:
        endpoint = self.endpoint
        setting = "we send at a time" if endpoint.called else f"`providers.{endpoint.provider}.max_connections` allows"
        words = f"is busy with as many requests as {setting} ({endpoint.max_connections}), {why}"
        failure = self.failed(f"{words}; raise it, or ask for less at a time", "upstream_busy", spent=True)
        failure.retry_after = None if wait is None else max(wait, 1.0)
        return failure

    async def _ask(
        self, method: str, url: str, data: bytes | None, headers: Mapping[str, str] | None, other: str = ""
    ) -> Answer:
        patience = self.endpoint.patience
        if self._proxy_fault is not None:
            raise self.failed(f"cannot be reached: {self._proxy_fault}", "upstream_unreachable")
        try:
            with Deadline(patience.connect + patience.first_byte):
                return _readable(await self._send(method, url, data, headers, other))
        except TimeoutError:
            failure = self.failed("did not answer in time", "upstream_timeout", spent=True)
        except (Trouble, CannotSign) as error:
            failure = self.failed(error.words, error.code)
        raise failure  # out here it has neither cause nor context

    async def _send(
        self, method: str, url: str, data: bytes | None, headers: Mapping[str, str] | None, other: str
    ) -> Answer:
        """Sent again for each dead connection that it was given: each is gone afterwards, and a new one is not dead."""
        client, signer = self._client, self.endpoint.signer
        while True:
            if signer is not None:
                headers = await signer.sign(method, client.spell(method, url, other), self._headers[other], data or b"")
            try:
                return await client.ask(method, url, data, other, headers)
            except Stale:
                tell(log, "info", "upstream.connection.dead", provider=self.endpoint.provider)


class Incoming:
    """An answer whose head is there. It is read by one reader, and closed when nobody wants more of it."""

    __slots__ = ("_answer", "_places", "_silence", "_wire", "headers", "kind", "status")

    def __init__(self, wire: Wire, answer: Answer, places: Places) -> None:
        self._wire = wire
        self._answer = answer
        self._places: Places | None = places
        self._silence: Silence | None = None
        self.status = answer.status
        self.kind = answer.kind
        self.headers = answer.headers

    @property
    def ok(self) -> bool:
        return self.status // 100 == 2

    @property
    def request_id(self) -> str | None:
        return self.headers.get("x-request-id")

    @property
    def retry_after(self) -> float | None:
        """Seconds that it asks us to wait."""
        return parse_retry_after(self.headers.get("retry-after"), time.time())

    async def read(self) -> bytes:
        """The next bytes; empty at the end. What the socket already has is taken without a wait, so that a burst
        costs one turn of the loop, but never more than a piece at a time: what a stalled client keeps us from sending
        stays small, and one flood does not hold the other streams back."""
        answer = self._answer
        try:
            while True:
                news = answer.news()
                if news is not None:
                    silence = self._silence
                    if silence is None:
                        silence = self._silence = Silence(self._wire.endpoint.patience.idle, self._tire)
                    silence.begin()
                    try:
                        await news
                    finally:
                        silence.end()
                data = answer.take()
                if news is None:
                    if answer.over:
                        return data  # all of it is here: nobody is held back any more
                    await asyncio.sleep(0)
                if data:
                    return data
        except TimeoutError:
            words = f"was silent for {self._wire.endpoint.patience.idle:g} s"
            failure = self._wire.failed(words, "upstream_timeout")
        except Trouble as error:
            failure = self._wire.failed(error.words, error.code)
        raise failure

    def _tire(self) -> None:
        """Whoever reads it is told."""
        self._answer.fail(TimeoutError())

    async def whole(self) -> bytes:
        """All of it, if that is not too much."""
        data = await self.within(MAX_REPLY)
        if data is None:
            raise self._wire.failed(f"sent more than {MAX_REPLY} bytes")
        return data

    async def within(self, most: int) -> bytes | None:
        """All of it; `None`: it is longer than that."""
        pieces: list[bytes] = []
        size = 0
        while piece := await self.read():
            pieces.append(piece)
            size += len(piece)
            if size > most:
                return None
        return b"".join(pieces)

    async def beginning(self, most: int) -> bytes:
        """So many bytes of it; what came before it broke off, if it did."""
        pieces = b""
        with suppress(UpstreamFailed):
            while len(pieces) < most and (piece := await self.read()):
                pieces += piece
        return pieces[:most]

    async def let_end(self) -> None:
        """The answer is told, its last bytes may be on their way: with them the connection can be used again."""
        answer = self._answer
        if answer.over:
            return
        with suppress(TimeoutError, Trouble):
            async with asyncio.timeout(_LINGER):
                while not answer.over:
                    if (news := answer.news()) is not None:
                        await news
                    answer.take()  # what is held back keeps more from coming

    def close(self) -> None:
        """One that was left early must not go on arriving; one that ended is free already."""
        places, self._places = self._places, None
        if places is not None:
            if self._silence is not None:
                self._silence.stop()
            self._answer.close()
            places.release()


def _fold(*tables: Mapping[str, str]) -> dict[str, str]:
    """One table of headers: a later one replaces an earlier one whatever its case, or both would be sent."""
    folded = {name.lower(): (name, value) for table in tables for name, value in table.items()}
    return dict(folded.values())


def _readable(answer: Answer) -> Answer:
    encoding = answer.headers.get("content-encoding")
    if encoding is None or can_unpack(encoding) or answer.status // 100 != 2:  # of a refusal the status says enough
        return answer
    answer.close()
    encoding = encoding.lower()
    shown = encoding if len(encoding) <= 20 and encoding.isalnum() else "something unknown"
    raise malformed(f"its answer is compressed as `{shown}`, which was not asked for")
