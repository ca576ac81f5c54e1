"""What operators do over HTTP and on the page is noted before it is done: what cannot be noted is not done."""

from __future__ import annotations

from typing import Any

from starlette.types import Scope

from isthmus.access.keeper import Keeper
from isthmus.gateway.gateway import Gateway
from isthmus.ports import LOCAL
from isthmus.server.callers import caller_of
from isthmus.server.exchange import exchange_of
from isthmus.server.options import ServerOptions


def keeper_for(scope: Scope, gateway: Gateway, options: ServerOptions, actor: str | None = None) -> Keeper:
    """Who does it is told with every deed, and in which request; `actor` where that is not who asks."""
    who = caller_of(scope).key or LOCAL if actor is None else actor or LOCAL
    return Keeper(gateway.store, who, about={"request": exchange_of(scope).id}, most=options.audit_entries)


async def note_deed(
    scope: Scope,
    gateway: Gateway,
    options: ServerOptions,
    action: str,
    target: str = "",
    *,
    actor: str | None = None,
    details: dict[str, Any] | None = None,
) -> None:
    """Something that changes no key."""
    told = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in (details or {}).items()}
    await keeper_for(scope, gateway, options, actor).note(action, target, **told)
