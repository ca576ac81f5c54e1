"""What the demo model answers over HTTP: Chat Completions, embeddings and images.

Worth knowing: a client that leaves ends its answer at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from aiohttp import web

from isthmus.demo.compose import Composer
from isthmus.demo.model import MODELS, Reply
from isthmus.demo.question import Refused
from isthmus.demo.wire import DONE, closing, error_body, event, model_list, opening, piece_chunks, whole

_MAX_BODY: Final = 256 * 1024 * 1024
_BATCH: Final = 16 * 1024
"""Bytes that are written together when the stream goes at once."""
_GRACE: Final = 0.2
_FAILURE: Final = Refused(500, "the demo model was asked to fail", "server_error")


def make_runner(composer: Composer) -> web.AppRunner:
    """All its paths; to be set up, and cleaned up."""
    app = web.Application(client_max_size=_MAX_BODY)
    app.router.add_post("/v1/chat/completions", _Chat(composer).complete)
    app.router.add_post("/v1/embeddings", _embed)
    app.router.add_post("/v1/images/generations", _draw)
    app.router.add_post("/v1/images/edits", _draw)
    app.router.add_get("/v1/models", _list_models)
    app.router.add_get("/v1/models/{model}", _show_model)
    return web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=_GRACE, keepalive_timeout=60)


class _Chat:
    def __init__(self, composer: Composer) -> None:
        self._composer = composer

    async def complete(self, request: web.Request) -> web.StreamResponse:
        try:
            body = _read(await request.read())
            reply = await self._composer.compose(body)
        except Refused as refused:
            return _refusal(refused)
        if body.get("stream"):
            options = body.get("stream_options")
            return await _stream(request, reply, usage=isinstance(options, dict) and bool(options.get("include_usage")))
        return await _whole(request, reply)


async def _embed(request: web.Request) -> web.Response:
    from isthmus.demo.vectors import embed

    try:
        return _json(embed(_read(await request.read())))
    except Refused as refused:
        return _refusal(refused)


async def _draw(request: web.Request) -> web.StreamResponse:
    """Whole, or as events; what is to be changed comes in a form."""
    from isthmus.demo.pictures import draw, draw_events

    try:
        body, given = await _read_form(request) if request.content_type == "multipart/form-data" else ({}, [])
        body = body or _read(await request.read())
        if str(body.get("stream")).lower() != "true":
            return _json(draw(body, given))
        events = list(draw_events({**body, "partial_images": int(body.get("partial_images") or 0)}, given))
    except Refused as refused:
        return _refusal(refused)
    response = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-cache"})
    await response.prepare(request)
    for each in events:
        await response.write(event(each))
    return response


async def _read_form(request: web.Request) -> tuple[dict[str, Any], list[bytes]]:
    body: dict[str, Any] = {}
    given: list[bytes] = []
    async for part in await request.multipart():
        data = bytes(await part.read(decode=False))  # type: ignore[union-attr]
        if part.filename:  # type: ignore[union-attr]
            given.append(data)
        else:
            body[part.name or ""] = data.decode()  # type: ignore[union-attr]
    return body, given


async def _list_models(request: web.Request) -> web.Response:
    return _json(model_list())


async def _show_model(request: web.Request) -> web.Response:
    name = request.match_info["model"]
    if name not in MODELS:
        return _refusal(Refused(404, f"there is no demo model `{name}`", "model_not_found"))
    return _json(next(model for model in model_list()["data"] if model["id"] == name))


def _read(data: bytes) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}", "invalid_request_error") from error
    if not isinstance(body, dict):
        raise Refused(400, "the body must be a JSON object", "invalid_request_error")
    return body


async def _whole(request: web.Request, reply: Reply) -> web.StreamResponse:
    await asyncio.sleep(reply.wait)
    body = msgspec.json.encode(whole(reply))
    match reply.breaks:
        case "fail":
            return _refusal(_FAILURE)
        case "garble":
            return _json_bytes(body[: len(body) // 2])
        case "cut":
            return await _cut(request, body)
    return _json_bytes(body)


async def _stream(request: web.Request, reply: Reply, *, usage: bool) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-cache"})
    await response.prepare(request)
    # The role goes out first, so that the client knows that it was heard, however slow the first token is.
    await response.write(opening(reply))
    await asyncio.sleep(reply.wait)
    for batch in _batches(reply):
        await response.write(batch)
        # A write that fits the buffer does not wait: let the others have their turn.
        await asyncio.sleep(1 / reply.pace if reply.pace else 0)
    match reply.breaks:
        case "cut":
            _hang_up(request)
        case "garble":
            await response.write(b'data: {"id": "chatcmpl-garbled", "choices": [{"delta": {"content\n\n' + DONE)
        case "fail":
            await response.write(event(error_body(_FAILURE)))
        case None:
            await response.write(closing(reply, usage=usage))
    return response


def _batches(reply: Reply) -> Iterator[bytes]:
    """Token by token at a pace, else as many as fit a write; half of them where the answer will break."""
    left = len(reply.pieces) // 2 if reply.breaks else len(reply.pieces)
    batch = b""
    for chunk, _ in zip(piece_chunks(reply), range(left), strict=False):
        batch += chunk
        if reply.pace or len(batch) >= _BATCH:
            yield batch
            batch = b""
    if batch:
        yield batch


async def _cut(request: web.Request, body: bytes) -> web.StreamResponse:
    """Half of the body that the headers promise."""
    response = web.StreamResponse(headers={"content-type": "application/json"})
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    _hang_up(request)
    return response


def _hang_up(request: web.Request) -> None:
    """Close after what was written: the client gets all of it, and then the end where none was due."""
    if request.transport is not None:
        request.transport.close()


def _refusal(refused: Refused) -> web.Response:
    response = _json(error_body(refused), refused.status)
    if refused.status in (429, 503):
        response.headers["retry-after"] = "1"
    return response


def _json(value: Any, status: int = 200) -> web.Response:
    return _json_bytes(msgspec.json.encode(value), status)


def _json_bytes(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")
