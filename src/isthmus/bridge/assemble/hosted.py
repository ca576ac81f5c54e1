"""Tools that the provider runs itself: told as it tells them, with its own progress, its own status and its own id.

The id matters: the client's `mcp_approval_response` names the request by it, and items that are sent back are known by
it. An item that is still open when the reply ends has failed: nobody will hear of its result.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from isthmus.bridge.assemble.output import Output
from isthmus.bridge.deltas import HostedCall, HostedOpened, HostedProgress
from isthmus.protocol.items import HostedStatus

_PREFIXES: Final = {
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
}
_UNFINISHED: Final = frozenset({"in_progress", "searching", "interpreting", "generating", "calling"})


class _Open(msgspec.Struct):
    id: str
    index: int
    item: Any
    stepped: bool = False


class Hosted(msgspec.Struct, eq=False):
    _output: Output
    _open: dict[int, _Open] = {}
    told: bool = False
    """Whether there was any."""

    def open(self, delta: HostedOpened) -> None:
        self._open[delta.slot] = self._begin(delta.item)

    def step(self, delta: HostedProgress) -> None:
        known = self._open.get(delta.slot)
        if known is not None:
            known.stepped = True
            self._tell(known, delta.type, delta.fields)

    def end(self, delta: HostedCall) -> None:
        """The end of one that was opened, or the whole of one that was not."""
        known = self._open.pop(delta.slot, None) if delta.slot is not None else None
        given = delta.item.get("status")
        over = isinstance(given, str) and given not in _UNFINISHED
        self._finish(known or self._begin(delta.item), delta.item, given if over else "completed")

    def close_all(self) -> None:
        for known in self._open.values():
            self._finish(known, known.item, "failed")
        self._open = {}

    def _begin(self, item: Any) -> _Open:
        self.told = True
        wanted = item.get("id")
        id, index = self._output.place(_PREFIXES.get(item["type"], "item"), wanted if isinstance(wanted, str) else "")
        begun: Any = {**item, "id": id, "status": "in_progress"}
        self._output.added(index, begun)
        return _Open(id, index, item)

    def _finish(self, known: _Open, item: Any, status: HostedStatus) -> None:
        if item["type"] == "web_search_call" and not known.stepped:
            # Told as one piece: clients show a search by its steps.
            for step in ("in_progress", "searching", *(("completed",) if status == "completed" else ())):
                self._tell(known, f"response.web_search_call.{step}", {})
        ended: Any = {**item, "id": known.id, "status": status}
        self._output.done(known.index, ended)

    def _tell(self, known: _Open, type: str, fields: dict[str, Any]) -> None:
        self._output.say(type, item_id=known.id, output_index=known.index, **fields)  # the vendor's own fields
