"""One call of an MCP server's tool, for one owner.

In: a `ManagedCall` with the client's own declaration of the server. Out: a `Ran`, whatever happened. Worth knowing: the
server's own list and both sides' rules are asked before anything is called, whatever the conversation says; a word of
progress counts as a sign of life (how long a call may take at all, whoever runs it knows); a session that the server
has forgotten is opened anew, once, for nothing was done.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from isthmus.bridge.tools.mcp_rules import narrow_tools
from isthmus.bridge.types.managed import ManagedCall, Ran
from isthmus.errors import RequestRefused
from isthmus.ports.tools import Tell
from isthmus.tools.mcp_session import McpSession
from isthmus.upstream.mcp.results import (
    INVALID,
    is_forgotten,
    list_tools,
    no_such_tool,
    shape_error,
    tell_failure,
    tell_result,
    too_late,
)

if TYPE_CHECKING:
    from isthmus.upstream.mcp.host import Found, McpHost


class McpRunner:
    def __init__(self, host: McpHost, owner: str) -> None:
        self._host = host
        self._owner = owner

    async def run(self, call: ManagedCall, tell: Tell) -> Ran:
        try:
            found = self._host.find(call.tool)
        except RequestRefused as refused:
            return tell_failure({"type": "mcp_protocol_error", "code": INVALID, "message": refused.message})
        try:
            return await self._attempt(call, found) or await self._attempt(call, found, again=True) or Ran("")
        except TimeoutError:
            error = too_late(found.server.timeout)
        except Exception as failure:
            error = shape_error(failure)
        return tell_failure(error, found.scrub)

    async def _attempt(self, call: ManagedCall, found: Found, *, again: bool = False) -> Ran | None:
        """`None`: nothing was done, and it is worth another attempt."""
        async with self._host.sessions.use(found.place, self._owner) as session:
            try:
                if not await self._has(session, call, found):
                    return tell_failure(no_such_tool(call.name, found.place.label), found.scrub)
                return tell_result(await self._call(session, call, found), found.scrub)
            except Exception as error:
                if again or not is_forgotten(error):
                    raise
                self._host.sessions.drop(session)
        return None

    async def _has(self, session: McpSession, call: ManagedCall, found: Found) -> bool:
        """Whether the server's own list and both sides' rules let this tool be called."""
        for seen in (False, True):
            allowed = narrow_tools(list_tools(session.listed, found.scrub), call.tool, found.rule)
            if any(one["name"] == call.name for one in allowed):
                return True
            if not seen:
                async with asyncio.timeout(found.server.timeout):
                    await session.refresh()  # it may be new
        return False

    async def _call(self, session: McpSession, call: ManagedCall, found: Found) -> Any:
        patience, now = found.server.timeout, asyncio.get_running_loop().time
        async with asyncio.timeout(patience) as silence:

            async def progress(progress: float, total: float | None, message: str | None) -> None:
                if not silence.expired():
                    silence.reschedule(now() + patience)

            return await session.call(call.name, call.arguments, progress)
