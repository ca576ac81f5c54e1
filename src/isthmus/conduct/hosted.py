"""The tools that run here, as one thing: what they offer for a request, and who carries out a call.

Search, MCP and images are rooms of their own (`ports.HostedTool`); the gateway and the library are handed them
together. A request without a hosted tool costs a look at the types of its tools.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from isthmus.bridge.capabilities import ToolSupport
from isthmus.bridge.tools.catalog import CARRIERS
from isthmus.bridge.tools.managed import managed_kind, managed_word, own_kinds
from isthmus.bridge.types.managed import DEFAULT_TOOL_LIMITS, NOTHING_MANAGED, Managed, ManagedKind, ToolLimits
from isthmus.ports import Behalf
from isthmus.ports.tools import HostedTool, Reachable, ToolRunner
from isthmus.protocol.json import JsonObject

_NOBODY: Final[Mapping[str, str]] = {}


class Hosted:
    def __init__(self, tools: Iterable[HostedTool] = (), limits: ToolLimits = DEFAULT_TOOL_LIMITS) -> None:
        self._tools: Mapping[ManagedKind, HostedTool] = {tool.kind: tool for tool in tools}
        self.limits = limits

    def __bool__(self) -> bool:
        """Whether any tool runs here."""
        return bool(self._tools)

    async def managed_for(
        self,
        tools: Sequence[JsonObject] | None,
        items: Sequence[JsonObject],
        owner: str,
        supports: Sequence[ToolSupport] = (),
        denied: Mapping[str, str] = _NOBODY,
    ) -> Managed:
        """What runs here of these tools, and of those that the conversation's own items declare. `supports`: what the
        providers can do themselves that may be asked. `denied`: what whoever asks may not have run, with the reason."""
        asked = self._wanted(tools, items, denied) if self._tools else {}
        if not asked and not denied:
            return NOTHING_MANAGED
        native = frozenset.intersection(*map(own_kinds, supports)) if supports else frozenset()
        managed = Managed(native=native, denied=denied)
        for kind, wanted in asked.items():
            managed = await self._tools[kind].offer(managed, wanted, items, owner)
        return managed

    def foresee(self, tools: Sequence[JsonObject] | None, items: Sequence[JsonObject]) -> Managed:
        """The same, without asking anybody."""
        managed = NOTHING_MANAGED
        for kind, wanted in self._wanted(tools, items).items():
            managed = self._tools[kind].foresee(managed, wanted, items)
        return managed

    def _wanted(
        self, tools: Sequence[JsonObject] | None, items: Sequence[JsonObject], denied: Mapping[str, str] = _NOBODY
    ) -> dict[ManagedKind, list[JsonObject]]:
        wanted: dict[ManagedKind, list[JsonObject]] = {}
        for tool in all_tools(tools, items):
            kind = managed_kind(str(tool.get("type", "")))
            if kind is not None and kind in self._tools and (managed_word(tool) or "") not in denied:
                wanted.setdefault(kind, []).append(tool)
        return wanted

    def runner(self, kind: ManagedKind, behalf: Behalf) -> ToolRunner:
        return self._tools[kind].runner(behalf)

    @property
    def servers(self) -> dict[str, Callable[[], Awaitable[str | None]]]:
        """Servers of the operator's own that tools call: how each is asked whether it can be reached."""
        able = [tool for tool in self._tools.values() if isinstance(tool, Reachable)]
        return {name: partial(tool.reach, name) for tool in able for name in sorted(tool.labels)}

    async def aclose(self) -> None:
        for tool in self._tools.values():
            await tool.aclose()


NO_TOOLS: Final = Hosted()


def all_tools(tools: Sequence[JsonObject] | None, items: Sequence[Mapping[str, Any]]) -> Iterator[JsonObject]:
    """Those that are declared, and those that the conversation's own items declare."""
    yield from tools or ()
    for item in items:
        if item.get("type") in CARRIERS:
            yield from item.get("tools") or ()
