"""A gateway whose hosted tools are scripted, at an upstream that speaks any of three dialects.

with tools_here("messages", search=…) as scene: ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from isthmus.bridge.types.managed import Listing, ManagedCall, Ran, ToolLimits
from isthmus.conduct.hosted import Hosted
from isthmus.testing import ScriptedTool, ScriptedUpstream, Step, chat
from one_provider import one_provider
from serving import GatewayThread
from speaking_messages import called, claude, said
from speaking_responses import native
from talking import Talk

Json = dict[str, Any]
DIALECTS = ("chat", "responses", "messages")
SEARCH: Json = {"type": "web_search"}
DOCS: Json = {
    "type": "mcp",
    "server_label": "docs",
    "server_url": "https://docs.example/mcp",
    "require_approval": "never",
}
PAINT: Json = {"type": "image_generation"}
MINE: Json = {"type": "function", "name": "mine", "parameters": {"type": "object", "properties": {}}}
TOOLS: list[Json] = [SEARCH, DOCS, PAINT, MINE]
ASK: Json = {"name": "ask", "description": "Ask.", "input_schema": {"type": "object", "properties": {"q": {}}}}
OTTERS = {"url": "https://otters.example/", "title": "Otters"}


def found(call: ManagedCall) -> Ran:
    """What the scripted tools find, unless a test says otherwise."""
    match call.kind:
        case "web_search":
            return Ran(f"Found {call.arguments['query']}: {OTTERS['url']}", sources=(dict(OTTERS),))
        case "mcp":
            words = f"docs say {call.arguments}"
            return Ran(words, {"output": words})
    return Ran("The image was made, and the user sees it.", {"result": "aGk="}, usage={"total_tokens": 7})


@dataclass
class Scene:
    dialect: str
    talk: Talk
    server: GatewayThread
    upstream: ScriptedUpstream
    search: ScriptedTool
    docs: ScriptedTool
    images: ScriptedTool

    def calls(self, *calls: tuple[str, Json], text: str | None = None) -> Step:
        """An answer of the upstream that calls these tools."""
        if self.dialect == "messages":
            blocks = [said(text)] if text else []
            return claude(*blocks, *(called(f"toolu_{n}", name, **given) for n, (name, given) in enumerate(calls)))
        made = [(f"call_{n}", name, given) for n, (name, given) in enumerate(calls)]
        return (chat if self.dialect == "chat" else native)(text, calls=made)

    def says(self, text: str) -> Step:
        if self.dialect == "messages":
            return claude(said(text))
        return (chat if self.dialect == "chat" else native)(text)

    def script(self, *steps: Step) -> None:
        self.upstream.push(*steps)

    @property
    def sent(self) -> list[Json]:
        return [request.json for request in self.upstream.requests]

    def results(self, body: Json) -> list[tuple[str, str]]:
        """Name and result of every call that the upstream was told of, in order."""
        names: dict[str, str] = {}
        told: list[tuple[str, str]] = []
        if self.dialect == "chat":
            for message in body["messages"]:
                names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
                if message["role"] == "tool":
                    told.append((names[message["tool_call_id"]], message["content"]))
        elif self.dialect == "responses":
            for item in body["input"]:
                if item["type"] == "function_call":
                    names[item["call_id"]] = item["name"]
                elif item["type"] == "function_call_output":
                    told.append((names[item["call_id"]], item["output"]))
        else:
            for block in (block for message in body["messages"] for block in message["content"]):
                if block["type"] == "tool_use":
                    names[block["id"]] = block["name"]
                elif block["type"] == "tool_result":
                    told.append((names[block["tool_use_id"]], block["content"]))
        return told

    def prefix(self, body: Json) -> bytes:
        """What a provider's cache goes by."""
        return msgspec.json.encode(body["input" if self.dialect == "responses" else "messages"])[:-1]


@contextmanager
def tools_here(
    dialect: str = "chat",
    *,
    search: Any = None,
    docs: Any = None,
    images: Any = None,
    listing: Listing | None = None,
    limits: ToolLimits | None = None,
    tools: Sequence[ScriptedTool] | None = None,
) -> Iterator[Scene]:
    def answer(given: Any) -> Any:
        return given if given is not None else lambda call, tell: found(call)

    listing = listing or Listing((ASK,), known=True)
    # OpenAI's own Responses endpoint has all of these tools itself: there they run here because the operator says so.
    prefers = frozenset({"web_search", "mcp", "image_generation"}) if dialect == "responses" else frozenset()
    made = [
        ScriptedTool("web_search", answer(search), search="scripted", prefers=prefers),
        ScriptedTool("mcp", answer(docs), mcp={"docs": listing}, prefers=prefers),
        ScriptedTool("image_generation", answer(images), images="scripted", prefers=prefers),
    ]
    uses = "openai" if dialect == "responses" else "openai-compatible"
    settings = f'api_key = "sk-up"\nretries = 0\ndialect = "{dialect}"'
    with ScriptedUpstream.running() as upstream, one_provider(upstream, settings, uses=uses) as (talk, server):
        server.gateway.hosted = Hosted(made if tools is None else tools, limits or ToolLimits())
        if limits is not None:
            server.gateway.settings = replace(server.gateway.settings, tools=limits)
        yield Scene(dialect, talk, server, upstream, *made)
        upstream.check()
