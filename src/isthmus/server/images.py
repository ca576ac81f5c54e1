"""`/v1/images/generations` and `/v1/images/edits`: images, whole, or partial ones on the way as events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from starlette.types import Receive, Scope, Send

from isthmus.bridge.images.answer import Drawn, Partial, render_event, render_images
from isthmus.bridge.images.read import ImageRequest, read_edit, read_generation
from isthmus.bridge.limits import HEAVY_TEXT, RequestLimits
from isthmus.bridge.sse import encode_event
from isthmus.errors import IsthmusError
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.images import Drawing
from isthmus.protocol.large import encode_sized
from isthmus.server.bodies import body_of
from isthmus.server.callers import caller_of
from isthmus.server.errors import error_body
from isthmus.server.exchange import exchange_of
from isthmus.server.http import header, raw_headers, send_bytes
from isthmus.server.named import unnamed
from isthmus.server.once import answer_of, watched
from isthmus.server.responses import asks_strict
from isthmus.server.sinks import STREAM_HEADERS
from isthmus.server.tell import plan_header, tell_run

Reader = Callable[[bytes | bytearray, RequestLimits], ImageRequest]


class ImagesApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def generations(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._create(scope, receive, send, read_generation)

    async def edits(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = header(scope, b"content-type")
        await self._create(scope, receive, send, partial(read_edit, content_type=kind))

    async def _create(self, scope: Scope, receive: Receive, send: Send, read: Reader) -> None:
        request = await self._gateway.read(body_of(scope), read)
        told: asyncio.Queue[Partial] = asyncio.Queue()  # bounded by what was asked for: at most three of each image
        drawing = await self._gateway.images.create(
            caller_of(scope), request, strict=asks_strict(scope), noted=unnamed(scope), tell=told.put_nowait
        )
        exchange_of(scope).run = drawing
        tell_run(drawing)
        if drawing.plan.stream:
            with watched(drawing, scope, receive):
                await _stream(drawing, told, send)
            return
        drawn = await answer_of(drawing, scope, receive)
        answer = render_images(drawn, drawing.plan, int(time.time()))
        size = sum(len(image.base64) for image in drawn.images)
        data = await self._gateway.aside.do(lambda: encode_sized(answer, size), heavy=size > HEAVY_TEXT)
        await send_bytes(send, 200, data, headers={**plan_header(drawing.plan), **drawn.limits, **drawing.limits})


async def _stream(drawing: Drawing, told: asyncio.Queue[Partial], send: Send) -> None:
    """The first thing that is told, or its failure, decides about the status."""
    answering = asyncio.create_task(drawing.answer())
    begun = False
    try:
        while True:
            hearing = asyncio.create_task(told.get())
            await asyncio.wait((answering, hearing), return_when=asyncio.FIRST_COMPLETED)
            if not hearing.done() or hearing.cancelled():
                hearing.cancel()
                break
            begun = await _tell(drawing, hearing.result(), send, begun)
        drawn = await answering
    except IsthmusError as failure:
        if not begun:
            raise
        event = {"type": "error", **error_body(failure)}
        await send({"type": "http.response.body", "body": encode_event(event)})
        return
    finally:
        answering.cancel()
    for image in drawn.images:
        one = Drawn((image,), drawn.told, drawn.usage, drawn.limits)
        begun = await _tell(drawing, one, send, begun)
    await send({"type": "http.response.body", "body": b""})


async def _tell(drawing: Drawing, found: Partial | Drawn, send: Send, begun: bool) -> bool:
    if not begun:
        limits = found.limits if isinstance(found, Drawn) else {}
        headers = raw_headers({**STREAM_HEADERS, **plan_header(drawing.plan), **limits, **drawing.limits})
        await send({"type": "http.response.start", "status": 200, "headers": headers})
    event = render_event(found, drawing.plan, int(time.time()))
    size = len(event["b64_json"])
    await send({"type": "http.response.body", "body": encode_event(event, size), "more_body": True})
    return True
