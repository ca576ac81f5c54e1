"""The pieces of a body, as a trace has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from isthmus.ports.traces import Piece


def pieces_of(body: Mapping[str, Any]) -> tuple[Piece, ...]:
    return tuple(_pieces(body))


def _pieces(body: Mapping[str, Any]) -> Iterator[Piece]:
    for name, value in body.items():
        for path, each in enumerate(value) if isinstance(value, list) else [(None, value)]:
            data = msgspec.json.encode(each)
            yield Piece(
                name if path is None else f"{name}[{path}]", len(data), sha256(data).hexdigest()[:16], _role(each)
            )


def _role(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    return str(value.get("role") or (value.get("function") or value).get("name") or value.get("type") or "")
