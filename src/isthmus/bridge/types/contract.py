"""The output contract: what was promised about the answer's text. Made by `contract/planner`, read to the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from isthmus.bridge.bounds import DEFAULT_BOUNDS
from isthmus.protocol.json import JsonObject

Mode = Literal["none", "native", "json_object", "prompt"]


@dataclass(frozen=True, slots=True)
class OutputContract:
    """What was promised about the answer's text."""

    requested: str = "text"
    mode: Mode = "none"
    send: JsonObject | None = None
    """The format for the provider, in neutral shape: `{"type": "json_object"}`, or `json_schema` with `name`,
    `description`, `schema` and `strict` beside it (those that were given); each dialect spells it its own way."""
    instruction: str = ""
    """Words for the system message; empty when the provider needs none."""
    schema: JsonObject | bool | None = None
    """The client's own schema, which answers are checked against."""
    strict: bool = False
    requires_valid_json: bool = False
    """Binding: an answer that does not fit fails the response (after the budget for asking again)."""
    held: bool = False
    """Whether the text is kept back in a stream until it was checked, because it may yet be cleaned or asked for
    again. Only a held text may be replaced by `ContractCheck.text`: what a client has seen stays as it was."""
    reminder: str = ""
    """Words that go with asking again: where the server may have kept the format from the model."""
    name: str = ""
    canonical: bytes = b""
    """The schema in canonical text: what is compiled, and what a verdict about it is remembered by."""
    max_regex: int = DEFAULT_BOUNDS.max_regex


NO_CONTRACT: Final = OutputContract()
