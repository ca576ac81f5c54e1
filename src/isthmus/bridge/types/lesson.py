"""What a server taught us about one model: a field of our requests that it refused by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lesson:
    provider: str
    model: str
    parameter: str
    """The upstream field: `tool_choice`, `parallel_tool_calls` or `response_format`."""
    value: str = ""
    """The kind of value that was refused (`required`, `json_schema` …), where the field has kinds."""
    learned_at: float = 0.0
