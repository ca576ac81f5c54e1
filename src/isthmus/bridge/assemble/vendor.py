"""Vendor state that must come back on the next turn, carried by the client inside our envelope.

It is sealed into the reasoning item that it belongs to; what comes without reasoning, or too late for it,
gets a reasoning item of its own at the end. Reasoning text is sealed along when the client asked for
`reasoning.encrypted_content`: such clients send nothing else back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from isthmus.bridge.assemble.output import Output
from isthmus.bridge.assemble.speech import Speech
from isthmus.bridge.deltas import VendorExtra
from isthmus.bridge.envelope import Sealed

Seal = Callable[[Sealed], str]
_GROWING: Final = ("text", "summary", "data")


class VendorState(msgspec.Struct, eq=False):
    _provider: str
    _seal: Seal | None
    _text_too: bool
    """Whether reasoning is sealed that comes without any state."""
    _lists: dict[str, list[list[Any]]] = {}
    """What came in lists, delta by delta: joined when it is sealed."""
    _values: dict[str, Any] = {}
    _calls: dict[str, Any] = {}

    def take(self, delta: VendorExtra, call_id: str | None) -> None:
        if delta.slot is not None:
            if call_id is not None:
                self._calls[call_id] = delta.value
        elif isinstance(delta.value, list):
            self._lists.setdefault(delta.key, []).append(delta.value)
        else:
            self._values[delta.key] = delta.value

    def seal_reasoning(self, text: str) -> str | None:
        return self._envelope(text, {}) if self._text_too or self._lists or self._values else None

    def flush(self, output: Output) -> None:
        """What no reasoning item took along."""
        if self._seal is not None and (self._calls or self._lists or self._values):
            Speech("reasoning", output, seal=lambda text: self._envelope(text, self._calls)).close("completed")

    def _envelope(self, text: str, calls: dict[str, Any]) -> str | None:
        if self._seal is None:
            return None
        state = {**self._values, **{key: join_fragments(deltas) for key, deltas in self._lists.items()}}
        self._values, self._lists = {}, {}
        return self._seal(Sealed(self._provider, text, state, calls))


def join_fragments(deltas: Iterable[list[Any]]) -> list[Any]:
    """State in fragments → the array that a whole reply would have held.

    A streamed `reasoning_details` comes as many small entries that share their index (and id); sent back one by one
    they would not be what the model said. The first entry of a delta may go on with the last one of the delta before;
    entries of one delta are the vendor's own and stay apart.
    """
    groups: list[list[Any]] = []
    id: Any = None
    for entries in deltas:
        for number, entry in enumerate(entries):
            if number == 0 and groups and _continues(groups[-1][-1], id, entry):
                groups[-1].append(entry)
                id = id or entry.get("id")
            else:
                groups.append([entry])
                id = entry.get("id") if isinstance(entry, dict) else None
    return [_join(group) if len(group) > 1 else group[0] for group in groups]


def _continues(last: Any, id: Any, first: Any) -> bool:
    if not isinstance(last, dict) or not isinstance(first, dict) or first.get("index") is None:
        return False
    if any(last.get(name) != first.get(name) for name in ("index", "type")):
        return False
    return not (id and first.get("id") and id != first["id"])


def _join(fragments: list[dict[str, Any]]) -> dict[str, Any]:
    """What grows is put together; of the rest, the last word counts."""
    joined: dict[str, Any] = {}
    for name in dict.fromkeys(name for fragment in fragments for name in fragment):
        values = [fragment[name] for fragment in fragments if fragment.get(name) is not None]
        grows = name in _GROWING and all(isinstance(value, str) for value in values)
        joined[name] = "".join(values) if values and grows else values[-1] if values else None
    return joined
