"""What Codex makes of our failures differs from other clients: here they are told so that it does the right thing.

Observed with the real binary: it repeats a POST up to 30 times over 25 seconds for any 5xx, six times for a 404,
never for a 400; after a stream that failed it asks five times more, unless the code is one of four that it takes as
final (`invalid_prompt` among them); it understands `context_length_exceeded` only inside a stream, not as a status;
and it keeps every item that was closed, so that after a broken stream it would send half an answer back as a whole
one.
"""

from __future__ import annotations

from starlette.types import Scope

from isthmus.bridge.assemble.emitter import Event
from isthmus.errors import FAILURES, RequestRefused, UpstreamFailed
from isthmus.server.http import header

_REFUSED = "invalid_prompt"
"""The one code that Codex takes as final, and whose message it shows as it is, without the JSON around it."""


def is_codex(scope: Scope) -> bool:
    return header(scope, b"originator").startswith("codex") or header(scope, b"user-agent").startswith("codex")


def leave_open(events: list[Event]) -> list[Event]:
    """The last events of a failed stream without those that close what was cut: Codex asks again from before it."""
    if not events or events[-1]["type"] != "response.failed":
        return events
    return [event for event in events if not event["type"].endswith(".done")]


def end_for_good(events: list[Event]) -> list[Event]:
    """A failed stream whose failure no repetition cures, under a code that Codex does not answer with five more."""
    if not events or events[-1]["type"] != "response.failed":
        return events
    response = events[-1]["response"]
    error = response.get("error") or {}
    if not _as_refusal(error.get("code")):
        return events
    return [*events[:-1], {**events[-1], "response": {**response, "error": {**error, "code": _REFUSED}}}]


def belongs_in_stream(failure: UpstreamFailed) -> bool:
    return failure.meaning.codex == "in the stream"


def without_retries(failure: UpstreamFailed) -> UpstreamFailed | RequestRefused:
    """The same words under a status that is not tried again, where trying again is useless."""
    if not _as_refusal(failure.code):
        return failure
    return RequestRefused(failure.message, code=_REFUSED, metadata=failure.metadata)


def _as_refusal(code: str | None) -> bool:
    known = FAILURES.get(code or "")
    return known is not None and known.codex == "as a refusal"
