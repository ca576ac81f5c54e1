"""`/v1/responses` and what hangs below it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
from starlette.types import Receive, Scope, Send

from isthmus.bridge.assemble.retell import replay_events
from isthmus.bridge.parse import Request, parse_request
from isthmus.bridge.sse import encode_event
from isthmus.bridge.types.plan import CODEX, recognise_client
from isthmus.errors import RequestRefused, UpstreamFailed
from isthmus.gateway.gateway import Gateway, not_found
from isthmus.gateway.run import Run
from isthmus.ports import UNFINISHED, StoredResponse
from isthmus.protocol.events import Event
from isthmus.server.codex_client import belongs_in_stream, without_retries
from isthmus.server.http import header, read_body, send_bytes, send_json
from isthmus.server.options import ServerOptions, query, whole_number
from isthmus.server.stream import Connection, send_events
from isthmus.server.tell import plan_header, tell_run

_decode: Final = msgspec.json.Decoder().decode
_TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed")

_PROMPT_FIELDS: Final = ("messages", "baseInstructions", "history", "input", "tools", "dynamicTools")
"""Where the dialects keep what the model reads."""


class ResponsesApi:
    def __init__(self, gateway: Gateway, options: ServerOptions) -> None:
        self._gateway = gateway
        self._options = options

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = parse_request(await read_body(scope, receive, self._options.max_body, self._options.body_patience))
        client = recognise_client(originator=header(scope, b"originator"), user_agent=header(scope, b"user-agent"))
        run = await self._gateway.create(request, strict=asks_strict(scope), client=client)
        tell_run(run)
        if request.body.get("background"):
            await self._create_in_background(request, run, receive, send)
            return
        connection = Connection(receive, send, run, self._options.pulse, encode_events)
        if request.body.get("stream"):
            await self._stream(run, connection)
        else:
            response = await connection.whole()
            await send_json(send, 200, response, plan_header(run.plan))

    async def _stream(self, run: Run, connection: Connection) -> None:
        try:
            await connection.stream()
        except UpstreamFailed as failure:
            if run.plan.client is not CODEX:
                raise
            if not belongs_in_stream(failure):
                raise without_retries(failure) from failure
            await connection.tell(await run.refused(failure))

    async def retrieve(self, scope: Scope, receive: Receive, send: Send) -> None:
        id = scope["path_params"]["id"]
        asked = query(scope)
        if asked.get("stream") not in ("true", "1"):
            await send_bytes(send, 200, (await self._gateway.retrieve(id)).response)
            return
        after = whole_number(asked, "starting_after", default=-1, low=0)
        events = await self._events(id, after)
        await send_events(receive, send, events, {}, ping=self._options.pulse.ping)

    async def delete(self, scope: Scope, receive: Receive, send: Send) -> None:
        id = scope["path_params"]["id"]
        await self._gateway.delete(id)
        await send_json(send, 200, {"id": id, "object": "response", "deleted": True})

    async def cancel(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = await self._gateway.cancel(scope["path_params"]["id"])
        await send_bytes(send, 200, found.response)

    async def input_items(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = query(scope)
        order = asked.get("order", "desc")
        if order not in ("asc", "desc"):
            raise RequestRefused("`order` must be `asc` or `desc`", code="invalid_value", param="order")
        page = await self._gateway.input_items(
            scope["path_params"]["id"],
            limit=whole_number(asked, "limit", default=20, low=1, high=100),
            after=asked.get("after"),
            order=order,
        )
        listed: dict[str, Any] = {
            "object": "list",
            "data": [_decode(item) for item in page.items],
            "first_id": page.first_id,
            "last_id": page.last_id,
            "has_more": page.has_more,
        }
        await send_json(send, 200, listed)

    async def input_tokens(self, scope: Scope, receive: Receive, send: Send) -> None:
        """No provider tells beforehand: an estimate from the exact body that would be sent, marked as one."""
        request = parse_request(await read_body(scope, receive, self._options.max_body, self._options.body_patience))
        plan = await self._gateway.plan_only(request)
        size = len(msgspec.json.encode([plan.body[name] for name in _PROMPT_FIELDS if name in plan.body]))
        counted = {"object": "response.input_tokens", "input_tokens": max(size // 4, 1)}
        await send_json(send, 200, {**counted, "isthmus": {"estimated": True}}, plan_header(plan))

    async def _create_in_background(self, request: Request, run: Run, receive: Receive, send: Send) -> None:
        headers = plan_header(run.plan)
        response = await self._gateway.create_in_background(run, request)
        if not request.body.get("stream"):
            await send_json(send, 200, response, headers)
            return
        followed = _as_sse(self._gateway.background.follow(run.id, -1))
        await send_events(receive, send, followed, headers, ping=self._options.pulse.ping)

    async def _events(self, id: str, after: int) -> AsyncIterator[list[bytes]]:
        gateway = self._gateway
        found = await gateway.retrieve(id)
        if gateway.background.has(id, ""):
            return _as_sse(gateway.background.follow(id, after))
        # One more than asked for: was the last event that the client saw the terminal one?
        kept = await gateway.store.events(id, after=max(after - 1, -1))
        if not kept:
            return _as_sse(_once(_told_again(found, after)))
        ended = _with_terminal(found, kept)
        return _as_sse(_once(ended[1:] if after >= 0 else ended))


def asks_strict(scope: Scope) -> bool | None:
    """`Isthmus-Strict: true` rejects where it would otherwise degrade or ignore."""
    asked = header(scope, b"isthmus-strict").strip().lower()
    if asked in ("", "true", "1", "false", "0"):
        return None if not asked else asked in ("true", "1")
    raise RequestRefused("header `Isthmus-Strict` must be `true` or `false`", param="Isthmus-Strict")


def encode_events(events: list[Event]) -> bytes:
    return encode_event(events[0]) if len(events) == 1 else b"".join(map(encode_event, events))


def _told_again(found: StoredResponse, after: int) -> list[bytes]:
    """Events of a finished response whose stream was not kept: the same items, told whole."""
    response = _decode(found.response)
    if found.status in UNFINISHED:
        raise not_found(found.id)
    return [msgspec.json.encode(event) for event in replay_events(response) if event["sequence_number"] > after]


def _with_terminal(found: StoredResponse, kept: list[bytes]) -> list[bytes]:
    """A crash cuts the events off, and what was lost is known only afterwards: the end is told from the response."""
    last = _decode(kept[-1])
    if last["type"] in _TERMINAL or found.status in UNFINISHED:
        return kept
    terminal = replay_events(_decode(found.response))[-1]
    return [*kept, msgspec.json.encode({**terminal, "sequence_number": last["sequence_number"] + 1})]


async def _once(events: list[bytes]) -> AsyncIterator[list[bytes]]:
    yield events


async def _as_sse(batches: AsyncIterator[list[bytes]]) -> AsyncIterator[list[bytes]]:
    async for batch in batches:
        yield [b"event: %b\ndata: %b\n\n" % (_decode(data)["type"].encode(), data) for data in batch]
