"""What Codex makes of our failures differs from other clients: here they are told so that it does the right thing.

Observed with the real binary: it repeats a POST up to 30 times over 25 seconds for any 5xx, six times for a 404,
never for a 400; and it understands `context_length_exceeded` only inside a stream, not as a status. What it is told
differently inside a stream is decided in the plan (`ClientProfile`).
"""

from __future__ import annotations

from isthmus.bridge.types.clients import CODEX
from isthmus.errors import RequestRefused, UpstreamFailed


def belongs_in_stream(failure: UpstreamFailed) -> bool:
    return failure.meaning.codex == "in the stream"


def without_retries(failure: UpstreamFailed) -> UpstreamFailed | RequestRefused:
    """The same words under a status that is not tried again, where trying again is useless."""
    if failure.meaning.codex != "as a refusal":
        return failure
    return RequestRefused(failure.message, code=CODEX.final_code, metadata=failure.metadata)
