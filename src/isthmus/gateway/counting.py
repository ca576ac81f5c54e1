"""A request that is only counted: whole, however small its model's window is, and whatever it leaves out.

In: a request, its target. Out: the same, so that planning it neither shortens nor refuses what is to be counted. Who
asks for a count wants to know whether it fits; that it does not is an answer, and no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from isthmus.bridge.parse import Request
from isthmus.bridge.types.plan import Target
from isthmus.protocol.json import JsonObject

_SHORTENS: Final = ("truncation", "context_management")
_NOTHING: Final[JsonObject] = {"type": "message", "role": "user", "content": "."}


def countable(request: Request, history: Sequence[JsonObject]) -> Request:
    """Without what would shorten it; where it says nothing yet (every field may be missing), with the least there is:
    tools and instructions are counted, too."""
    kept: Any = {name: value for name, value in request.body.items() if name not in _SHORTENS}
    items = request.items or (() if history else (_NOTHING,))
    return replace(request, body=kept, items=items)


def without_window(target: Target) -> Target:
    facts = target.capabilities
    limits = replace(facts.limits, context=None)
    return replace(target, capabilities=replace(facts, limits=limits))
