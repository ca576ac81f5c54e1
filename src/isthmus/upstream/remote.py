"""A gateway at an address: Responses requests out, its events in. For clients that keep no provider in-process.

In: a request body. Out: events, as they were sent. What the gateway refuses is raised as it would have been in-process:
`RequestRefused` where the caller can fix it, `UpstreamFailed` where not; in neither are the secrets of its address.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from isthmus.bridge.sse import SseParser
from isthmus.errors import (
    FAILURES,
    CredentialsRefused,
    IsthmusError,
    Meaning,
    RequestRefused,
    UpstreamFailed,
    code_of_status,
)
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrubber, Secret, header_secrets, url_secrets
from isthmus.upstream.connections import Connector, send_over
from isthmus.upstream.http import MAX_REPLY, Patience, parse_retry_after, tell_reason

_MAX_ERROR: Final = 64 * 1024
_DONE: Final = b"[DONE]"
_FINAL: Final = ("response.completed", "response.incomplete", "response.failed")
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    url: str = field(repr=False)
    """`http://localhost:8484` or `…/v1`."""
    api_key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    patience: Patience = field(default_factory=Patience)

    @property
    def base(self) -> str:
        url = self.url.rstrip("/")
        return url if urlsplit(url).path.strip("/") else f"{url}/v1"


class GatewayWire:
    """One pooled HTTP client for one gateway."""

    def __init__(self, address: GatewayAddress) -> None:
        self._address = address
        self._scrubber = Scrubber(
            (Secret(address.api_key, "key"), *header_secrets(address.headers), *url_secrets(address.url))
        )
        self._session: aiohttp.ClientSession | None = None

    async def events(self, request: JsonObject) -> AsyncGenerator[list[dict[str, Any]], None]:
        """The response's events in batches; a whole reply is told by its last event alone."""
        body = {name: value for name, value in request.items() if name != "model" or value}
        response = await self._open("POST", "/responses", _encode(body))
        try:
            if response.status // 100 != 2:
                raise await self._refusal(response)
            if response.content_type != "text/event-stream":
                whole = self._scrubbed(_decode(await self._whole(response)))
                yield [{"type": f"response.{_ending(whole.get('status'))}", "response": whole}]
                return
            parser = SseParser()
            while True:
                data = await self._read(response)
                found = parser.feed(data) if data else parser.end()
                events = [self._clean(_decode(event)) for event in found if event != _DONE]
                if events:
                    yield events
                if not data or any(event["type"] in _FINAL for event in events):
                    return
        except msgspec.DecodeError as error:
            raise self._failed(f"sent an event that is not JSON: {error}") from None
        finally:
            response.close()

    async def models(self) -> list[JsonObject]:
        response = await self._open("GET", "/models", None)
        try:
            if response.status // 100 != 2:
                raise await self._refusal(response)
            listed = _decode(await self._whole(response))
        finally:
            response.close()
        return [entry for entry in listed.get("data") or () if isinstance(entry, dict) and entry.get("id")]

    async def aclose(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _open(self, method: str, path: str, data: bytes | None) -> aiohttp.ClientResponse:
        patience = self._address.patience
        try:
            async with asyncio.timeout(patience.connect + patience.first_byte):
                url = self._address.base + path
                return await send_over(
                    lambda: self._client().request(method, url, data=data, allow_redirects=False), "gateway"
                )
        except TimeoutError:
            failure = self._failed("did not answer in time", "upstream_timeout")
        except (aiohttp.ClientError, OSError) as error:
            failure = self._failed(f"cannot be reached: {tell_reason(error)}", "upstream_unreachable")
        raise failure  # out here it has neither cause nor context: the library's own error may hold the address

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        try:
            async with asyncio.timeout(self._address.patience.idle):
                return await response.content.readany()
        except TimeoutError:
            failure = self._failed("fell silent", "upstream_timeout")
        except (aiohttp.ClientError, OSError) as error:
            failure = self._failed(f"broke off its answer: {tell_reason(error)}")
        raise failure

    async def _whole(self, response: aiohttp.ClientResponse, limit: int = MAX_REPLY) -> bytes:
        found = bytearray()
        while len(found) < limit and (piece := await self._read(response)):
            found += piece
        return bytes(found)

    async def _refusal(self, response: aiohttp.ClientResponse) -> IsthmusError:
        error: Any = None
        with suppress(msgspec.DecodeError, AttributeError, UpstreamFailed):  # the status says enough
            error = _decode(await self._whole(response, _MAX_ERROR)).get("error")
        said = self._scrubber.json(error) if isinstance(error, dict) else {}
        message = said.get("message") or f"the gateway answered HTTP {response.status}"
        code, status = said.get("code"), response.status
        request_id = self._scrubber.json(response.headers.get("x-request-id"))
        metadata = {"provider": "gateway", "request_id": request_id}
        known = FAILURES.get(code) if isinstance(code, str) else None
        by_status = code_of_status(status)
        if by_status == CredentialsRefused.default_code:
            code = by_status  # our key, or the gateway's: nothing that the request could say differently
        elif known.turn == "caller" if known is not None else _calls_it_wrong(FAILURES[by_status]):
            return RequestRefused(message, code=code, param=said.get("param"), metadata=metadata)
        wait = parse_retry_after(response.headers.get("retry-after"), time.time())
        return UpstreamFailed(message, code=code, status=status, retry_after=wait, metadata=metadata)

    def _failed(self, words: str, code: str = "server_error") -> UpstreamFailed:
        told = self._scrubber.text(words)
        return UpstreamFailed(f"the gateway {told}", code=code, metadata={"provider": "gateway"})

    def _clean(self, event: dict[str, Any]) -> dict[str, Any]:
        """What the gateway says of a failure may repeat our key; what a model says is not looked at."""
        if event["type"] == "response.failed" and isinstance(event.get("response"), dict):
            return {**event, "response": self._scrubbed(event["response"])}
        return self._scrubbed(event) if event["type"] == "error" else event

    def _scrubbed(self, told: dict[str, Any]) -> dict[str, Any]:
        """A response or an event whose error is without secrets."""
        return {
            name: self._scrubber.json(value) if name in ("error", "message") else value for name, value in told.items()
        }

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            address = self._address
            headers = {"content-type": "application/json", "user-agent": "isthmus", **address.headers}
            if address.api_key:
                headers["authorization"] = f"Bearer {address.api_key}"
            self._session = aiohttp.ClientSession(
                connector=Connector(limit=0),  # how much to ask at a time is the caller's to decide
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=address.patience.connect),
                trust_env=True,
            )
        return self._session


def _ending(status: object) -> str:
    return status if status in ("completed", "incomplete") else "failed"


def _calls_it_wrong(meaning: Meaning) -> bool:
    """Whether a bare status finds fault with the request itself: neither time nor another key would help."""
    return meaning.final and not meaning.elsewhere
