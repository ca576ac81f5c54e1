"""What Codex makes of our failures differs from other clients: here they are told so that it does the right thing.

Observed with the real binary: it repeats a POST up to 30 times over 25 seconds for any 5xx, six times for a 404,
never for a 400; it understands `context_length_exceeded` only inside a stream, not as a status; and it
keeps every item that was closed, so that after a broken stream it would send half an answer back as a whole one.
"""

from __future__ import annotations

from typing import Final

from starlette.types import Scope

from isthmus.bridge.assemble.emitter import Event
from isthmus.errors import RequestRefused, UpstreamFailed
from isthmus.server.http import header

_FINAL: Final = frozenset({"upstream_unauthorized", "model_not_found"})
"""Failures that no repetition cures: somebody has to change the configuration."""


def is_codex(scope: Scope) -> bool:
    return header(scope, b"originator").startswith("codex") or header(scope, b"user-agent").startswith("codex")


def leave_open(events: list[Event]) -> list[Event]:
    """The last events of a failed stream without those that close what was cut: Codex asks again from before it."""
    if not events or events[-1]["type"] != "response.failed":
        return events
    return [event for event in events if not event["type"].endswith(".done")]


def belongs_in_stream(failure: UpstreamFailed) -> bool:
    return failure.code == "context_length_exceeded"


def without_retries(failure: UpstreamFailed) -> UpstreamFailed | RequestRefused:
    """The same words under a status that is not tried again, where trying again is useless."""
    if failure.code not in _FINAL:
        return failure
    # The one code whose message Codex shows as it is, without the JSON around it.
    return RequestRefused(failure.message, code="invalid_prompt", metadata=failure.metadata)
