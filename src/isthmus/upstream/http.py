"""Chat Completions and Responses over HTTP: one pooled client per provider.

In: a plan and its body. Out: deltas. Worth knowing: a stream's read loop takes what the socket already
has, so that a burst of tokens costs one turn of the loop, but never more than a piece at a time: what a
stalled client keeps us from sending stays small, and one flood does not hold the other streams back. The
idle clock runs only while we wait for the upstream, never while our own client is slow to read; nor does the clock of
the answer while all connections that we allow ourselves are in use. Every error leaves here with the provider's name
and without our secrets: its words are scrubbed, and the HTTP library's own error, which may hold the address with
everything in it, is not its cause.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import os
import re
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC
from typing import Final

import aiohttp
import msgspec

from isthmus.bridge.deltas import Delta
from isthmus.bridge.dialects.chat.decode import ChatDecoder
from isthmus.bridge.dialects.chat.failures import upstream_failure
from isthmus.bridge.dialects.responses.decode import ResponsesDecoder
from isthmus.bridge.sse import SseParser
from isthmus.bridge.tools.credentials import tool_secrets
from isthmus.bridge.types.plan import Plan
from isthmus.errors import UpstreamFailed, sane_wait
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrubber, Secret, header_secrets, query_secrets, url_secrets
from isthmus.upstream.connections import Connector, send_over
from isthmus.upstream.naming import named, named_deltas

log = logging.getLogger("isthmus.upstream")

MAX_REPLY: Final = 64 * 1024 * 1024
_PIECE: Final = 16 * 1024
"""Most bytes that are turned into deltas at once; in Python objects they take many times as much."""
_MAX_ERROR: Final = 64 * 1024
_LINGER: Final = 0.1
"""Seconds that the end of a stream may lag behind its `[DONE]` before its connection is given up."""
_SSE: Final = "text/event-stream"
_NUMBER: Final = re.compile(r"\d{1,400}(\.\d{0,400})?(e\+?\d{1,3})?", re.IGNORECASE)
_encode: Final = msgspec.json.Encoder().encode


Decoder = ChatDecoder | ResponsesDecoder


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds."""

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 300.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one provider is served."""

    provider: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    proxy: str | None = field(default=None, repr=False)
    trust_env: bool = True
    verify_tls: bool = True
    max_connections: int = 100
    patience: Patience = Patience()

    def secrets(self) -> Iterator[Secret]:
        """Everything in it that nobody else may see."""
        yield from header_secrets(self.headers)
        yield from query_secrets(self.query)
        yield from url_secrets(self.url)
        yield from url_secrets(self.proxy or "")


class HttpBackend:
    """A provider that speaks Chat Completions or Responses over HTTP."""

    def __init__(self, endpoint: Endpoint, more_secrets: Sequence[Secret] = ()) -> None:
        """`more_secrets`: those of the provider's other places and keys."""
        self._endpoint = endpoint
        # Found once: asking aiohttp to look (`trust_env`) costs two changes of thread for every request.
        self._proxy = endpoint.proxy or (environment_proxy(endpoint.url) if endpoint.trust_env else None)
        self._scrubber = Scrubber((*endpoint.secrets(), *url_secrets(self._proxy or ""), *more_secrets))
        self._session: aiohttp.ClientSession | None = None
        self._places = asyncio.Semaphore(endpoint.max_connections)
        self._waiting = 0

    @property
    def full(self) -> bool:
        """Whether a request would have to wait for a connection of ours."""
        return self._places.locked()

    @asynccontextmanager
    async def send(self, plan: Plan, body: JsonObject) -> AsyncIterator[AsyncIterator[Sequence[Delta]]]:
        places = await self._take_place()
        try:
            response = await self._post(_encode(body))
            try:
                scrubber = self._scrubber.and_also(tool_secrets(body.get("tools")))
                if response.status // 100 != 2:
                    raise await self._refusal(response, scrubber)
                self._check_kind(response.content_type)
                decoder = _decoder(plan, scrubber)
                yield self._answer(response, decoder)
                if decoder.done:
                    await _let_end(response)
            finally:
                response.close()  # one that was left early must not go on arriving; one that ended is free already
        finally:
            places.release()

    async def ready(self) -> str | None:
        return None

    async def aclose(self) -> None:
        session, self._session = self._session, None
        self._places = asyncio.Semaphore(self._endpoint.max_connections)  # the old one may belong to a loop that ended
        if session is not None:
            await session.close()

    async def _take_place(self) -> asyncio.Semaphore:
        """One of the connections that we allow ourselves, to be released; waited for on a clock of its own."""
        endpoint, places = self._endpoint, self._places
        if not places.locked():
            await places.acquire()  # does not wait
            return places
        allowed = f"`providers.{endpoint.provider}.max_connections` allows ({endpoint.max_connections})"
        if not self._waiting:  # once for all that wait together
            log.warning("upstream.full provider=%s max_connections=%d", endpoint.provider, endpoint.max_connections)
        self._waiting += 1
        try:
            async with asyncio.timeout(endpoint.patience.first_byte):
                await places.acquire()
            return places
        except TimeoutError:
            failure = self._failed(
                f"is busy with as many requests as {allowed}, and none of them ended within "
                f"{endpoint.patience.first_byte:g} s; raise it, or ask for less at a time",
                "upstream_busy",
                spent=True,
            )
        finally:
            self._waiting -= 1
        raise failure

    async def _post(self, data: bytes) -> aiohttp.ClientResponse:
        endpoint = self._endpoint
        try:
            async with asyncio.timeout(endpoint.patience.connect + endpoint.patience.first_byte):
                return await send_over(
                    lambda: self._client().post(
                        endpoint.url,
                        data=data,
                        params=endpoint.query or None,
                        proxy=self._proxy,
                        allow_redirects=False,
                    ),
                    endpoint.provider,
                )
        except aiohttp.ConnectionTimeoutError:
            words = f"cannot be reached: no connection within {endpoint.patience.connect:g} s"
            failure = self._failed(words, "upstream_unreachable")
        except TimeoutError:
            failure = self._failed("did not answer in time", "upstream_timeout", spent=True)
        except (aiohttp.ClientError, OSError) as error:
            failure = self._failed(f"cannot be reached: {tell_reason(error)}", "upstream_unreachable")
        raise failure  # out here it has neither cause nor context

    async def _answer(self, response: aiohttp.ClientResponse, decoder: Decoder) -> AsyncIterator[Sequence[Delta]]:
        if response.content_type == _SSE:
            async for deltas in self._stream(response, decoder):
                yield deltas
        else:
            yield named_deltas(decoder.reply(await self._whole(response)), self._endpoint.provider)

    def _check_kind(self, kind: str) -> None:
        """A page in place of an answer is a refusal: it is noticed while our client can still be given a status."""
        if kind != _SSE and not kind.endswith("json") and kind not in ("application/octet-stream", "text/plain"):
            raise self._failed(f"answered `{kind}`, not JSON; is `base_url` right?")

    async def _stream(self, response: aiohttp.ClientResponse, decoder: Decoder) -> AsyncIterator[Sequence[Delta]]:
        parser = SseParser()
        chunk, provider = decoder.chunk, self._endpoint.provider
        while True:
            data = await self._read(response)
            events = parser.feed(data) if data else parser.end()
            deltas = [delta for event in events for delta in chunk(event)]
            if deltas:
                yield named_deltas(deltas, provider)
            if decoder.done or not data:
                break
        held = decoder.end()
        if held:
            yield named_deltas(held, provider)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        """The next bytes; empty at the end."""
        content = response.content
        try:
            data = content.read_nowait(_PIECE)
            if data:
                await asyncio.sleep(0)
                return data
            async with asyncio.timeout(self._endpoint.patience.idle):
                return await content.read(_PIECE)
        except TimeoutError:
            failure = self._failed(f"was silent for {self._endpoint.patience.idle:g} s", "upstream_timeout")
        except (aiohttp.ClientError, OSError) as error:
            failure = self._failed(f"broke off its answer: {tell_reason(error)}")
        raise failure

    async def _whole(self, response: aiohttp.ClientResponse) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while piece := await self._read(response):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_REPLY:
                raise self._failed(f"sent more than {MAX_REPLY} bytes")
        return b"".join(pieces)

    async def _refusal(self, response: aiohttp.ClientResponse, scrubber: Scrubber) -> UpstreamFailed:
        pieces = b""
        try:
            while len(pieces) < _MAX_ERROR and (piece := await self._read(response)):
                pieces += piece
        except UpstreamFailed:
            pass  # the status says enough
        failure = upstream_failure(
            response.status,
            pieces[:_MAX_ERROR],
            provider=self._endpoint.provider,
            retry_after=parse_retry_after(response.headers.get("retry-after"), time.time()),
            scrub=scrubber.text,
        )
        request_id = response.headers.get("x-request-id")
        if request_id:
            failure.metadata = {**failure.metadata, "request_id": scrubber.text(request_id)}
        return named(failure, self._endpoint.provider)

    def _failed(self, words: str, code: str | None = None, *, spent: bool = False) -> UpstreamFailed:
        """`spent`: it took all the patience there is; nobody should begin anew."""
        provider = self._endpoint.provider
        told = self._scrubber.text(words)
        metadata = {"provider": provider, "spent": True} if spent else {"provider": provider}
        return UpstreamFailed(f"provider `{provider}` {told}", code=code, metadata=metadata)

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            endpoint = self._endpoint
            self._session = aiohttp.ClientSession(
                # No limit of its own: it would make requests wait inside our time for the provider.
                connector=Connector(limit=0, ssl=endpoint.verify_tls, keepalive_timeout=30),
                headers={"content-type": "application/json", "user-agent": "isthmus", **endpoint.headers},
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=endpoint.patience.connect),
                auto_decompress=True,
                read_bufsize=_PIECE,
            )
        return self._session


