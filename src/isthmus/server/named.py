"""`Idempotency-Key`: what a client that asks again is given back, and what is said where that cannot be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from starlette.types import Scope

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.limits import HEAVY_TEXT
from isthmus.bridge.parse import Request
from isthmus.errors import RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.named import HEADER, Naming
from isthmus.ports import StoredResponse
from isthmus.server.bodies import BODY, Body
from isthmus.server.callers import caller_of
from isthmus.server.http import header

MAX_NAME: Final = 255
AGAIN: Final = {"idempotent-replayed": "true"}
"""Told beside what was made for an earlier request."""
Name = tuple[str, bytes]
"""What a request is called, and a digest of all that it asks for."""


@dataclass(slots=True)
class Asked:
    """A request, with or without a name."""

    noted: Sequence[CompatibilityDecision] = ()
    """What becomes of its name, where nothing does."""
    naming: Naming | None = None

    @property
    def found(self) -> StoredResponse | None:
        """What was made for it before: to be given back."""
        return self.naming.found if self.naming is not None else None

    async def makes(self, id: str) -> None:
        """What it will be stored as."""
        if self.naming is not None:
            await self.naming.makes(id)


async def name_of(scope: Scope, gateway: Gateway) -> Name | None:
    """To be asked before the body is taken."""
    name = header(scope, b"idempotency-key")
    if not name:
        return None
    if len(name) > MAX_NAME or not name.isascii() or not name.isprintable():
        words = f"header `{HEADER}` must be at most {MAX_NAME} printable ASCII characters"
        raise RequestRefused(words, code="invalid_value", param=HEADER)
    asked = sha256(f"{scope['path']}\n{header(scope, b'isthmus-strict')}\n".encode())
    body: Body = scope[BODY]
    await gateway.aside.do(lambda: asked.update(body), heavy=len(body) > HEAVY_TEXT)
    return name, asked.digest()


@asynccontextmanager
async def named(scope: Scope, gateway: Gateway, request: Request, name: Name) -> AsyncIterator[Asked]:
    """Be at a request for as long as it is answered."""
    if why := _ignored(gateway, request):
        yield Asked((CompatibilityDecision(HEADER, "ignored", why),))
    else:
        async with gateway.named.at(caller_of(scope), *name) as naming:
            yield Asked(naming=naming)


def unnamed(scope: Scope) -> tuple[CompatibilityDecision, ...]:
    """What becomes of a name where nothing of an answer is ever stored: it is told that nothing does."""
    if not header(scope, b"idempotency-key"):
        return ()
    why = "nothing of this answer is stored, so there will be nothing to give back"
    return (CompatibilityDecision(HEADER, "ignored", why),)


def _ignored(gateway: Gateway, request: Request) -> str:
    """Why nothing can be given back."""
    if request.body.get("store") is False:
        return "nothing of this answer is stored, so there will be nothing to give back; ask for it with `store: true`"
    return "" if gateway.named.keep else "the operator has switched it off (`store.idempotency`)"
