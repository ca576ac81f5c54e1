"""How a client is told what a model thinks: as it is, or as a summary, which is all that some of them read.

`server.thinking` says it for everybody, the header `Isthmus-Thinking` for one request; `auto` goes by the client
(`bridge/types/clients.py`, and `server.summary_readers`). A request that asks for summaries itself always gets them,
and Codex, which does, is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from starlette.types import Scope

from isthmus.bridge.types.clients import CODEX
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.server.http import header

WAYS: Final = ("auto", "text", "summary")


def shown_to(caller: Caller, scope: Scope, setting: str, readers: Sequence[str]) -> Caller:
    """The caller, with what is known of how it reads thoughts. `readers`: more user agents that read only summaries."""
    asked = header(scope, b"isthmus-thinking").strip().lower() or setting
    client = caller.client
    match asked:
        case "auto":
            agent = header(scope, b"user-agent") if readers else ""
            summaries = client.reads_summaries or any(words in agent for words in readers)
        case "text" | "summary":
            summaries = asked == "summary"
        case _:
            words = f"header `Isthmus-Thinking` must be {' or '.join(f'`{way}`' for way in WAYS)}"
            raise RequestRefused(words, code="invalid_value", param="Isthmus-Thinking")
    if summaries == client.reads_summaries or client is CODEX:
        return caller
    return replace(caller, client=replace(client, reads_summaries=summaries))
