"""Vendor state that must come back on the next turn, carried by the client inside our envelope.

It is sealed into the reasoning item that it belongs to; what comes without reasoning, or too late for it,
gets a reasoning item of its own at the end. Reasoning text is sealed along when the client asked for
`reasoning.encrypted_content`: such clients send nothing else back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isthmus.bridge.assemble.extras import join_fragments
from isthmus.bridge.assemble.output import Output
from isthmus.bridge.deltas import VendorExtra
from isthmus.bridge.envelope import Sealed

Seal = Callable[[Sealed], str]


class VendorState:
    __slots__ = ("_calls", "_lists", "_provider", "_seal", "_text_too", "_values")

    def __init__(self, provider: str, seal: Seal | None, *, text_too: bool) -> None:
        self._provider = provider
        self._seal = seal
        self._text_too = text_too
        self._lists: dict[str, list[list[Any]]] = {}
        """What came in lists, delta by delta: joined when it is sealed."""
        self._values: dict[str, Any] = {}
        self._calls: dict[str, Any] = {}

    def take(self, delta: VendorExtra, call_id: str | None) -> None:
        if delta.slot is not None:
            if call_id is not None:
                self._calls[call_id] = delta.value
        elif isinstance(delta.value, list):
            self._lists.setdefault(delta.key, []).append(delta.value)
        else:
            self._values[delta.key] = delta.value

    def seal_reasoning(self, text: str) -> str | None:
        """The envelope of a reasoning item, if it needs one."""
        if self._seal is None or not (self._text_too or self._lists or self._values):
            return None
        return self._seal(Sealed(self._provider, text, self._collect()))

    def flush(self, output: Output) -> None:
        """What no reasoning item took along."""
        if self._seal is None or not (self._calls or self._lists or self._values):
            return
        envelope = self._seal(Sealed(self._provider, "", self._collect(), self._calls))
        id, index = output.place("rs")
        output.added(index, {"type": "reasoning", "id": id, "status": "in_progress", "summary": []})
        output.done(
            index,
            {"type": "reasoning", "id": id, "status": "completed", "summary": [], "encrypted_content": envelope},
        )

    def _collect(self) -> dict[str, Any]:
        state = {**self._values, **{key: join_fragments(deltas) for key, deltas in self._lists.items()}}
        self._values, self._lists = {}, {}
        return state
