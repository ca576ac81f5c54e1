"""Whose spelling a client gets where OpenAI's API and the Open Responses specification differ.

`server.compat` says it for everybody, the header `Isthmus-Compat` for one request. Codex is always spoken to as it
reads: it knows OpenAI's spelling only, whatever others want.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace
from starlette.types import Scope

from isthmus.bridge.types.clients import ANY_CLIENT, CLAUDE_CODE, CODEX, SPECIFIED
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.server.http import header

SPELLINGS: Final = ("openai", "open-responses")


def spelled_for(caller: Caller, scope: Scope, setting: str) -> Caller:
    """The caller, with the spelling that it is to get."""
    asked = header(scope, b"isthmus-compat").strip().lower() or setting
    if asked not in SPELLINGS:
        words = f"header `Isthmus-Compat` must be {' or '.join(f'`{name}`' for name in SPELLINGS)}"
        raise RequestRefused(words, code="invalid_value", param="Isthmus-Compat")
    client = caller.client
    if asked != SPELLINGS[1] or client in (CODEX, CLAUDE_CODE):
        return caller
    return replace(caller, client=SPECIFIED if client is ANY_CLIENT else replace(client, specified=True))
