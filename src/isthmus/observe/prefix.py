"""A traced body as a prompt cache sees it: a row of pieces, of which the unchanged beginning is found again.

In: the pieces of a body in the order of the wire, each with a hash of its bytes; no content is needed. Out: those that
the prompt is made of, in the order in which providers put it together: model, tools, format, system prompt, messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from isthmus.ports.traced import Piece

Section = Literal["model", "tools", "format", "system", "settings", "messages"]

ORDER: Final[tuple[Section, ...]] = ("model", "tools", "format", "system", "settings", "messages")
_SECTIONS: Final[dict[str, Section]] = {
    "model": "model",
    "tools": "tools",
    "response_format": "format",
    "text": "format",
    "output_config": "format",
    "system": "system",
    "instructions": "system",
    "messages": "messages",
    "input": "messages",
}
"""Fields that are part of the prompt; the others change the answer, and no prefix."""
_APART: Final = ("thinking", "tool_choice")
"""By which a cache of Anthropic's keeps messages apart, but not tools and system prompt
(platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11-17)."""
_SYSTEM: Final = ("system", "developer")
"""Whose first messages are the system prompt, where it has no field of its own."""


class Part(msgspec.Struct, frozen=True):
    """One piece of a prompt."""

    path: str
    section: Section
    hash: str
    bytes: int
    what: str = ""
    """Whose message it is; of a tool, its name or type, where the trace has it."""


def read_prompt(pieces: Sequence[Piece]) -> tuple[Part, ...]:
    return tuple(sorted(_parts(pieces), key=lambda part: ORDER.index(part.section)))


def _parts(pieces: Sequence[Piece]) -> Iterator[Part]:
    of_messages = any(_field(piece) == "system" for piece in pieces)  # elsewhere these two are no part of the prompt
    begun = False
    for piece in pieces:
        section = _SECTIONS.get(_field(piece))
        if section is None and of_messages and _field(piece) in _APART:
            section = "settings"
        if section == "messages":
            begun = begun or piece.role not in _SYSTEM
            section = section if begun else "system"
        if section is not None:
            yield Part(piece.path, section, piece.hash, piece.bytes, piece.role)


def _field(piece: Piece) -> str:
    return piece.path.partition("[")[0].partition(".")[0]
