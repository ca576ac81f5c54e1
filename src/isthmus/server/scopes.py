"""Which doors a key opens: every route belongs to an endpoint, is the operator's alone, or is open to every key."""

from __future__ import annotations

from typing import Final

from starlette.types import Scope

from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.server.callers import ADMIN, caller_of
from isthmus.server.options import ServerOptions

OPEN: Final = "open"
OPERATOR: Final = "operator"


def check_endpoint(scope: Scope, endpoint: str, options: ServerOptions) -> None:
    """Refuses whoever may not come in at this door."""
    if endpoint == OPERATOR:
        if not is_operator(scope, options):
            words = (
                "this is for operators: show the key `server.admin_key`, or one that was made with `--admin`; or ask "
                "on the gateway's own machine, where it asks for no key"
            )
            raise RequestRefused(words, code="operator_only")
    elif not opens(caller := caller_of(scope), endpoint):
        raise not_opened(caller, endpoint)


def opens(caller: Caller, endpoint: str) -> bool:
    grant = caller.grant
    return not grant.endpoints or endpoint == OPEN or endpoint in grant.endpoints or grant.admin


def not_opened(caller: Caller, endpoint: str) -> RequestRefused:
    listed = ", ".join(f"`{each}`" for each in sorted(caller.grant.endpoints))
    return RequestRefused(
        f"the key `{caller.name}` (`{caller.key}`) does not open `{endpoint}`: it opens {listed}; ask whoever gave you "
        "the key",
        code="not_allowed",
    )


def is_operator(scope: Scope, options: ServerOptions) -> bool:
    """Who shows an operator's key; and whoever is there, on a machine of its own where nobody is asked for one."""
    alone = options.local_only and not options.keys.needed
    return alone or caller_of(scope).scopes >= ADMIN
