"""What it takes to make a background response again, should its gateway die before anything of it was told.

In: a request as it was taken. Out: a memo for the store, and from the stored response the same request. Its input is
stored with the response anyway and is not kept twice. A request with credentials of somebody else is not noted at all:
they must not be stored, and without them it would be another request.
"""

from __future__ import annotations

import zlib
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from isthmus.bridge.limits import OWN_LIMITS
from isthmus.bridge.parse import Request, parse_request
from isthmus.bridge.tools.credentials import showable_body, showable_item
from isthmus.bridge.types.clients import ANY_CLIENT, KNOWN_CLIENTS
from isthmus.gateway.caller import Caller
from isthmus.ports import StoredResponse
from isthmus.ports.keys import EVERYTHING, Grant

_decode_item: Final = msgspec.json.Decoder().decode


class _Memo(msgspec.Struct, frozen=True):
    body: dict[str, Any]
    strict: bool | None
    client: str
    key: str = ""
    team: str = ""
    name: str = ""
    grant: Grant = EVERYTHING
    team_models: tuple[str, ...] = ()
    summaries: bool | None = None
    """Whether thinking is told as a summary unasked; `None`: as its client is known to want it."""


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
    whose = (caller.key, caller.team, caller.name, caller.grant, caller.team_models, caller.client.reads_summaries)
    return zlib.compress(_encode(_Memo(rest, asked.strict, caller.client.name, *whose)), level=1)


def recall(record: StoredResponse) -> Asked | None:
    """What was asked for; `None`: it was not noted."""
    if not record.memo:
        return None
    memo = _decode(zlib.decompress(record.memo))
    request = parse_request({**memo.body, "input": [_decode_item(item) for item in record.input]}, OWN_LIMITS)
    client = KNOWN_CLIENTS.get(memo.client, ANY_CLIENT)
    if memo.summaries not in (None, client.reads_summaries):
        client = replace(client, reads_summaries=memo.summaries)
    caller = Caller(
        record.owner,
        memo.key,
        team=memo.team,
        grant=memo.grant,
        name=memo.name,
        team_models=memo.team_models,
        client=client,
    )
    return Asked(caller, request, memo.strict)