def _decoder(plan: Plan, scrubber: Scrubber) -> Decoder:
    if plan.target.capabilities.dialect == "responses":
        return ResponsesDecoder(plan.reply, scrubber)
    return ChatDecoder(plan.reply, plan.leaks, scrubber)


async def _let_end(response: aiohttp.ClientResponse) -> None:
    """The answer is told, its last bytes may be on their way: with them the connection can be used again."""
    with suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(_LINGER):
            while not response.content.at_eof():
                await response.content.readany()


def environment_proxy(url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for this address."""
    parts = urllib.parse.urlsplit(url)
    if parts.hostname is None or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Seconds to wait, from either form of the header, within sane bounds; `None` for what is neither."""
    told = (value or "").strip()
    if _NUMBER.fullmatch(told):
        return sane_wait(float(told))
    try:
        date = email.utils.parsedate_to_datetime(told)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)  # HTTP knows no other, and its oldest form does not say so
        return sane_wait(max(date.timestamp() - now, 0.0))
    except (ValueError, TypeError, OverflowError):
        return None


def tell_reason(error: BaseException) -> str:
    """Why a connection failed, in words that hold no address, as far as we know the library's own."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"  # the library's words may hold the answer's headers
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection closed before it was whole"  # in place of the HTTP library's inner words
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered HTTP {error.status}"
    if isinstance(error, aiohttp.ClientResponseError):
        return "its answer is not HTTP"  # the library's words hold the address, and that may hold a key or a password
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "")
        return f"its TLS certificate is not trusted{f' ({why})' if why else ''}; see `verify_tls`"
    if isinstance(error, aiohttp.InvalidURL):
        return "its address is not one"
    if isinstance(error, aiohttp.ClientOSError) and not isinstance(error, aiohttp.ClientConnectorError):
        # A body that could not be written is told together with the whole address: the system's words are enough.
        return os.strerror(error.errno) if error.errno else "the connection broke"
    return str(error) or type(error).__name__
