"""One way to answer a request: a plan made for its own target, its turn, and the way to that target."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from isthmus.bridge.turn import Turn
from isthmus.bridge.types.plan import Lesson, Plan
from isthmus.ports import Backend


class Attempt(msgspec.Struct, frozen=True):
    plan: Plan
    turn: Turn
    backend: Backend
    without: Callable[[Lesson], Attempt] | None = None
    """The same way, planned anew without the field that its server has just refused."""
    locate: Callable[[str], str | None] | None = None
    """Where a kind of content (`image` …) stands in the request, for a server that refuses it."""
