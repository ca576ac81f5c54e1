"""Tool-call fragments → calls with a stable slot, whatever the vendor does with indexes and ids.

Seen in the wild: no index, a null index, index 0 for every parallel call, ids only on the first
fragment or on each, ids that change on the same index (a new call), whole calls in one chunk, names
that come after the first arguments, arguments that start over. A fragment is matched by (index, id,
name) in that order of trust:

    new id on a known index ............ a new call
    the same, but unnamed, mid-call .... the call goes on (vLLM: an id of its own for each fragment)
    new name, no id, known index ....... a new call
    a name again, arguments complete ... a new call (no id) or the same call told anew (same id)
    id and name again, longer text ..... the same call told anew, cumulatively: replaced
    anything else ...................... the call goes on
"""

from __future__ import annotations

from typing import Any

import msgspec

from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, VendorExtra
from isthmus.bridge.json_text import is_json
from isthmus.protocol.json import JsonObject


class _Slot:
    __slots__ = ("id", "name", "opened", "pieces", "slot")

    def __init__(self, slot: int, id: str | None, name: str) -> None:
        self.slot = slot
        self.id = id
        self.name = name
        self.opened = False
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


class CallReader:
    """Remembers the calls of one reply; `read` turns a list of fragments into deltas."""

    __slots__ = ("_by_id", "_by_index", "_last", "_slots")

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}
        self._last: _Slot | None = None

    def read(self, fragments: Any, out: list[Delta]) -> None:
        if not isinstance(fragments, list):
            return
        for fragment in fragments:
            if isinstance(fragment, dict) and not self._goes_on(fragment, out):
                self._read_one(fragment, out)

    def read_whole(self, fragments: Any, out: list[Delta]) -> None:
        """The calls of a whole reply: each is told in one piece."""
        told: list[Delta] = []
        self.read(fragments, told)
        self.end(told)
        for slot in self._slots:
            out.append(CallOpened(slot.slot, slot.id, slot.name))
            if slot.text:
                out.append(CallArguments(slot.slot, slot.text, whole=True))
        out.extend(delta for delta in told if isinstance(delta, VendorExtra))

    def end(self, out: list[Delta]) -> None:
        """Calls that never got a name are told of all the same: the assembler decides about them."""
        for slot in self._slots:
            if not slot.opened:
                self._open(slot, out)

    def _goes_on(self, fragment: JsonObject, out: list[Delta]) -> bool:
        """The hot path: more arguments for an open call, named by its index and nothing else."""
        index = fragment.get("index")
        slot = self._by_index.get(index) if type(index) is int else None
        if slot is None or not slot.opened or fragment.get("id") or "extra_content" in fragment:
            return False
        function = fragment.get("function")
        if type(function) is not dict or function.get("name"):
            return False
        arguments = function.get("arguments")
        if type(arguments) is not str:
            return False
        self._last = slot
        if arguments:
            slot.pieces.append(arguments)
            out.append(CallArguments(slot.slot, arguments))
        return True

    def _read_one(self, fragment: JsonObject, out: list[Delta]) -> None:
        function = fragment.get("function")
        if not isinstance(function, dict):
            # Custom tool calls of newer Chat Completions carry `custom: {name, input}` instead.
            custom = fragment.get("custom")
            function = (
                {"name": custom.get("name"), "arguments": custom.get("input")} if isinstance(custom, dict) else {}
            )
        id = _text(fragment.get("id"))
        name = _text(function.get("name"))
        arguments = _arguments(function.get("arguments"))
        index = _index(fragment.get("index"))
        slot, replace = self._match(index, id, name, arguments)
        if slot.id is None and id:
            slot.id = id
            self._by_id.setdefault(id, slot)
        if not slot.name and name:
            slot.name = name
        if replace:
            slot.pieces = [arguments]
        elif arguments:
            slot.pieces.append(arguments)
        if not slot.opened:
            if slot.name:
                self._open(slot, out)
        elif arguments or replace:
            out.append(CallArguments(slot.slot, arguments, replace))
        extra = fragment.get("extra_content")
        if extra is not None:
            out.append(VendorExtra("extra_content", extra, slot.slot))

    def _match(self, index: int | None, id: str, name: str, arguments: str) -> tuple[_Slot, bool]:
        if index is not None:
            known = self._by_index.get(index)
        else:
            known = self._by_id.get(id) if id else self._last
        if known is None:
            return self._new(index, id, name), False
        if id and known.id and id != known.id:
            # Back to an earlier call that shares the index, or a new one.
            earlier = self._by_id.get(id)
            if earlier is not None and (not name or name == earlier.name):
                return self._resume(earlier, index, id, name, arguments)
            if arguments and not name and known.name and not is_json(known.text):
                return self._resume(known, index, id, name, arguments)
            return self._new(index, id, name), False
        return self._resume(known, index, id, name, arguments)

    def _resume(self, slot: _Slot, index: int | None, id: str, name: str, arguments: str) -> tuple[_Slot, bool]:
        self._last = slot
        if not name or not slot.name:
            return slot, False
        if not id:
            if name != slot.name or (slot.text and is_json(slot.text)):
                return self._new(index, id, name), False
            return slot, False
        told_anew = (
            bool(arguments.strip())
            and bool(slot.text)
            and (is_json(slot.text) or (len(arguments) > len(slot.text) and arguments.startswith(slot.text)))
        )
        return slot, told_anew

    def _new(self, index: int | None, id: str, name: str) -> _Slot:
        slot = _Slot(len(self._slots), id or None, name)
        self._slots.append(slot)
        if index is not None:
            self._by_index[index] = slot
        if id:
            self._by_id[id] = slot
        self._last = slot
        return slot

    @staticmethod
    def _open(slot: _Slot, out: list[Delta]) -> None:
        slot.opened = True
        out.append(CallOpened(slot.slot, slot.id, slot.name))
        if slot.text:
            out.append(CallArguments(slot.slot, slot.text))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _index(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 9 else None


def _arguments(value: Any) -> str:
    """Argument text; some vendors send the object itself."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()
