"""What goes along with a request to an upstream besides the request itself: the trace that it is sent in."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

OUTGOING: Final[ContextVar[str]] = ContextVar("isthmus.traceparent", default="")
"""The `traceparent` for whoever is asked next in this task; empty: none. Set by whoever makes spans, when it hears that
something is sent."""
