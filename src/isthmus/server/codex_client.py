"""What Codex makes of our failures differs from other clients: here they are told so that it does the right thing.

Observed with the real binary: it repeats a POST up to 30 times over 25 seconds for any 5xx, six times for a 404,
never for a 400; and it understands `context_length_exceeded` only inside a stream, not as a status. What it is told
differently inside a stream is decided in the plan (`ClientProfile`).
"""

from __future__ import annotations

from typing import Final

from isthmus.errors import RequestRefused, UpstreamFailed

_FINAL: Final = frozenset({"upstream_unauthorized", "model_not_found"})
"""Failures that no repetition cures: somebody has to change the configuration."""


def belongs_in_stream(failure: UpstreamFailed) -> bool:
    return failure.code == "context_length_exceeded"


def without_retries(failure: UpstreamFailed) -> UpstreamFailed | RequestRefused:
    """The same words under a status that is not tried again, where trying again is useless."""
    if failure.code not in _FINAL:
        return failure
    # The one code whose message Codex shows as it is, without the JSON around it.
    return RequestRefused(failure.message, code="invalid_prompt", metadata=failure.metadata)
