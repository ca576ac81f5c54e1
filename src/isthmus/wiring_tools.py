"""Config → the tools that run here; each is loaded only where it is configured."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from isthmus.bridge.types.managed import Managed, ManagedKind, ToolLimits
from isthmus.conduct.hosted import Hosted
from isthmus.config.schema import Config
from isthmus.errors import ConfigError
from isthmus.log import tell
from isthmus.ports import Behalf
from isthmus.ports.tools import HostedTool, ToolRunner
from isthmus.protocol.json import JsonObject

log: Final = logging.getLogger("isthmus.wiring")


def open_hosted(config: Config, executors: Iterable[HostedTool] = ()) -> Hosted:
    """What a gateway or a library is handed; whoever takes it closes it. `executors` win over what is configured."""
    tools, opened = config.tools, list[HostedTool]()
    if config.mcp:
        from isthmus.wiring_mcp import open_mcp_host

        opened.append(open_mcp_host(config))
    return Hosted(
        [*opened, *executors], ToolLimits(tools.max_rounds, tools.max_parallel, tools.timeout, tools.max_result)
    )


class LaterTool:
    """One that is loaded and opened when the first request wants it. One that cannot be opened is nobody's."""

    def __init__(self, kind: ManagedKind, open: Callable[[], Awaitable[HostedTool]]) -> None:
        self.kind = kind
        self._open = open
        self._tool: HostedTool | None = None
        self._opening = asyncio.Lock()

    async def offer(
        self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject], owner: str
    ) -> Managed:
        async with self._opening:
            try:
                self._tool = self._tool or await self._open()
            except ConfigError as error:
                tell(log, "warning", "tool.unavailable", kind=self.kind, reason=error.message)
                return managed
        return await self._tool.offer(managed, tools, items, owner)

    def foresee(self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject]) -> Managed:
        return managed if self._tool is None else self._tool.foresee(managed, tools, items)

    def runner(self, behalf: Behalf) -> ToolRunner:
        if self._tool is None:
            raise RuntimeError(f"nobody was offered `{self.kind}`")
        return self._tool.runner(behalf)

    async def aclose(self) -> None:
        if self._tool is not None:
            await self._tool.aclose()
