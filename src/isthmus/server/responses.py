"""`/v1/responses` and what hangs below it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec
from starlette.types import Receive, Scope, Send

from isthmus.bridge.assemble.output import usage_object
from isthmus.bridge.deltas import Usage
from isthmus.bridge.parse import Request, parse_request
from isthmus.bridge.sse import encode_events
from isthmus.bridge.tokens import most_tokens
from isthmus.bridge.types.clients import CODEX
from isthmus.conduct.run import Run
from isthmus.config.schema import Server
from isthmus.errors import RequestRefused, UpstreamFailed
from isthmus.gateway.gateway import Gateway
from isthmus.ports import TURN, TURN_STATE, StoredResponse, TurnState, read_state
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import FinishedResponse, Response
from isthmus.server.accompany import Sink, accompany
from isthmus.server.bodies import body_of
from isthmus.server.callers import caller_of
from isthmus.server.codex_client import belongs_in_stream, without_retries
from isthmus.server.exchange import exchange_of
from isthmus.server.http import header, send_bytes, send_json
from isthmus.server.leaving import leaving_of
from isthmus.server.listed import listed_item
from isthmus.server.lists import asked_order, page_of
from isthmus.server.named import AGAIN, Asked, name_of, named, unnamed
from isthmus.server.options import ServerOptions, query, whole_number
from isthmus.server.sinks import JsonSink, SseSink, send_events
from isthmus.server.tell import failed_late, plan_header, tell_run

_decode: Final = msgspec.json.Decoder().decode


class ResponsesApi:
    def __init__(self, gateway: Gateway, options: ServerOptions) -> None:
        self._gateway = gateway
        self._options = options

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = await name_of(scope, self._gateway)
        request = await self._gateway.read(body_of(scope), parse_request)
        if name is None:
            await self._make(scope, request, Asked(), receive, send)
            return
        async with named(scope, self._gateway, request, name) as asked:
            if asked.found is not None:
                await self._tell_again(scope, request, asked.found, receive, send)
            else:
                await self._make(scope, request, asked, receive, send)

    async def _make(self, scope: Scope, request: Request, asked: Asked, receive: Receive, send: Send) -> None:
        strict, exchange = asks_strict(scope), exchange_of(scope)
        caller = exchange.caller
        if caller.client is CODEX:
            TURN.set(TurnState(read_state(header(scope, TURN_STATE.encode()))))
        run = await self._gateway.create(caller, request, strict=strict, noted=asked.noted)
        await asked.makes(run.id)
        exchange.run = run
        tell_run(run)
        if request.body.get("background"):
            response = await self._gateway.create_in_background(caller, run, request, strict=strict)
            await self._tell_background(scope, request, run, response, receive, send)
        elif request.body.get("stream"):
            told = SseSink(receive, send, encode_events, self._gateway.aside, leaving_of(scope))
            await tell_stream(run, told, self._options.server)
        else:
            sink = JsonSink(receive, send, _as_it_is, self._gateway.aside, leaving_of(scope))
            await accompany(run, sink, self._options.server)

    async def _tell_again(
        self, scope: Scope, request: Request, found: StoredResponse, receive: Receive, send: Send
    ) -> None:
        if not request.body.get("stream"):
            await send_bytes(send, 200, found.response, headers=AGAIN)
            return
        followed = _as_sse(await self._gateway.follow(caller_of(scope), found.id))
        await send_events(receive, send, followed, AGAIN, ping=self._options.server.ping)

    async def compact(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = await self._gateway.read(body_of(scope), parse_request)
        run, said = await self._gateway.compact(
            caller_of(scope), request, strict=asks_strict(scope), noted=unnamed(scope)
        )
        exchange_of(scope).run = run
        tell_run(run)

        def render(response: FinishedResponse) -> JsonObject:
            if response["status"] != "completed":  # a window without a summary would lose the conversation
                raise failed_late(run, run.failure or UpstreamFailed("the conversation was not compacted"))
            return render_compaction(response, said)

        await accompany(
            run, JsonSink(receive, send, render, self._gateway.aside, leaving_of(scope)), self._options.server
        )

    async def retrieve(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller, id = caller_of(scope), scope["path_params"]["id"]
        asked = query(scope)
        if asked.get("stream") not in ("true", "1"):
            await send_bytes(send, 200, (await self._gateway.retrieve(caller, id)).response)
            return
        after = whole_number(asked, "starting_after", default=-1, low=0)
        followed = _as_sse(await self._gateway.follow(caller, id, after))
        await send_events(receive, send, followed, {}, ping=self._options.server.ping)

    async def delete(self, scope: Scope, receive: Receive, send: Send) -> None:
        id = scope["path_params"]["id"]
        await self._gateway.delete(caller_of(scope), id)
        await send_json(send, 200, {"id": id, "object": "response", "deleted": True})

    async def cancel(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = await self._gateway.cancel(caller_of(scope), scope["path_params"]["id"])
        await send_bytes(send, 200, found.response)

    async def input_items(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = query(scope)
        page = await self._gateway.input_items(
            caller_of(scope),
            scope["path_params"]["id"],
            limit=whole_number(asked, "limit", default=20, low=1, high=100),
            after=asked.get("after"),
            order=asked_order(asked, "desc"),
        )
        items = [listed_item(_decode(item)) for item in page.items]
        await send_json(send, 200, page_of(items, [item["id"] for item in items], page.has_more))

    async def input_tokens(self, scope: Scope, receive: Receive, send: Send) -> None:
        """No provider tells beforehand: an estimate from the exact body that would be sent, marked as one."""
        request = await self._gateway.read(body_of(scope), parse_request)
        async with self._gateway.gates.request(caller_of(scope)) as limits:
            plan = await self._gateway.plan_only(caller_of(scope), request)
            tokens = await self._gateway.aside.do(lambda: most_tokens(plan.body), heavy=request.heavy)
        counted = {"object": "response.input_tokens", "input_tokens": tokens}
        await send_json(send, 200, {**counted, "isthmus": {"estimated": True}}, {**plan_header(plan), **limits})

    async def _tell_background(
        self, scope: Scope, request: Request, run: Run, response: Response, receive: Receive, send: Send
    ) -> None:
        headers = plan_header(run.plan)
        if not request.body.get("stream"):
            await send_json(send, 200, response, headers)
            return
        followed = _as_sse(await self._gateway.follow(caller_of(scope), run.id))
        await send_events(receive, send, followed, headers, ping=self._options.server.ping)


async def tell_stream(run: Run, sink: Sink, pulse: Server) -> None:
    """`accompany`, with failures before anything was told as each client understands them."""
    try:
        await accompany(run, sink, pulse)
    except UpstreamFailed as failure:
        if run.finished or run.plan.client is not CODEX:
            raise
        if not belongs_in_stream(failure):
            raise without_retries(failure) from failure
        slow = sink.write(run, await run.tell(failure))
        if slow is not None:
            await slow
        await sink.end(run)


def _as_it_is(response: FinishedResponse) -> FinishedResponse:
    return response


def asks_strict(scope: Scope) -> bool | None:
    """`Isthmus-Strict: true` rejects where it would otherwise degrade or ignore."""
    asked = header(scope, b"isthmus-strict").strip().lower()
    if asked in ("", "true", "1", "false", "0"):
        return None if not asked else asked in ("true", "1")
    raise RequestRefused("header `Isthmus-Strict` must be `true` or `false`", param="Isthmus-Strict")


def render_compaction(response: FinishedResponse, said: Sequence[JsonObject]) -> JsonObject:
    """The window that a conversation goes on from: the user's messages, and the summary last."""
    suffix = response["id"].removeprefix("resp_")
    kept = [
        {"id": f"msg_{suffix}_u{index}", "status": "completed", **listed_item(item)} for index, item in enumerate(said)
    ]
    return {
        "id": response["id"],
        "object": "response.compaction",
        "created_at": response["created_at"],
        "output": [*kept, *response["output"]],
        "usage": response["usage"] or usage_object(Usage(0, 0, 0)),
        "isthmus": response["isthmus"],
    }


async def _as_sse(batches: AsyncIterator[list[bytes]]) -> AsyncIterator[list[bytes]]:
    async for batch in batches:
        yield [b"event: %b\ndata: %b\n\n" % (_decode(data)["type"].encode(), data) for data in batch]
