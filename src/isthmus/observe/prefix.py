"""An upstream body as a prompt cache sees it: a row of pieces, of which the unchanged beginning is found again.

In: a body, as it was sent. Out: `Piece`s in the order in which providers put a prompt together: model, tools, format,
system prompt, messages. A piece is known by the digest of its bytes, so that two requests can be compared by those who
kept no content. Marks that only tell a cache where to begin move with every turn and are no part of the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final, Literal

import msgspec

Section = Literal["model", "tools", "format", "system", "settings", "messages"]

MARKS: Final = frozenset({"cache_control", "prompt_cache_breakpoint"})
_FORMATS: Final = ("response_format", "text", "output_config")
_SETTINGS: Final = ("thinking", "tool_choice")
"""What a cache of Anthropic's keeps messages apart by, but not tools and system prompt
(platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11-17)."""
_SYSTEM: Final = ("system", "developer")
"""Whose first messages are the system prompt, where it has no field of its own."""
_encode: Final = msgspec.json.Encoder().encode


class Piece(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str
    section: Section
    digest: str
    size: int
    """Bytes."""
    what: str = ""
    """Whose message it is, or the name of the tool."""


def read_pieces(body: Mapping[str, Any]) -> tuple[Piece, ...]:
    return tuple(_pieces(body))


def _pieces(body: Mapping[str, Any]) -> Iterator[Piece]:
    if "model" in body:
        yield _piece("model", "model", body["model"])
    yield from _row("tools", "tools", body.get("tools"))
    for name in _FORMATS:
        if name in body:
            yield _piece(name, "format", body[name])
    for name in ("system", "instructions"):
        yield from _row(name, "system", body.get(name))
    if "system" in body or "max_tokens" in body:  # Messages; elsewhere these are no part of the prompt
        for name in _SETTINGS:
            if name in body:
                yield _piece(name, "settings", body[name])
    for name in ("messages", "input"):
        begun = False
        for piece in _row(name, "messages", body.get(name)):
            begun = begun or piece.what not in _SYSTEM
            yield piece if begun else msgspec.structs.replace(piece, section="system")


def _row(name: str, section: Section, value: Any) -> Iterator[Piece]:
    """One piece for each element; for a text that stands alone, one."""
    if isinstance(value, list):
        yield from (_piece(f"{name}[{index}]", section, each) for index, each in enumerate(value))
    elif value is not None:
        yield _piece(name, section, value)


def _piece(path: str, section: Section, value: Any) -> Piece:
    data = _encode(_unmarked(value))
    return Piece(path, section, blake2b(data, digest_size=16).hexdigest(), len(data), _name(value, section))


def _unmarked(value: Any) -> Any:
    """Without marks: of a declaration, a message, or a part of one. What the client wrote further inside is its own."""
    if not isinstance(value, dict):
        return value
    content = value.get("content")
    if isinstance(content, list) and any(isinstance(part, dict) and MARKS & part.keys() for part in content):
        value = {**value, "content": [_unmarked(part) for part in content]}
    if MARKS & value.keys():
        return {name: inner for name, inner in value.items() if name not in MARKS}
    return value


def _name(value: Any, section: Section) -> str:
    if not isinstance(value, dict):
        return str(value) if section == "model" else ""
    if section == "tools":
        inner = value.get("function")
        named = inner if isinstance(inner, dict) else value
        return str(named.get("name") or value.get("type") or "")
    return str(value.get("role") or value.get("type") or "") if section == "messages" else ""
