"""`/v1/messages` and what belongs to it: the same gateway, spoken to in Anthropic's language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from isthmus.bridge.assemble.output import extension_of
from isthmus.bridge.assemble.retell import replay_events
from isthmus.bridge.doors.chat.read import reword
from isthmus.bridge.doors.messages import VERSION
from isthmus.bridge.doors.messages.failures import say_too_long
from isthmus.bridge.doors.messages.read import MessagesRequest, receive_messages_request
from isthmus.bridge.doors.messages.read_options import SESSION
from isthmus.bridge.doors.messages.render import MessagesRenderer, render_message
from isthmus.bridge.doors.messages.report import in_order
from isthmus.bridge.sse import encode_events
from isthmus.bridge.tokens import likely_tokens, most_tokens
from isthmus.bridge.types.clients import on_messages
from isthmus.bridge.types.plan import Plan
from isthmus.conduct.run import Run
from isthmus.errors import IsthmusError, RequestRefused, UpstreamFailed
from isthmus.gateway.caller import Caller
from isthmus.gateway.gateway import Gateway
from isthmus.ports import StoredResponse
from isthmus.protocol.events import Event
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import FinishedResponse
from isthmus.protocol.responses import CreateResponse
from isthmus.server.accompany import accompany
from isthmus.server.anthropic import PREFIX
from isthmus.server.bodies import body_of
from isthmus.server.callers import caller_of
from isthmus.server.exchange import exchange_of
from isthmus.server.http import header, raw_headers, send_json
from isthmus.server.leaving import leaving_of
from isthmus.server.named import AGAIN, Asked, name_of, named
from isthmus.server.options import ServerOptions
from isthmus.server.responses import asks_strict
from isthmus.server.sinks import STREAM_HEADERS, JsonSink, MessagesSink
from isthmus.server.tell import plan_header, tell_run

_NO_MODEL: Final = ("unknown_provider", "invalid_model", "missing_model")
_decode: Final = msgspec.json.Decoder().decode


class MessagesApi:
    def __init__(self, gateway: Gateway, options: ServerOptions) -> None:
        self._gateway = gateway
        self._options = options

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = await name_of(scope, self._gateway)
        asked = await self._read(scope)
        if name is None:
            await self._make(scope, asked, Asked(), receive, send)
            return
        async with named(scope, self._gateway, asked.request, name) as again:
            if again.found is not None:
                await _tell_again(asked, again.found, send)
            else:
                await self._make(scope, asked, again, receive, send)

    async def _make(self, scope: Scope, asked: MessagesRequest, again: Asked, receive: Receive, send: Send) -> None:
        run = await self._create(scope, asked, again)
        exchange_of(scope).run = run
        tell_run(run)
        aside = self._gateway.aside
        sink: MessagesSink | JsonSink
        if asked.request.body.get("stream"):
            renderer = MessagesRenderer(
                model=asked.model, shows_thinking=asked.shows_thinking, input_tokens=_estimate(run.plan)
            )

            def encode(events: list[Event], size: int = 0) -> bytes:
                frames = [frame for event in events for frame in renderer.render(event)]
                return encode_events([self._tell(frame, asked, run) for frame in frames], size)

            sink = MessagesSink(receive, send, encode, aside, leaving_of(scope))
        else:

            def whole(response: FinishedResponse) -> JsonObject:
                if response["status"] in ("failed", "cancelled"):
                    raise run.failure or _failure(response)
                told = replay_events(in_order(response))
                return _renamed(render_message(told, model=asked.model, shows_thinking=asked.shows_thinking), asked)

            sink = JsonSink(receive, send, whole, aside, leaving_of(scope))
        try:
            await accompany(run, sink, self._options.server)
        except UpstreamFailed as failure:
            failure.param = failure.param and asked.path(failure.param)
            raise _worded(failure, run.plan) from failure

    @staticmethod
    def _tell(frame: JsonObject, asked: MessagesRequest, run: Run) -> JsonObject:
        """The plan is told with the first frame, where the SDKs keep it; all that was changed with the last."""
        if frame["type"] == "message_start":
            told = {**frame["message"], "isthmus": extension_of(run.plan)}
            return {**frame, "message": _renamed(told, asked)}
        return _renamed(frame, asked) if "isthmus" in frame else frame

    async def count_tokens(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An estimate from the exact body that would be sent, which errs high: clients compact by it."""
        asked = await self._read(scope, counting=True)
        try:
            async with self._gateway.gates.request(_caller(scope)) as limits:
                plan = await self._gateway.plan_only(_caller(scope), asked.request, noted=asked.decisions)
        except RequestRefused as error:
            raise _worded(reword(error, asked.path)) from error
        counted = {"input_tokens": most_tokens(plan.body), "isthmus": {"estimated": True}}
        await send_json(send, 200, counted, {**plan_header(plan), **limits})

    async def hello(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Claude Code looks whether anybody is there before it asks."""
        await send_json(send, 200, {"status": "ok"})

    async def _read(self, scope: Scope, *, counting: bool = False) -> MessagesRequest:
        reader = partial(receive_messages_request, headers=_headers(scope), counting=counting)
        asked = await self._gateway.read(body_of(scope), reader)
        name = self._gateway.directory.unprefixed(asked.request.body.get("model") or "", PREFIX)
        body: CreateResponse = {**asked.request.body, "model": name}
        return replace(asked, request=replace(asked.request, body=body))

    async def _create(self, scope: Scope, asked: MessagesRequest, again: Asked) -> Run:
        noted = (*asked.decisions, *again.noted)
        try:
            run = await self._gateway.create(_caller(scope), asked.request, strict=asks_strict(scope), noted=noted)
        except RequestRefused as error:
            raise _worded(reword(error, asked.path)) from error
        await again.makes(run.id)
        return run


async def _tell_again(asked: MessagesRequest, found: StoredResponse, send: Send) -> None:
    """What was made for an earlier request of the same name."""
    response = _decode(found.response)
    events = replay_events(in_order(response))
    if not asked.request.body.get("stream"):
        message = render_message(events, model=asked.model, shows_thinking=asked.shows_thinking)
        await send_json(send, 200, _renamed(message, asked), AGAIN)
        return
    renderer = MessagesRenderer(model=asked.model, shows_thinking=asked.shows_thinking)
    frames = [_renamed(frame, asked) for event in events for frame in renderer.render(event)]
    frames[0] = {**frames[0], "message": _renamed({**frames[0]["message"], "isthmus": response["isthmus"]}, asked)}
    await send({"type": "http.response.start", "status": 200, "headers": raw_headers({**STREAM_HEADERS, **AGAIN})})
    await send({"type": "http.response.body", "body": encode_events(frames)})


def _caller(scope: Scope) -> Caller:
    caller = caller_of(scope)
    return replace(caller, client=on_messages(caller.client))


def _headers(scope: Scope) -> Mapping[str, str]:
    return {name: header(scope, name.encode()) for name in (VERSION, SESSION)}


def _estimate(plan: Plan) -> int:
    return plan.size // 4 if plan.size else likely_tokens(plan.body)


def _worded(error: IsthmusError, plan: Plan | None = None) -> IsthmusError:
    """As this API has it: a model that is not there is a 404, and what is too long says so in its own words."""
    if isinstance(error, RequestRefused) and error.code in _NO_MODEL:
        return RequestRefused(error.message, code="model_not_found", param=error.param)
    return say_too_long(error, plan)


def _renamed(frame: JsonObject, asked: MessagesRequest) -> JsonObject:
    """Diagnostics speak of the request's own fields."""
    told = frame.get("isthmus")
    if told:
        diagnostics = [{**said, "path": asked.path(said["path"])} for said in told["diagnostics"]]
        return {**frame, "isthmus": {**told, "diagnostics": diagnostics}}
    return frame


def _failure(response: FinishedResponse) -> UpstreamFailed:
    error = response["error"] or {"code": "server_error", "message": "the response was cancelled"}
    return UpstreamFailed(error["message"], code=error["code"])
