"""What was found: one fact about one part, how bad it is, and what to do next.

The names of the areas and checks, and what stands in `facts`, are what programs read: `--json` shows them as they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["ok", "warning", "problem", "skipped"]
"""A warning is worth knowing, and everything works; a problem keeps something from working. What was skipped was not
looked at, because nobody was to be asked."""


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    """Its name for programs: `file`, `port`; of several of a kind, the facts tell which."""
    state: State
    told: str
    """For people, with backticks around code."""
    remedy: str = ""
    """What to do next; empty: nothing."""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Area:
    """A part that is looked at by itself, beside all others."""

    name: str
    look: Callable[[], Sequence[Finding] | Awaitable[Sequence[Finding]]]
    """A plain function runs in a thread of its own."""


@dataclass(frozen=True, slots=True)
class Looked:
    area: str
    findings: Sequence[Finding]
    seconds: float
