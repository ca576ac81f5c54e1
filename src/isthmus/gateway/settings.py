"""What a gateway is told to do, apart from whom it serves and where it keeps things."""

from __future__ import annotations

from dataclasses import dataclass

from isthmus.bridge.bounds import DEFAULT_BOUNDS, Bounds
from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits
from isthmus.bridge.types.managed import DEFAULT_TOOL_LIMITS, ToolLimits
from isthmus.gateway.runs import DEFAULT_RUNS, RunLimits


@dataclass(frozen=True, slots=True)
class Settings:
    strict: bool = False
    repair_budget: int = 1
    max_chain: int = 10_000
    envelope_key: bytes | None = None
    bounds: Bounds = DEFAULT_BOUNDS
    limits: RequestLimits = DEFAULT_LIMITS
    keep_lessons: float = 604_800.0
    refresh_words: float = 3_600.0
    keep_named: float = 86_400.0
    runs: RunLimits = DEFAULT_RUNS
    tools: ToolLimits = DEFAULT_TOOL_LIMITS
