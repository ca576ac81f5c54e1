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
Output = str | list[JsonObject]
"""What the model is told: words, or parts (`input_text`, `input_image`)."""


class Listing(msgspec.Struct, frozen=True):
    """The tools of one MCP server, as it listed them."""

    tools: tuple[JsonObject, ...] = ()
    """Those that may be called, each with `name`, `input_schema` and, where given, `description` and `annotations`."""
    error: JsonObject | None = None
    """Why there are none."""
    known: bool = False
    """Whether the conversation holds the list already: then it is not told again."""
    later: bool = False
    """Whether nobody has asked the server yet, because nothing is sent: a plan is only looked at."""
    asks: frozenset[str] = frozenset()
    """Names of the tools that are called only after the user has approved it."""
    own: bool = False
    """Whether the server is the host's own: then it is called from here, whatever the provider can do."""


class Managed(msgspec.Struct, frozen=True):
    """What the host runs for this request. An empty word: nobody runs it here."""

    search: str = ""
    """Who searches the web, in a word for diagnostics (`searxng`)."""
    pages: bool = False
    """Whether the search also opens pages."""
    offline: bool = False
    """Whether it has something to say where the client keeps it off the live web (`external_web_access: false`)."""
    unheard: frozenset[str] = frozenset()
    """Options of the client's search tool that it cannot take into account (`user_location`)."""
    images: str = ""
    """Who makes images."""
    edits: int = 0
    """How many of the conversation can be changed together; 0: none can."""
    lost: tuple[str, ...] = ()
    """Options of the request's `image_generation` that are not had as they were asked for."""
    mcp: Mapping[str, Listing] = {}
    """By label: servers of the request's `mcp` tools that may be called from here."""
    native: frozenset[str] = frozenset()
    """Kinds that the provider runs itself, whoever of several is asked: these need not be looked for here."""
    prefers: frozenset[ManagedKind] = frozenset()
    """Kinds that run here even where the provider has a tool of its own."""
    denied: Mapping[str, str] = {}
    """What whoever asks may not have run (`web_search`, `mcp:LABEL`), with the reason."""


NOTHING_MANAGED: Final = Managed()
PICTURES: Final = "conversation_images"
"""Under this name the images of the conversation stand in `ManagedCall.tool`."""


class ManagedCall(msgspec.Struct, frozen=True):
    """One call for the host to carry out."""

    id: str
    """Of its item."""
    kind: ManagedKind
    name: str
    """The tool's name on its MCP server; else the kind."""
    arguments: JsonObject
    """Of a search `query` and, where there are more, `queries`; or `url` and `pattern` of a page. Of an image `prompt`.
    Of an MCP tool what its own schema asks for."""
    tool: JsonObject
    """The client's own declaration: filters, location, server, credentials."""


class Ran(msgspec.Struct, frozen=True):
    """What came of a call. One that failed has a result, too: the model reads why."""

    output: Output
    fields: Mapping[str, Any] = {}
    """Of the item at its end: `action`, `output`, `error`, `result` …"""
    failed: bool = False
    sources: tuple[JsonObject, ...] = ()
    """Pages that were found, each with `url` and `title`: what citations may point to."""
    usage: Mapping[str, Any] = {}
    """What it cost, as the Response's `tool_usage` tells it of its kind (`num_requests`; tokens of an image)."""


class ToolLimits(msgspec.Struct, frozen=True):
    """How much of one response the tools that run here may take."""

    rounds: int = 16
    """How often the model is asked again with their results; after that it has to answer without them."""
    parallel: int = 4
    """Calls of one reply that run at the same time."""
    timeout: float = 60.0
    """Seconds for one call."""
    result: int = 200_000
    """Characters of one result that the model reads."""


DEFAULT_TOOL_LIMITS: Final = ToolLimits()
