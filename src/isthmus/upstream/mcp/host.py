"""MCP servers for a gateway's clients: their tools listed for a plan, their calls carried out.

In: the operator's rules and their connections; of a request its `mcp` tools, and who asks. Out: a `Listing` for each
label, and a `ToolRunner`. Worth knowing: what a conversation says of a server's tools spares the question, but it lets
nobody in: when a call is made, the server's own list and both sides' rules are asked again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

from isthmus.bridge.tools.credentials import is_stripped, tool_secrets
from isthmus.bridge.tools.mcp_rules import (
    McpRule,
    depends_on_hints,
    find_asking,
    find_rule,
    known_tools,
    narrow_tools,
    read_credentials,
)
from isthmus.bridge.types.managed import Listing, Managed
from isthmus.errors import RequestRefused
from isthmus.log import tell
from isthmus.ports import Behalf
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrub, Scrubber, Secret, header_secrets
from isthmus.upstream.mcp.results import INVALID, list_tools, shape_error, too_late
from isthmus.upstream.mcp.runner import McpRunner
from isthmus.upstream.mcp.sessions import DEFAULT_BOUNDS, Bounds, Place, Sessions
from isthmus.upstream.reach import reach

log: Final = logging.getLogger("isthmus.mcp")


@dataclass(frozen=True, slots=True)
class Server:
    """What the configuration says of one entry of `[mcp]`."""

    rule: McpRule
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 60.0
    """Seconds of silence, until the tools are listed and in a call."""
    bounds: Bounds = DEFAULT_BOUNDS


@dataclass(frozen=True, slots=True)
class Found:
    """A server that is let in."""

    rule: McpRule
    server: Server
    place: Place
    scrub: Scrub = field(repr=False)


class McpHost:
    def __init__(self, servers: Mapping[str, Server], sessions: Sessions, secrets: Sequence[Secret] = ()) -> None:
        """`secrets`: those of the configuration."""
        self.sessions = sessions
        self._servers = servers
        self._rules = {name: server.rule for name, server in servers.items()}
        self._secrets = tuple(secrets)

    @property
    def labels(self) -> frozenset[str]:
        """Servers of the operator's own."""
        return frozenset(name for name, rule in self._rules.items() if rule.url)

    @property
    def kind(self) -> Literal["mcp"]:
        return "mcp"

    async def offer(
        self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject], owner: str
    ) -> Managed:
        """What may be called, by label; a provider that calls servers itself is left all but the operator's own."""
        asked = {
            label: tool
            for label, tool in _by_label(tools).items()
            if "mcp" not in managed.native or self._is_own(label, tool)
        }
        listings = await asyncio.gather(*(self._list(owner, label, tool, items) for label, tool in asked.items()))
        return msgspec.structs.replace(managed, mcp=dict(zip(asked, listings, strict=True)))

    def foresee(self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject]) -> Managed:
        """Who would be asked, and who would not; a list that the conversation holds is taken as it is."""
        found = {label: self._foresee(label, given, items) for label, given in _by_label(tools).items()}
        return msgspec.structs.replace(managed, mcp=found)

    def _foresee(self, label: str, given: JsonObject, items: Sequence[JsonObject]) -> Listing:
        rule, own, known = find_rule(given, self._rules), self._is_own(label, given), known_tools(items, label)
        if isinstance(rule, str):
            return Listing(error={"type": "mcp_protocol_error", "code": INVALID, "message": rule}, own=own)
        if known is None:
            return Listing(later=True, own=own)
        listing = _narrow(known[: self._servers[rule.name].bounds.max_tools], rule, given)
        return msgspec.structs.replace(listing, known=True, own=own)

    def runner(self, behalf: Behalf) -> McpRunner:
        return McpRunner(self, behalf.owner)

    def find(self, given: JsonObject) -> Found:
        """The rule and the place of a server; raises where nobody lets it in."""
        rule = find_rule(given, self._rules)
        if isinstance(rule, str):
            raise RequestRefused(f"the MCP server `{label_of(given)}` cannot be called: {rule}", param="tools")
        try:
            shown = read_credentials(given, rule)
        except RequestRefused as refused:
            raise _of(refused, given) from None
        server, url = self._servers[rule.name], rule.url or str(given["server_url"])
        headers = {**server.headers, **shown}
        own = tool_secrets([{**given, "type": "mcp", "server_url": url}])
        secrets = (*self._secrets, *header_secrets(headers), *own)
        place = Place(rule.name, label_of(given), url, headers, rule.may_lead_anywhere(url), secrets)
        return Found(rule, server, place, Scrubber(secrets).text)

    async def reach(self, name: str) -> str | None:
        """What keeps us from connecting to the operator's server `name`, in words; `None`: nothing. Nothing is sent."""
        server = self._servers[name]
        return await reach(server.rule.url, server.timeout)

    async def aclose(self) -> None:
        await self.sessions.aclose()

    def _is_own(self, label: str, given: JsonObject) -> bool:
        return label in self.labels and not given.get("server_url")

    async def _list(self, owner: str, label: str, given: JsonObject, items: Sequence[JsonObject]) -> Listing:
        rule, own = find_rule(given, self._rules), self._is_own(label, given)
        if is_stripped(given):
            rule = f"the credentials of `{label}` are not kept from one request to the next; declare it again"
        if isinstance(rule, str):
            return Listing(error={"type": "mcp_protocol_error", "code": INVALID, "message": rule}, own=own)
        found, known = self.find(given), known_tools(items, label)
        if known is not None and not depends_on_hints(rule):
            listing = _narrow(known[: found.server.bounds.max_tools], found.rule, given)
        else:
            listing = await self._ask(found, owner, given)
        told = known is not None and listing.error is None
        return msgspec.structs.replace(listing, known=told, own=own)

    async def _ask(self, found: Found, owner: str, given: JsonObject) -> Listing:
        server, place = found.server, found.place
        try:
            async with self.sessions.use(place, owner) as session:  # which has its own patience
                if asyncio.get_running_loop().time() - session.listed_at > server.bounds.idle:
                    async with asyncio.timeout(server.timeout):
                        await session.refresh()  # a server need not say that its list has changed
                listed = list_tools(session.listed, found.scrub)
        except TimeoutError:
            error = too_late(server.timeout)
        except Exception as failure:
            error = shape_error(failure)
        else:
            return _narrow(listed, found.rule, given)
        error = {**error, "message": found.scrub(error["message"])}
        tell(log, "warning", "mcp.list.failed", server=place.label, rule=place.rule, reason=error["message"])
        return Listing(error=error)


def label_of(given: JsonObject) -> str:
    return str(given.get("server_label") or "mcp")


def _by_label(tools: Sequence[JsonObject]) -> dict[str, JsonObject]:
    """Each server once: a request, or its conversation, may declare one more than once."""
    found: dict[str, JsonObject] = {}
    for tool in tools:
        label = label_of(tool)
        before = found.get(label)
        if before is None or before == tool or is_stripped(before):
            found[label] = tool
        elif not is_stripped(tool):
            words = f"two MCP servers are called `{label}`; give each a `server_label` of its own"
            raise RequestRefused(words, param="tools")
    return found


def _narrow(listed: Sequence[JsonObject], rule: McpRule, given: JsonObject) -> Listing:
    try:
        tools = narrow_tools(listed, given, rule)
        return Listing(tools, asks=find_asking(tools, given, rule))
    except RequestRefused as refused:
        raise _of(refused, given) from None


def _of(refused: RequestRefused, given: JsonObject) -> RequestRefused:
    words = f"of the MCP server `{label_of(given)}`, {refused.message}"
    return RequestRefused(words, code=refused.code, param="tools")
