"""`/v1/chat/completions`: the same gateway, spoken to in the other language."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.types import Receive, Scope, Send

from isthmus.bridge.doors.chat.read import ChatRequest, receive_chat_request, reword
from isthmus.bridge.doors.chat.render import ChatRenderer, chat_id, render_chat_completion
from isthmus.bridge.sse import DONE, encode_all_data
from isthmus.errors import RequestRefused, UpstreamFailed
from isthmus.gateway.chats import AsChat
from isthmus.gateway.gateway import Gateway
from isthmus.ports import StoredResponse
from isthmus.protocol.events import Event
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import FinishedResponse
from isthmus.server.accompany import accompany
from isthmus.server.bodies import body_of
from isthmus.server.callers import caller_of
from isthmus.server.exchange import exchange_of
from isthmus.server.http import raw_headers, send_bytes
from isthmus.server.leaving import leaving_of
from isthmus.server.named import AGAIN, Asked, name_of, named
from isthmus.server.options import ServerOptions
from isthmus.server.responses import asks_strict
from isthmus.server.sinks import STREAM_HEADERS, ChatSink, JsonSink
from isthmus.server.tell import failed_late, tell_run

_decode: Final = msgspec.json.Decoder(JsonObject).decode


class ChatApi:
    def __init__(self, gateway: Gateway, options: ServerOptions) -> None:
        self._gateway = gateway
        self._options = options

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = await name_of(scope, self._gateway)
        chat = await self._gateway.read(body_of(scope), receive_chat_request)
        if name is None:
            await self._make(scope, chat, Asked(), receive, send)
            return
        async with named(scope, self._gateway, chat.request, name) as asked:
            if asked.found is not None:
                await _tell_again(chat, asked.found, send)
            else:
                await self._make(scope, chat, asked, receive, send)

    async def _make(self, scope: Scope, chat: ChatRequest, asked: Asked, receive: Receive, send: Send) -> None:
        caller, strict = caller_of(scope), asks_strict(scope)

        def render(response: FinishedResponse) -> JsonObject:
            return _renamed(render_chat_completion(response, legacy_functions=chat.legacy_functions), chat)

        kept = AsChat(chat.messages, render)
        try:
            run = await self._gateway.create(caller, chat.request, strict=strict, noted=asked.noted, chat=kept)
        except RequestRefused as error:
            raise reword(error, chat.path) from error
        await asked.makes(chat_id(run.id))
        exchange_of(scope).run = run
        tell_run(run)
        streaming = bool(chat.request.body.get("stream"))
        renderer = ChatRenderer(include_usage=chat.include_usage, legacy_functions=chat.legacy_functions)

        def encode(events: list[Event], size: int = 0) -> bytes:
            chunks = [_renamed(chunk, chat) for event in events for chunk in renderer.render(event)]
            return encode_all_data(chunks, size)

        def whole(response: FinishedResponse) -> JsonObject:
            if response["status"] in ("failed", "cancelled"):
                raise failed_late(run, run.failure or _failure(response))
            return render(response)

        aside, leaving = self._gateway.aside, leaving_of(scope)
        sink: ChatSink | JsonSink = ChatSink(receive, send, encode, aside, leaving)
        if not streaming:
            sink = JsonSink(receive, send, whole, aside, leaving)
        try:
            await accompany(run, sink, self._options.server)
        except UpstreamFailed as failure:
            failure.param = failure.param and chat.path(failure.param)
            raise


async def _tell_again(chat: ChatRequest, found: StoredResponse, send: Send) -> None:
    """What was made for an earlier request of the same name."""
    if not chat.request.body.get("stream"):
        await send_bytes(send, 200, found.response, headers=AGAIN)
        return
    from isthmus.bridge.doors.chat.retell import retell_chat_completion

    chunks = retell_chat_completion(_decode(found.response), include_usage=chat.include_usage)
    await send({"type": "http.response.start", "status": 200, "headers": raw_headers({**STREAM_HEADERS, **AGAIN})})
    await send({"type": "http.response.body", "body": encode_all_data(chunks) + DONE})


def _renamed(chunk: JsonObject, chat: ChatRequest) -> JsonObject:
    """Diagnostics speak of the request's own fields."""
    told = chunk.get("isthmus")
    if told:
        diagnostics = [{**said, "path": chat.path(said["path"])} for said in told["diagnostics"]]
        chunk["isthmus"] = {**told, "diagnostics": diagnostics}
    return chunk


def _failure(response: FinishedResponse) -> UpstreamFailed:
    error = response["error"] or {"code": "server_error", "message": "the response was cancelled"}
    return UpstreamFailed(error["message"], code=error["code"])
