"""MCP servers for a gateway's clients: their tools listed for a plan, their calls carried out.

In: the operator's rules and their connections; of a request its `mcp` tools, and who asks. Out: a `Listing` for each
label, and a `ToolRunner`. Worth knowing: what a conversation says of a server's tools spares the question, but it lets
nobody in: when a call is made, the server's own list and both sides' rules are asked again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from isthmus.bridge.tools.catalog import build_tool_catalog
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
from isthmus.bridge.types.managed import Listing, ManagedCall, Ran
from isthmus.bridge.types.tools import CatalogTool
from isthmus.errors import RequestRefused
from isthmus.log import tell
from isthmus.ports.tools import Tell
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrub, Scrubber, Secret, header_secrets
from isthmus.tools.mcp_session import McpSession
from isthmus.upstream.mcp.results import (
    is_forgotten,
    late,
    list_tools,
    no_such_tool,
    shape_error,
    tell_failure,
    tell_result,
)
from isthmus.upstream.mcp.sessions import Bounds, Place, Sessions

log: Final = logging.getLogger("isthmus.mcp")


@dataclass(frozen=True, slots=True)
class Server:
    """What the configuration says of one entry of `[mcp]`."""

    rule: McpRule
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 60.0
    """Seconds of silence, until the tools are listed and in a call."""
    longest: float = 600.0
    """Seconds that a call may take at all."""
    bounds: Bounds = Bounds()


class McpHost:
    def __init__(self, servers: Mapping[str, Server], sessions: Sessions, secrets: Sequence[Secret] = ()) -> None:
        """`secrets`: those of the configuration."""
        self._servers = servers
        self._rules = {name: server.rule for name, server in servers.items()}
        self._sessions = sessions
        self._secrets = tuple(secrets)

    @property
    def labels(self) -> frozenset[str]:
        """Servers of the operator's own."""
        return frozenset(name for name, rule in self._rules.items() if rule.url)

    async def list_servers(
        self,
        owner: str,
        tools: Sequence[JsonObject] | None,
        items: Sequence[JsonObject],
        *,
        stored: int = 0,
        native: bool = False,
    ) -> dict[str, Listing]:
        """By label, what may be called. `native`: the provider calls servers itself, all but the operator's own."""
        found = {tool.name: tool for tool in _servers_in(tools, items, stored)}
        asked = {name: tool for name, tool in found.items() if not native or self._is_own(tool)}
        listings = await asyncio.gather(*(self._list(owner, tool, items) for tool in asked.values()))
        return dict(zip(asked, listings, strict=True))

    def runner(self, owner: str) -> McpRunner:
        return McpRunner(self, owner)

    async def check(self, name: str) -> str | None:
        """What keeps the operator's server `name` from being used, in words."""
        rule, place = self._resolve({"type": "mcp", "server_label": name}, "")
        listing = await self._ask(place, "", {"require_approval": "never"}, rule, self._scrub(place))
        return str(listing.error["message"]) if listing.error is not None else None

    async def aclose(self) -> None:
        await self._sessions.aclose()

    def _is_own(self, tool: CatalogTool) -> bool:
        return tool.name in self.labels and not tool.tool.get("server_url")

    async def _list(self, owner: str, tool: CatalogTool, items: Sequence[JsonObject]) -> Listing:
        given = tool.tool
        if is_stripped(given):
            words = f"the credentials of `{tool.name}` are not kept from one request to the next; declare it again"
            return Listing(error={"type": "mcp_protocol_error", "code": -32600, "message": words})
        rule = find_rule(given, self._rules)
        if isinstance(rule, str):
            return Listing(error={"type": "mcp_protocol_error", "code": -32600, "message": rule})
        rule, place = self._resolve(given, tool.path)
        scrub = self._scrub(place)
        known = known_tools(items, tool.name)
        if known is not None and not depends_on_hints(rule):
            listing = self._narrow(known[: self._servers[rule.name].bounds.max_tools], given, rule, tool.path)
            return Listing(listing.tools, known=True, asks=listing.asks)
        listing = await self._ask(place, owner, given, rule, scrub, tool.path)
        if known is None or listing.error is not None:
            return listing
        return Listing(listing.tools, known=True, asks=listing.asks)

    async def _ask(
        self, place: Place, owner: str, given: JsonObject, rule: McpRule, scrub: Scrub, path: str = ""
    ) -> Listing:
        server = self._servers[rule.name]
        try:
            async with asyncio.timeout(server.timeout), self._sessions.use(place, owner) as session:
                await self._keep_fresh(session, server.bounds.idle)
                listed = list_tools(session.listed, scrub)
        except TimeoutError:
            error = late(server.timeout, "did not list its tools")
        except RequestRefused:
            raise
        except Exception as failure:
            error = shape_error(failure)
        else:
            return self._narrow(listed, given, rule, path)
        error = {**error, "message": scrub(error["message"])}
        tell(log, "warning", "mcp.list.failed", server=place.label, rule=rule.name, reason=error["message"])
        return Listing(error=error)

    async def _keep_fresh(self, session: McpSession, most: float) -> None:
        """A server need not say that its list has changed."""
        if asyncio.get_running_loop().time() - session.listed_at > most:
            await session.refresh()

    def _narrow(self, listed: Sequence[JsonObject], given: JsonObject, rule: McpRule, path: str) -> Listing:
        try:
            tools = narrow_tools(listed, given, rule)
            return Listing(tools, asks=find_asking(tools, given, rule))
        except RequestRefused as refused:
            raise _at(refused, path) from None

    def _resolve(self, given: JsonObject, path: str) -> tuple[McpRule, Place]:
        """The rule and the place of a server that is let in."""
        rule = find_rule(given, self._rules)
        if isinstance(rule, str):
            raise RequestRefused(rule, param=f"{path}.server_url")
        try:
            shown = read_credentials(given, rule)
        except RequestRefused as refused:
            raise _at(refused, path) from None
        url = rule.url or str(given["server_url"])
        headers = {**self._servers[rule.name].headers, **shown}
        secrets = (
            *self._secrets,
            *header_secrets(headers),
            *tool_secrets([{**given, "type": "mcp", "server_url": url}]),
        )
        label = str(given.get("server_label") or rule.name)
        return rule, Place(rule.name, label, url, headers, rule.may_lead_anywhere(url), secrets)

    def _scrub(self, place: Place) -> Scrub:
        return Scrubber(place.secrets).text


