"""Tools that the host runs itself: what it offers, what one call asks for, and what came of it.

In a plan such a tool is a function like any other; the difference is who answers. A managed call is told to the client
as the item of its kind (`web_search_call`, `mcp_call`, `image_generation_call`), carried out by the host (see
`ports.ToolRunner`), and its result goes back to the model within the same response.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from isthmus.protocol.json import JsonObject

ManagedKind = Literal["web_search", "mcp", "image_generation"]


class Listing(msgspec.Struct, frozen=True):
    """The tools of one MCP server, as it listed them."""

    tools: tuple[JsonObject, ...] = ()
    """Each with `name`, `input_schema` and, where given, `description` and `annotations`."""
    error: JsonObject | None = None
    """Why there are none."""
    known: bool = False
    """Whether the conversation holds the list already: then it is not told again."""


class Managed(msgspec.Struct, frozen=True):
    """What the host runs for this request. An empty word: nobody runs it here."""

    search: str = ""
    """Who searches the web, in a word for diagnostics (`searxng`)."""
    images: str = ""
    """Who makes images."""
    mcp: Mapping[str, Listing] = {}
    """By label: servers of the request's `mcp` tools that may be called from here."""


NOTHING_MANAGED: Final = Managed()


class ManagedCall(msgspec.Struct, frozen=True):
    """One call for the host to carry out."""

    id: str
    """Of its item."""
    kind: ManagedKind
    name: str
    """The tool's name on its MCP server; else the kind."""
    arguments: JsonObject
    tool: JsonObject
    """The client's own declaration: filters, location, server, credentials."""


class Ran(msgspec.Struct, frozen=True):
    """What came of a call. One that failed has a result, too: the model reads why."""

    output: str | list[JsonObject]
    """What the model is told: words, or parts (`input_text`, `input_image`)."""
    fields: Mapping[str, Any] = {}
    """Of the item at its end: `action`, `output`, `error`, `result` …"""
    failed: bool = False
    sources: tuple[JsonObject, ...] = ()
    """Pages that were found, each with `url` and `title`: what citations may point to."""
