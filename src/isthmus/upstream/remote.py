"""A gateway at an address: Responses requests out, its events in. For clients that keep no provider in-process.

In: a request body. Out: events, as they were sent. What the gateway refuses is raised as it would have been in-process:
`RequestRefused` where the caller can fix it, `UpstreamFailed` where not; in neither are the secrets of its address.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

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
from isthmus.scrub import Secret
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.wire import Incoming, Wire

_T = TypeVar("_T")
_MAX_ERROR: Final = 64 * 1024
_DONE: Final = b"[DONE]"
_FINAL: Final = ("response.completed", "response.incomplete", "response.failed")
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_encode: Final = msgspec.json.Encoder().encode
_UNREADABLE: Final = (ValueError, RecursionError)
"""What decoding raises: broken JSON, bytes that are no text, a nest without an end."""


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


class RemoteGateway:
    """One gateway, over one wire. How much to ask at a time is the caller's to decide: any number may wait."""

    def __init__(self, address: GatewayAddress) -> None:
        self._base = address.base
        headers = dict(address.headers)
        if address.api_key:
            headers["authorization"] = f"Bearer {address.api_key}"
        endpoint = Endpoint("gateway", address.url, headers, patience=address.patience, called="the gateway")
        self._wire = Wire(endpoint, (Secret(address.api_key, "key"),))
        self._scrubber = self._wire.scrubber

    async def events(self, request: JsonObject) -> AsyncGenerator[list[dict[str, Any]], None]:
        """The response's events in batches; a whole answer is told by its last event alone."""
        body = {name: value for name, value in request.items() if name != "model" or value}
        incoming, told = await self._wire.send(_encode(body), url=f"{self._base}/responses"), False
        try:
            if not incoming.ok:
                raise await self._refusal(incoming)
            if incoming.kind != "text/event-stream":
                whole = self._scrubbed(_decode(await incoming.whole()))
                yield [{"type": f"response.{_ending(whole.get('status'))}", "response": whole}]
                return
            parser = SseParser()
            while True:
                data = await incoming.read()
                found = parser.feed(data) if data else parser.end()
                events = [self._event(event) for event in found if event != _DONE]
                told = any(event["type"] in _FINAL for event in events)
                if events:
                    yield events
                if told or not data:
                    return
        except _UNREADABLE as error:
            raise self._unreadable("an answer", error) from None
        finally:
            if told:  # also when its reader has left with the last event: the connection serves the next request too
                await incoming.let_end()
            incoming.close()

    async def models(self) -> list[JsonObject]:
        """What it lists, each with its `id`."""
        listed = (await self.listing()).get("data")
        if not isinstance(listed, list):
            raise self._wire.failed("sent a list of models without `data`; is its address right?")
        return [entry for entry in listed if isinstance(entry, dict) and isinstance(entry.get("id"), str)]

    async def listing(self) -> JsonObject:
        """All that it says of its models, with the catalogue for Codex: to be sent that, one asks as Codex does."""
        return await self.ask("/models?client_version=isthmus", "a list of models", dict[str, Any])

    async def ask(self, path: str, what: str, kind: type[_T], body: JsonObject | None = None) -> _T:
        """What it answers below its address (a GET, or a POST where there is a body); `what` is the word for it."""
        data = None if body is None else _encode(body)
        incoming = await self._wire.send(data, method="GET" if data is None else "POST", url=f"{self._base}{path}")
        try:
            if not incoming.ok:
                raise await self._refusal(incoming)
            return msgspec.json.decode(await incoming.whole(), type=kind)
        except _UNREADABLE as error:
            raise self._unreadable(what, error) from None
        finally:
            incoming.close()

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def _refusal(self, incoming: Incoming) -> IsthmusError:
        error: Any = None
        with suppress(*_UNREADABLE):  # the status says enough
            error = _decode(await incoming.beginning(_MAX_ERROR)).get("error")
        said = self._scrubber.json(error) if isinstance(error, dict) else {}
        message = said.get("message") or f"the gateway answered HTTP {incoming.status}"
        code, status = said.get("code"), incoming.status
        request_id = self._scrubber.json(incoming.request_id)
        metadata = {"provider": "gateway", "request_id": request_id}
        known = FAILURES.get(code) if isinstance(code, str) else None
        by_status = code_of_status(status)
        if by_status == CredentialsRefused.default_code:
            code = by_status  # our key, or the gateway's: nothing that the request could say differently
        elif known.turn == "caller" if known is not None else _calls_it_wrong(FAILURES[by_status]):
            return RequestRefused(message, code=code, param=said.get("param"), metadata=metadata)
        return UpstreamFailed(message, code=code, status=status, retry_after=incoming.retry_after, metadata=metadata)

    def _unreadable(self, what: str, error: Exception) -> UpstreamFailed:
        return self._wire.failed(f"sent {what} that cannot be read: {error}", "server_error")

    def _event(self, data: bytes) -> dict[str, Any]:
        """What the gateway says of a failure may repeat our key; what a model says is not looked at."""
        event = _decode(data)
        kind = event.get("type")
        if not isinstance(kind, str):
            raise self._wire.failed("sent an event without a `type`", "server_error")
        if kind == "response.failed" and isinstance(event.get("response"), dict):
            return {**event, "response": self._scrubbed(event["response"])}
        return self._scrubbed(event) if kind == "error" else event

    def _scrubbed(self, told: dict[str, Any]) -> dict[str, Any]:
        """A response or an event whose error is without secrets."""
        return {
            name: self._scrubber.json(value) if name in ("error", "message") else value for name, value in told.items()
        }


def _ending(status: object) -> str:
    return status if status in ("completed", "incomplete") else "failed"


def _calls_it_wrong(meaning: Meaning) -> bool:
    """Whether a bare status finds fault with the request itself: neither time nor another key would help."""
    return meaning.final and not meaning.elsewhere
