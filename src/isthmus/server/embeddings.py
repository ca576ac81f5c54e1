"""`/v1/embeddings`: vectors of texts, whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Receive, Scope, Send

from isthmus.bridge.embeddings.answer import Embedded, render_embeddings
from isthmus.bridge.embeddings.read import read_embedding_request
from isthmus.bridge.limits import HEAVY_TEXT
from isthmus.gateway.embeddings import Embedding
from isthmus.gateway.gateway import Gateway
from isthmus.protocol.large import encode_sized
from isthmus.server.bodies import body_of
from isthmus.server.callers import caller_of
from isthmus.server.exchange import exchange_of
from isthmus.server.http import ClientLeft, send_bytes
from isthmus.server.leaving import leaving_of
from isthmus.server.responses import asks_strict
from isthmus.server.sinks import has_left
from isthmus.server.tell import plan_header, tell_run


class EmbeddingsApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = await self._gateway.read(body_of(scope), read_embedding_request)
        embedding = self._gateway.embeddings.create(caller_of(scope), request, strict=asks_strict(scope))
        exchange_of(scope).run = embedding
        tell_run(embedding)
        with _watched(embedding, scope, receive):
            embedded = await _unless_left(embedding)
        size = sum(map(len, map(bytes, embedded.vectors)))
        answer = render_embeddings(embedded, embedding.plan)
        data = await self._gateway.aside.do(lambda: encode_sized(answer, size), heavy=size > HEAVY_TEXT)
        await send_bytes(send, 200, data, headers={**plan_header(embedding.plan), **embedded.limits})


@contextmanager
def _watched(embedding: Embedding, scope: Scope, receive: Receive) -> Iterator[None]:
    """A client that leaves stops the upstream."""
    leaving = leaving_of(scope)
    if leaving is not None:
        leaving.then(lambda: embedding.stop("left"))
        try:
            yield
        finally:
            leaving.then(None)
        return
    watching = asyncio.create_task(_stop_when_left(embedding, receive))
    try:
        yield
    finally:
        watching.cancel()


async def _stop_when_left(embedding: Embedding, receive: Receive) -> None:
    await has_left(receive)
    embedding.stop("left")


async def _unless_left(embedding: Embedding) -> Embedded:
    try:
        return await embedding.answer()
    except asyncio.CancelledError:
        if embedding.ended().outcome != "cancelled":
            raise
        raise ClientLeft from None
