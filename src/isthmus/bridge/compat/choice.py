"""What the tool choice means for other fields: is a tool forced, are tools sent at all.

In: a request. Out: facts. The decision on `tool_choice` itself belongs to the tools room.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.bridge.parse import Request
from isthmus.protocol.json import JsonObject

_CARRIERS: Final = ("additional_tools", "tool_search_output")
"""Input items that bring tools with them."""


def choice_needs_thinking_off(
    request: Request, capabilities: ProviderCapabilities, history: Sequence[JsonObject] = ()
) -> bool:
    """Whether thinking must give way to the tools: to a forced choice, or (at some providers) to any tool at all."""
    if not capabilities.reasoning.with_tools and sends_tools(request, history):
        return True
    support = capabilities.tool_choice
    if support.while_thinking is None:
        return False
    forced = _forced_kind(request, capabilities)
    return (
        forced is not None
        and forced not in support.while_thinking
        and forced in support.supported
        and offers_tools(request, history)
    )


def offers_tools(request: Request, history: Sequence[JsonObject] = ()) -> bool:
    """Whether the request declares tools, at the top or inside its input, or an earlier turn did so inside its."""
    if request.body.get("tools"):
        return True
    return any(item["type"] in _CARRIERS and item.get("tools") for item in chain(request.items, history))


def sends_tools(request: Request, history: Sequence[JsonObject] = ()) -> bool:
    """Whether tools will travel: they are offered, and the choice does not shut them all out."""
    match request.body.get("tool_choice"):
        case "none" | {"type": "none"}:
            return False
    return offers_tools(request, history)


def _forced_kind(request: Request, capabilities: ProviderCapabilities) -> str | None:
    """`required`, or the provider's type of the tool that is named; `None` when the model is free."""
    match request.body.get("tool_choice"):
        case "required" | {"type": "required"} | {"type": "allowed_tools", "mode": "required"}:
            return "required"
        case {"type": "auto" | "none" | "allowed_tools"}:
            return None
        case {"type": str(kind)}:
            tools = capabilities.tools
            return kind if kind in tools.native else tools.degraded.get(kind, kind)
        case _:
            return None
