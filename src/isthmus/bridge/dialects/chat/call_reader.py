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

from dataclasses import dataclass, field
from typing import Any

import msgspec

from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, VendorExtra
from isthmus.bridge.dialects.alike import Say
from isthmus.bridge.dialects.reports import text_of
from isthmus.bridge.wholeness import Pieces
from isthmus.protocol.json import JsonObject


@dataclass(slots=True, eq=False)
class _Call:
    slot: int
    id: str | None
    name: str
    opened: bool = False
    pieces: Pieces = field(default_factory=Pieces)

    def go_on(self, texts: list[str], out: list[Delta]) -> None:
        self.pieces += texts
        slot = self.slot
        out += [CallArguments(slot, text) for text in texts]

    def tell(self, out: list[Delta], *, whole: bool = False) -> None:
        self.opened = True
        out.append(CallOpened(self.slot, self.id, self.name))
        if text := self.pieces.text:
            out.append(CallArguments(self.slot, text, whole=whole))


class CallReader:
    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._last: _Call | None = None
        self.said: tuple[JsonObject, str, Say] | None = None
        """Where the last fragment that was read had its text, if it was only more of it, and how still more is told."""

    def read(self, fragments: Any, out: list[Delta]) -> None:
        self.said = None
        for fragment in fragments if isinstance(fragments, list) else ():
            if isinstance(fragment, dict) and not self._goes_on(fragment, out):
                self._read_one(fragment, out)

    def read_whole(self, fragments: Any, out: list[Delta]) -> None:
        """The calls of a whole reply: each is told in one piece."""
        told: list[Delta] = []
        self.read(fragments, told)
        for call in self._calls:
            call.tell(out, whole=True)
        out.extend(delta for delta in told if isinstance(delta, VendorExtra))

    def end(self, out: list[Delta]) -> None:
        """Calls that never got a name are told of all the same: the assembler decides about them."""
        for call in self._calls:
            if not call.opened:
                call.tell(out)

    def _goes_on(self, fragment: JsonObject, out: list[Delta]) -> bool:
        """The hot path: more arguments for an open call, named by its index and nothing else."""
        index = fragment.get("index")
        call = self._by_index.get(index) if type(index) is int else None
        if call is None or not call.opened or fragment.get("id") or "extra_content" in fragment:
            return False
        function = fragment.get("function")
        if type(function) is not dict or function.get("name"):
            return False
        arguments = function.get("arguments")
        if type(arguments) is not str:
            return False
        self._last = call
        if arguments:
            call.go_on([arguments], out)
            self.said = function, "arguments", call.go_on
        return True

    def _read_one(self, fragment: JsonObject, out: list[Delta]) -> None:
        # Custom tool calls of newer Chat Completions carry `custom: {name, input}` instead.
        function, custom = fragment.get("function"), fragment.get("custom")
        given = function if isinstance(function, dict) else custom if isinstance(custom, dict) else {}
        id, name = text_of(fragment.get("id")), text_of(given.get("name"))
        arguments = _arguments(given.get("arguments" if given is function else "input"))
        call, replace = self._match(_index(fragment.get("index")), id, name, arguments)
        if call.id is None and id:
            call.id = id
            self._by_id.setdefault(id, call)
        call.name = call.name or name
        if replace:
            call.pieces = Pieces(arguments)
        elif arguments:
            call.pieces.append(arguments)
        if call.opened and arguments:
            out.append(CallArguments(call.slot, arguments, replace))
        elif call.name and not call.opened:
            call.tell(out)
        extra = fragment.get("extra_content")
        if extra is not None:
            out.append(VendorExtra("extra_content", extra, call.slot))

    def _match(self, index: int | None, id: str, name: str, arguments: str) -> tuple[_Call, bool]:
        """The call that a fragment belongs to, and whether it tells the call anew."""
        if index is not None:
            known = self._by_index.get(index)
        else:
            known = self._by_id.get(id) if id else self._last
        if known is not None and id and known.id and id != known.id:
            # Back to an earlier call that shares the index, or a new one.
            earlier = self._by_id.get(id)
            if earlier is not None and (not name or name == earlier.name):
                known = earlier
            elif not arguments or name or not known.name or known.pieces.whole:
                known = None
        if known is not None and not id and name and known.name and (name != known.name or known.pieces.whole):
            known = None
        if known is None:
            known = _Call(len(self._calls), id or None, name)
            self._calls.append(known)
            if index is not None:
                self._by_index[index] = known
            if id:
                self._by_id[id] = known
        self._last = known
        said = known.pieces
        if not (id and name and known.name and said.size and arguments.strip()):
            return known, False
        # Put together only for a fragment that is longer: the work stays in proportion to what came.
        return known, said.whole or (len(arguments) > said.size and arguments.startswith(said.text))


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
