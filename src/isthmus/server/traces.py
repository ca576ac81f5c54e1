"""`/v1/isthmus/traces`: what happened to requests, for their owners; all of it, and what is captured, for the operator.

The operator is whoever shows the admin key, or anybody on this machine where no keys are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from starlette.types import Receive, Scope, Send

from isthmus.bridge.limits import RequestLimits
from isthmus.bridge.parse import decode_json
from isthmus.errors import RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.ports.traces import Grouping, Spread, TraceFilter, TraceTotal, Tracing
from isthmus.protocol.json import JsonObject
from isthmus.server.bodies import body_of
from isthmus.server.callers import caller_of
from isthmus.server.deeds import note_deed
from isthmus.server.http import send_bytes, send_json
from isthmus.server.lists import asked_order
from isthmus.server.options import ServerOptions, query, whole_number
from isthmus.server.scopes import is_operator
from isthmus.server.switches import CAPTURE

LONGEST_CAPTURE: Final = 86_400
"""Seconds for which everything may be captured before somebody has to ask again."""
GROUPINGS: Final = ("provider", "model", "key", "client", "door", "outcome", "code", "time")
TEXTS: Final = ("provider", "model", "outcome", "code", "door", "key", "client", "thread")
_LONGEST_TEXT: Final = 512
_encode: Final = msgspec.json.Encoder().encode


class TracesApi:
    def __init__(self, gateway: Gateway, options: ServerOptions) -> None:
        self._gateway = gateway
        self._options = options

    async def list(self, scope: Scope, receive: Receive, send: Send) -> None:
        tracing, asked = self._tracing(), query(scope)
        given = asked.get("after")
        after = None if given is None else whole_number(asked, "after", default=0, low=0)
        limit = whole_number(asked, "limit", default=50, low=1, high=500)
        filter, order = read_filter(asked), asked_order(asked, "desc")
        await tracing.settle()
        page = await tracing.store.list(self._owner(scope), filter, limit=limit, after=after, order=order)
        last = page.traces[-1].seq if page.traces else None
        await send_json(send, 200, {"object": "list", "data": page.traces, "last": last, "has_more": page.has_more})

    async def retrieve(self, scope: Scope, receive: Receive, send: Send) -> None:
        tracing, id = self._tracing(), scope["path_params"]["id"]
        await tracing.settle()
        found = await tracing.store.find(self._owner(scope), id)
        if found is None:
            raise _not_found(id)
        await send_bytes(send, 200, _encode(found))

    async def conversation(self, scope: Scope, receive: Receive, send: Send) -> None:
        """All turns of the conversation that a request belongs to, oldest first."""
        tracing, id = self._tracing(), scope["path_params"]["id"]
        limit = whole_number(query(scope), "limit", default=100, low=1, high=1000)
        await tracing.settle()
        found = await tracing.store.walk(self._owner(scope), id, most=limit)
        if not found:
            raise _not_found(id)
        await send_json(send, 200, {"object": "list", "data": found})

    async def totals(self, scope: Scope, receive: Receive, send: Send) -> None:
        tracing, asked = self._tracing(), query(scope)
        by = asked.get("by", "")
        if by and by not in GROUPINGS:
            words = f"`by` must be one of {', '.join(f'`{name}`' for name in GROUPINGS)}"
            raise RequestRefused(words, code="invalid_value", param="by")
        step = whole_number(asked, "step", default=3600, low=300, high=86_400 * 366)
        limit = whole_number(asked, "limit", default=100, low=1, high=1000)
        filter = read_filter(asked)
        await tracing.settle()
        found = await tracing.store.totals(self._owner(scope), filter, by=cast(Grouping, by), step=step, most=limit)
        await send_json(send, 200, {"object": "list", "by": by, "data": [_total(each) for each in found]})

    async def capturing(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, self._tracing().capturing())

    async def capture(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked, tracing = await self._gateway.read(body_of(scope), _read_capture), self._tracing()
        whose = asked["owner"] or asked["key"]
        await note_deed(scope, self._gateway, self._options, CAPTURE, whose, details=asked)
        await send_json(send, 200, tracing.capture_all(**asked))

    def _tracing(self) -> Tracing:
        tracing = self._gateway.tracing
        if tracing is None:
            words = 'there are no traces: `trace.capture` is `"off"`; set it to `"metadata"` and start again'
            raise RequestRefused(words, code="traces_off")
        return tracing

    def _owner(self, scope: Scope) -> str | None:
        return None if is_operator(scope, self._options) else caller_of(scope).owner


def read_filter(asked: Mapping[str, str]) -> TraceFilter:
    """What a query string looks for."""
    texts = {name: asked[name] for name in TEXTS if asked.get(name)}
    for name, text in texts.items():
        if len(text) > _LONGEST_TEXT:
            words = f"`{name}` has at most {_LONGEST_TEXT} characters"
            raise RequestRefused(words, code="invalid_value", param=name)
    changed = asked.get("changed")
    if changed not in (None, "true", "false"):
        raise RequestRefused("`changed` must be `true` or `false`", code="invalid_value", param="changed")
    return TraceFilter(
        **texts,
        since=_moment(asked, "since"),
        until=_moment(asked, "until"),
        changed=None if changed is None else changed == "true",
    )


def _moment(asked: Mapping[str, str], name: str) -> float | None:
    given = asked.get(name)
    if given is None:
        return None
    try:
        moment = float(given)
    except ValueError:
        moment = math.nan
    if not 0 <= moment < 1e12:
        words = f"`{name}` must be a number of seconds since 1970"
        raise RequestRefused(words, code="invalid_value", param=name)
    return moment


class _Capture(msgspec.Struct, forbid_unknown_fields=True):
    seconds: float
    owner: str = ""
    key: str = ""


def _read_capture(raw: bytes | bytearray, limits: RequestLimits) -> dict[str, Any]:
    try:
        asked = msgspec.convert(decode_json(raw, limits), _Capture)
    except msgspec.ValidationError as error:
        words = f'{error}; send `{{"seconds": 600}}`, with `owner` or `key` for one of them only'
        raise RequestRefused(words, code="invalid_type") from error
    if not 0 <= asked.seconds <= LONGEST_CAPTURE:
        words = f"`seconds` must be from 0 to {LONGEST_CAPTURE}"
        raise RequestRefused(words, code="invalid_value", param="seconds")
    return {"seconds": asked.seconds, "owner": asked.owner, "key": asked.key}


def _total(total: TraceTotal) -> JsonObject:
    told: JsonObject = msgspec.to_builtins(total)
    return {**told, "total": _spread(total.total), "first_token": _spread(total.first_token)}


def _spread(spread: Spread) -> JsonObject:
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    return {**{name: spread.percentile(share) for name, share in shares.items()}, "steps": spread.steps}


def _not_found(id: str) -> RequestRefused:
    return RequestRefused(f"no trace of `{id}` is kept here", code="trace_not_found")
