"""What it takes to make a background response again, should its gateway die before anything of it was told.

In: a request as it was taken. Out: a memo for the store, and from the stored response the same request. Its input is
stored with the response anyway and is not kept twice. A request with credentials of somebody else is not noted at all:
they must not be stored, and without them it would be another request.
"""

from __future__ import annotations

import zlib
from typing import Any, Final, cast

import msgspec

from isthmus.bridge.limits import OWN_LIMITS
from isthmus.bridge.parse import Request, parse_request
from isthmus.bridge.tools.credentials import showable_body, showable_item
from isthmus.bridge.types.plan import ANY_CLIENT, CODEX
from isthmus.gateway.caller import Caller
from isthmus.ports import StoredResponse
from isthmus.ports.keys import EVERYTHING, Grant

_CLIENTS: Final = {client.name: client for client in (ANY_CLIENT, CODEX)}
_decode_item: Final = msgspec.json.Decoder().decode


class _Memo(msgspec.Struct, frozen=True):
    body: dict[str, Any]
    strict: bool | None
    client: str
    key: str = ""
    team: str = ""
    grant: Grant = EVERYTHING
    """As it was then: whoever pays is who asked."""


class Asked(msgspec.Struct, frozen=True):
    """A request with those who asked it."""

    caller: Caller
    request: Request
    strict: bool | None


_decode: Final = msgspec.json.Decoder(_Memo).decode
_encode: Final = msgspec.json.Encoder().encode


def note(asked: Asked) -> bytes:
    """Empty: this request cannot be made again."""
    body = cast(dict[str, Any], asked.request.body)
    if showable_body(body) != body or any(showable_item(item) != item for item in asked.request.items):
        return b""
    rest = {name: value for name, value in body.items() if name != "input"}
    caller = asked.caller
    memo = _Memo(rest, asked.strict, caller.client.name, caller.key, caller.team, caller.grant)
    return zlib.compress(_encode(memo), level=1)


def recall(record: StoredResponse) -> Asked | None:
    """What was asked for; `None`: it was not noted."""
    if not record.memo:
        return None
    memo = _decode(zlib.decompress(record.memo))
    request = parse_request({**memo.body, "input": [_decode_item(item) for item in record.input]}, OWN_LIMITS)
    client = _CLIENTS.get(memo.client, ANY_CLIENT)
    caller = Caller(record.owner, key=memo.key, team=memo.team, grant=memo.grant, client=client)
    return Asked(caller, request, memo.strict)
