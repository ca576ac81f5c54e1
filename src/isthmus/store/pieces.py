"""A stored response is taken apart into pieces that can be shared, and put together again.

In: a `StoredResponse`. Out: a small skeleton and pieces: each input item, each output item, and each large field
of the Response object (`tools`, `instructions` …). Equal pieces of one owner are kept once, so a client that
sends its whole history or the same tools on every turn costs no more than one that chains. JSON is cut and
pasted, never re-encoded: a compact Response comes back byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from isthmus.ports import UNFINISHED, StoredResponse

INPUT: Final = 0
OUTPUT: Final = 1
FIELD: Final = 2

_LARGE_FIELD: Final = 512
_NO_ITEMS: Final = b"[]"
"""Stands in the skeleton for `output`. An empty list and a list taken out come back the same way."""


class _Identified(msgspec.Struct):
    id: Any = None


_fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list_of = msgspec.json.Decoder(list[msgspec.Raw])
_identified = msgspec.json.Decoder(_Identified)


class Piece(msgspec.Struct, frozen=True, gc=False):
    place: int
    """INPUT, OUTPUT or FIELD."""
    position: int
    """Index among the items of its place, or of the field in the Response object."""
    data: bytes

    @property
    def item_id(self) -> str | None:
        """Looked for when it is needed: most pieces are known already, with their ids."""
        return None if self.place == FIELD else own_id(self.data)


def split(record: StoredResponse) -> tuple[bytes, list[Piece]]:
    """The skeleton and the pieces. `ValueError` (msgspec's) if something is not JSON of the right kind."""
    pieces = [Piece(INPUT, position, data) for position, data in enumerate(record.input)]
    skeleton = _fields_of.decode(record.response)
    output = bytes(skeleton.get("output", b""))
    if output[:1] == b"[":
        pieces += [Piece(OUTPUT, index, bytes(item)) for index, item in enumerate(_list_of.decode(output))]
        skeleton["output"] = msgspec.Raw(_NO_ITEMS)
    fields = list(map(bytes, skeleton.values()))
    if max(map(len, fields), default=0) >= _LARGE_FIELD:  # of a small one nobody looks at thirty fields one by one
        names = list(skeleton)
        for position in [at for at, data in enumerate(fields) if len(data) >= _LARGE_FIELD]:
            pieces.append(Piece(FIELD, position, fields[position]))
            skeleton[names[position]] = msgspec.Raw(b"0")
    return msgspec.json.encode(skeleton), pieces


def join(skeleton: bytes, output: Iterable[bytes], fields: Iterable[tuple[int, bytes]]) -> bytes:
    """The Response object again; `fields` are (position, data)."""
    parts = _fields_of.decode(skeleton)
    names = list(parts)
    for position, data in fields:
        parts[names[position]] = msgspec.Raw(data)
    if "output" in parts and bytes(parts["output"]) == _NO_ITEMS:
        parts["output"] = msgspec.Raw(b"[" + b",".join(output) + b"]")
    return msgspec.json.encode(parts)


def with_status(record: StoredResponse, status: str, fields: Mapping[str, Any] | None) -> StoredResponse:
    """The record with another status and other Response fields; what it takes to make it goes with its end."""
    parts = _fields_of.decode(record.response)
    for name, value in {"status": status, **(fields or {})}.items():
        parts[name] = msgspec.Raw(msgspec.json.encode(value))
    memo = record.memo if status in UNFINISHED else b""
    return replace(record, status=status, response=msgspec.json.encode(parts), memo=memo)


def with_field(record: StoredResponse, name: str, value: Any) -> StoredResponse:
    """The record with another value in one field of its object."""
    parts = _fields_of.decode(record.response)
    parts[name] = msgspec.Raw(msgspec.json.encode(value))
    return replace(record, response=msgspec.json.encode(parts))


def export_line(record: StoredResponse) -> bytes:
    """One line of an export: every column, the turn's own input, the Response object."""
    columns = {
        "id": record.id,
        "owner": record.owner,
        "previous_response_id": record.previous_response_id,
        "conversation": record.conversation,
        "created_at": record.created_at,
        "status": record.status,
        "provider": record.provider,
        "model": record.model,
        "input": [msgspec.Raw(item) for item in record.input],
        "response": msgspec.Raw(record.response),
    }
    line = msgspec.json.encode(columns)
    # A line break can only be white space between tokens here: inside a JSON string it is always escaped.
    return line.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


def own_id(item: bytes) -> str | None:
    """The id that an item brought with it."""
    found = _identified.decode(item).id
    return found if isinstance(found, str) and found else None
