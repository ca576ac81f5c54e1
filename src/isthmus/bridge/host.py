"""What surrounds the bridge: the planner is told, it never guesses.

A gateway with a store honours `metadata`, `store`, `previous_response_id` and so on by itself; a bare
library call honours none of them. Parameters named in `honours` are kept by the host and not sent
upstream; the other gateway-owned ones are ignored, with a diagnostic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isthmus.bridge.bounds import DEFAULT_BOUNDS, Bounds

GATEWAY_PARAMETERS: Final = (
    "metadata",
    "conversation",
    "background",
    "store",
    "previous_response_id",
    "stream_options",
    "prompt",
    "context_management",
)
"""Parameters that no Chat-Completions provider can carry: they belong to whoever holds the conversation."""


@dataclass(frozen=True, slots=True)
class Host:
    honours: frozenset[str] = frozenset()
    strict: bool = False
    """Strict mode: nothing is degraded or ignored; what cannot be had exactly is rejected."""
    repair_budget: int = 1
    """How often the model may be asked again when its answer breaks a binding output contract."""
    bounds: Bounds = DEFAULT_BOUNDS
    """How large the schemas of a request may be."""


LIBRARY: Final = Host()
