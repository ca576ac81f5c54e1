"""`/v1/isthmus/keys` and `/v1/isthmus/audit`: what operators do with keys, over HTTP. The route table keeps out whoever
is none."""

from __future__ import annotations

import time
from typing import Any, Final

from starlette.types import Receive, Scope, Send

from isthmus.access.keeper import Keeper, Made
from isthmus.access.told import status_of, tell_deed, tell_key
from isthmus.access.wishes import read_wishes
from isthmus.bridge.limits import RequestLimits
from isthmus.bridge.parse import decode_json
from isthmus.errors import RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.ports.keys import StoredKey
from isthmus.server.bodies import body_of
from isthmus.server.deeds import keeper_for
from isthmus.server.http import send_json
from isthmus.server.options import ServerOptions, query, whole_number

_STATES: Final = ("active", "expired", "revoked")
_SECRET: Final = {"cache-control": "no-store"}
"""Nobody on the way keeps an answer with a key in it."""


class KeysApi:
    def __init__(self, gateway: Gateway, options: ServerOptions) -> None:
        self._gateway = gateway
        self._options = options

    async def list(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked, now = query(scope), time.time()
        limit = whole_number(asked, "limit", default=100, low=1, high=1000)
        status, team, after = asked.get("status"), asked.get("team"), asked.get("after")
        if status is not None and status not in _STATES:
            words = f"`status` must be one of {', '.join(f'`{each}`' for each in _STATES)}"
            raise RequestRefused(words, code="invalid_value", param="status")
        found = await self._keeper(scope).list()
        if after is not None:
            at = next((index for index, key in enumerate(found) if key.id == after), None)
            if at is None:
                words = f"`after` names no key: `{after[:100]}`; use an id from the list"
                raise RequestRefused(words, code="invalid_value", param="after")
            found = found[at + 1 :]
        chosen = [key for key in found if status in (None, status_of(key, now)) and team in (None, key.team)]
        data = [tell_key(key, now) for key in chosen[:limit]]
        await send_json(send, 200, _page(data, has_more=len(chosen) > limit))

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        wishes = read_wishes(await self._gateway.read(body_of(scope), decode_json))
        made = await self._keeper(scope).create(wishes)
        await self._heard()
        await _send_made(send, made)

    async def retrieve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, tell_key(await self._find(scope), time.time()))

    async def update(self, scope: Scope, receive: Receive, send: Send) -> None:
        wishes = read_wishes(await self._gateway.read(body_of(scope), decode_json))
        key = await self._find(scope)
        changed = await self._keeper(scope).change(key.id, wishes)
        await self._heard()
        await send_json(send, 200, tell_key(changed, time.time()))

    async def revoke(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = await self._find(scope)
        if not key.revoked_at:  # asked once more, it is answered as before
            key = await self._keeper(scope).revoke(key.id)
            await self._heard()
        await send_json(send, 200, tell_key(key, time.time()))

    async def rotate(self, scope: Scope, receive: Receive, send: Send) -> None:
        grace = await self._gateway.read(body_of(scope), _read_grace)
        key = await self._find(scope)
        made = await self._keeper(scope).rotate(key.id, grace)
        await self._heard()
        await _send_made(send, made)

    async def audit(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = query(scope)
        limit = whole_number(asked, "limit", default=100, low=1, high=1000)
        before = whole_number(asked, "before", default=0, low=1) or None
        found = await self._gateway.store.deeds(most=limit + 1, before=before)
        data = [tell_deed(deed) for deed in found[:limit]]
        await send_json(send, 200, _page(data, has_more=len(found) > limit))

    async def _find(self, scope: Scope) -> StoredKey:
        """By its id alone: a name may be anybody's next."""
        id = scope["path_params"]["id"]
        for key in await self._gateway.store.keys():
            if key.id == id:
                return key
        raise RequestRefused(f"there is no key `{id[:100]}`; use its id (`key_…`)", code="key_not_found")

    def _keeper(self, scope: Scope) -> Keeper:
        return keeper_for(scope, self._gateway, self._options)

    async def _heard(self) -> None:
        """This process at once, the others within a second."""
        if self._options.keys.book is not None:
            await self._options.keys.book.look()


async def _send_made(send: Send, made: Made) -> None:
    await send_json(send, 200, {**tell_key(made.key, time.time()), "key": made.secret}, _SECRET)


def _page(data: list[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    ids = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return {"object": "list", "data": data, **ids, "has_more": has_more}


def _read_grace(raw: bytes | bytearray, limits: RequestLimits) -> float:
    given = decode_json(raw, limits) if raw else {}
    grace = given.get("grace", 0) if isinstance(given, dict) else None
    if isinstance(grace, bool) or not isinstance(grace, int | float) or set(given) - {"grace"}:
        words = 'send `{"grace": 86400}`: seconds that the key before opens as well'
        raise RequestRefused(words, code="invalid_type", param="grace")
    return float(grace)
