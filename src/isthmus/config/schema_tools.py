"""What a configuration may say of tools that run here."""

from __future__ import annotations

from isthmus.bridge.types.managed import DEFAULT_TOOL_LIMITS
from isthmus.config.section import Count, Section, Timeout


class Tools(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much of one response the tools that run here may take."""

    max_rounds: Count = DEFAULT_TOOL_LIMITS.rounds
    """How often the model is asked again with what they found; after that it has to answer without them."""
    max_parallel: Count = DEFAULT_TOOL_LIMITS.parallel
    """Calls of one answer that run at the same time; more wait."""
    timeout: Timeout = DEFAULT_TOOL_LIMITS.timeout
    """How long one call may take; then it has failed, and the model is told so. Of images `images.timeout` says it."""
    max_result: Count = DEFAULT_TOOL_LIMITS.result
    """Most characters of one result that the model reads; a longer one is cut."""
