"""Who is calling: found out once for each request, before anything else is done."""

from __future__ import annotations

from dataclasses import replace

from starlette.types import Scope

from isthmus.bridge.doors.clients import recognise_client
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.server.http import header


def identify(scope: Scope) -> Caller:
    """The caller of this request."""
    client = recognise_client(originator=header(scope, b"originator"), user_agent=header(scope, b"user-agent"))
    return replace(LOCAL, client=client)


def caller_of(scope: Scope) -> Caller:
    """Whom `identify` found."""
    caller: Caller = scope["isthmus.caller"]
    return caller
