"""`/v1/embeddings`: vectors of texts, whole or not at all."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from isthmus.bridge.embeddings.answer import render_embeddings
from isthmus.bridge.embeddings.read import read_embedding_request
from isthmus.bridge.limits import HEAVY_TEXT
from isthmus.gateway.gateway import Gateway
from isthmus.protocol.large import encode_sized
from isthmus.server.bodies import body_of
from isthmus.server.callers import caller_of
from isthmus.server.exchange import exchange_of
from isthmus.server.http import send_bytes
from isthmus.server.named import unnamed
from isthmus.server.once import answer_of
from isthmus.server.responses import asks_strict
from isthmus.server.tell import plan_header, tell_run


class EmbeddingsApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = await self._gateway.read(body_of(scope), read_embedding_request)
        caller, strict = caller_of(scope), asks_strict(scope)
        embedding = await self._gateway.embeddings.create(caller, request, strict=strict, noted=unnamed(scope))
        exchange_of(scope).run = embedding
        tell_run(embedding)
        embedded = await answer_of(embedding, scope, receive)
        size = sum(map(len, map(bytes, embedded.vectors)))
        answer = render_embeddings(embedded, embedding.plan)
        data = await self._gateway.aside.do(lambda: encode_sized(answer, size), heavy=size > HEAVY_TEXT)
        await send_bytes(
            send, 200, data, headers={**plan_header(embedding.plan), **embedded.limits, **embedding.limits}
        )