class McpRunner:
    """Calls for one owner."""

    def __init__(self, host: McpHost, owner: str) -> None:
        self._host = host
        self._owner = owner

    async def run(self, call: ManagedCall, tell: Tell) -> Ran:
        host, label = self._host, str(call.tool.get("server_label") or "")
        try:
            rule, place = host._resolve(call.tool, "tools")
        except RequestRefused as refused:
            return tell_failure({"type": "mcp_protocol_error", "code": -32600, "message": refused.message}, str)
        scrub, server = host._scrub(place), host._servers[rule.name]
        for last in (False, True):
            try:
                async with asyncio.timeout(server.longest), host._sessions.use(place, self._owner) as session:
                    if not await self._has(session, call, rule, scrub):
                        return tell_failure(no_such_tool(call.name, label), scrub)
                    try:
                        return tell_result(await self._call(session, call, server), scrub)
                    except Exception as error:
                        if last or not is_forgotten(error):
                            raise
                        host._sessions.drop(session)
            except TimeoutError:
                return tell_failure(late(server.timeout, "did not answer"), scrub)
            except Exception as error:
                return tell_failure(shape_error(error), scrub)
        raise AssertionError("the second attempt returns")  # pragma: no cover

    async def _has(self, session: McpSession, call: ManagedCall, rule: McpRule, scrub: Scrub) -> bool:
        """Whether the server's own list and both sides' rules let this tool be called."""
        for attempt in range(2):
            allowed = narrow_tools(list_tools(session.listed, scrub), call.tool, rule)
            if any(one["name"] == call.name for one in allowed):
                return True
            if not attempt:
                await session.refresh()  # it may be new
        return False

    async def _call(self, session: McpSession, call: ManagedCall, server: Server) -> object:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(server.timeout) as silence:

            async def progress(progress: float, total: float | None, message: str | None) -> None:
                if not silence.expired():
                    silence.reschedule(loop.time() + server.timeout)

            return await session.call(call.name, call.arguments, progress)


def _servers_in(tools: Sequence[JsonObject] | None, items: Sequence[JsonObject], stored: int) -> Iterator[CatalogTool]:
    seen: set[str] = set()
    for tool in build_tool_catalog(tools, items, stored=stored):
        if tool.type == "mcp":
            if tool.name in seen:
                raise RequestRefused(
                    f"two MCP servers are called `{tool.name}`; give each a `server_label` of its own",
                    param=f"{tool.path}.server_label",
                )
            seen.add(tool.name)
            yield tool


def _at(refused: RequestRefused, path: str) -> RequestRefused:
    param = f"{path}.{refused.param}" if path else refused.param
    return RequestRefused(refused.message, code=refused.code, param=param)
