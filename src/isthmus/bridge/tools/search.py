"""Tools that the model hears of only when it looks for them: hosted `tool_search`, carried out here.

A tool with `defer_loading` is declared once a search has found it, so that hundreds of tools cost no more than the
few that a turn needs. In: the deferred tools and a call's arguments. Out: those that fit best, in the shape of a
`tool_search_output`. A conversation that holds such an item has its tools loaded (see `catalog`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from isthmus.bridge.tools.shapes import closed, field
from isthmus.bridge.types.tools import CatalogTool, ToolDeclarationPlan
from isthmus.protocol.json import JsonObject

MAX_SEARCHES: Final = 8
"""So often may one response search; after that every tool is declared, and there is nothing left to look for."""
_MAX_FOUND: Final = 20
_FOUND: Final = 8
"""How many tools a search loads, at most and where the model does not say."""
_MAX_LISTED: Final = 100
_MAX_WORDS: Final = 120
"""How many deferred tools and namespaces the model is told of, and how much of each."""

_FILLERS: Final = frozenset({"an", "and", "by", "for", "from", "in", "of", "on", "or", "the", "to", "tool", "with"})
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
PARAMETERS: Final = closed(
    {
        "query": field("string", "What the tool should do, or the name of a tool or group."),
        "limit": field("integer", "How many tools to load.", minimum=1, maximum=_MAX_FOUND),
    }
)


def runs_here(kind: str, tool: JsonObject) -> bool:
    """Whether a tool is a search that the client leaves to the server."""
    return kind == "tool_search" and tool.get("execution") != "client"


def offer_search(search: ToolDeclarationPlan, deferred: Sequence[ToolDeclarationPlan]) -> ToolDeclarationPlan:
    """The function by which the model searches, with a word about what there is to find."""
    own = str(search.source.tool.get("description") or "Load further tools by what they do.")
    about = _about(deferred)
    listed: dict[str, None] = {}
    for tool in (plan.source for plan in deferred):
        # A namespace stands for its tools.
        told = about.get(tool.namespace) if tool.namespace else tool.tool.get("description")
        words = " ".join(str(told or "").split())
        short = words if len(words) <= _MAX_WORDS else f"{words[:_MAX_WORDS]}…"
        listed[f"{tool.namespace or tool.name}: {short}" if short else tool.namespace or tool.name] = None
    lines = [f"- {line}" for line in list(listed)[:_MAX_LISTED]]
    more = [f"- … and {len(listed) - _MAX_LISTED} more"] if len(listed) > _MAX_LISTED else []
    intro = "Tools that are found can be called afterwards. There are, to be loaded:"
    return replace(search, description="\n".join([own, intro, *lines, *more]), parameters=PARAMETERS)


def _about(deferred: Sequence[ToolDeclarationPlan]) -> dict[str | None, str]:
    """A namespace's own words travel with its first tool."""
    tools = [plan.source for plan in deferred]
    return {tool.namespace: tool.namespace_description for tool in tools if tool.namespace_description}


def search_tools(arguments: JsonObject, deferred: Sequence[ToolDeclarationPlan]) -> list[JsonObject]:
    """The tools that fit best, the best first, each in its namespace; never one without a fitting word."""
    limit = arguments.get("limit")
    most = min(max(limit, 1), _MAX_FOUND) if isinstance(limit, int) else _FOUND
    wanted = set(_words(" ".join(_texts({name: value for name, value in arguments.items() if name != "limit"}))))
    tools = [plan.source for plan in deferred]
    fields = [_weigh(tool) for tool in tools]
    rarity = {word: math.log(1 + len(tools) / (1 + sum(word in known for known in fields))) for word in wanted}
    scores = [sum(rarity[word] * known.get(word, 0) for word in wanted) for known in fields]
    best = sorted((index for index, score in enumerate(scores) if score > 0), key=lambda index: (-scores[index], index))
    return _shape([tools[index] for index in best[:most]], _about(deferred))


def _weigh(tool: CatalogTool) -> dict[str, int]:
    """The words by which a tool can be found: its name says most, its parameters least."""
    known: dict[str, int] = {}
    parameters = tool.tool.get("parameters")
    for weight, text in (
        (1, " ".join(_texts(parameters.get("properties"))) if isinstance(parameters, dict) else ""),
        (2, f"{tool.tool.get('description') or ''} {tool.namespace_description}"),
        (4, f"{tool.name} {tool.namespace or ''} {tool.tool.get('server_description') or ''}"),
    ):
        known |= dict.fromkeys(_words(text), weight)
    return known


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _words(text: str) -> Iterator[str]:
    """`listOpenTickets`, `list_open_tickets` and `List open tickets.` are the same words."""
    for word in map(str.casefold, _WORD.findall(text)):
        if word not in _FILLERS and not (len(word) == 1 and word.isascii() and word.isalpha()):
            yield word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _shape(tools: Sequence[CatalogTool], about: dict[str | None, str]) -> list[JsonObject]:
    shaped: list[JsonObject] = []
    spaces: dict[str, JsonObject] = {}
    for tool in tools:
        if tool.namespace is None:
            shaped.append(tool.tool)
            continue
        if tool.namespace not in spaces:
            words = about.get(tool.namespace, "")
            spaces[tool.namespace] = {"type": "namespace", "name": tool.namespace, "description": words, "tools": []}
            shaped.append(spaces[tool.namespace])
        spaces[tool.namespace]["tools"].append(tool.tool)
    return shaped
