"""What a probe found out: one verdict per question for people, and facts for the provider file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from isthmus.providers.word.told import NOTHING, Word

Verdict = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Note:
    question: str
    verdict: Verdict
    detail: str = ""


@dataclass(slots=True)
class Abilities:
    """What one dialect of the endpoint does; the defaults are the cautious answers."""

    limit_field: str = ""
    tells_length: bool = False
    """Whether it says of an answer that the limit cut it."""
    streaming: bool = False
    streaming_usage: bool = False
    parameters: tuple[str, ...] = ()
    """Sampling and similar parameters that are accepted."""
    logprobs: bool = False
    thinks: bool = False
    effort_none: bool = False
    """Whether the effort `none` keeps it from thinking."""
    developer: bool = False
    system_anywhere: bool = False
    repeats: bool = False
    """Whether one speaker may say two messages in a row."""
    tools: bool = False
    strict: bool = False
    """Whether arguments keep to their schema."""
    parallel: bool = False
    choices: tuple[str, ...] = ("auto", "none")
    formats: tuple[str, ...] = ("text",)
    inputs: tuple[str, ...] = ()
    """What it reads besides text, in the order of the file format."""
    unclear: set[str] = field(default_factory=set)
    """What the answers did not show, by the name of the fact (`choices.required`): the default above is a guess."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a probe cost."""

    requests: int = 0
    tokens: int = 0
    """Those that the model wrote, as far as the server told."""
    seconds: float = 0.0
    unasked: int = 0
    """Questions that the bounds left no room for."""


@dataclass(slots=True)
class Findings(Abilities):
    """Filled in while asking: Chat Completions, and beside it the endpoint's own Responses."""

    model: str = ""
    models: tuple[str, ...] = ()
    context: int | None = None
    word: Word = NOTHING
    """What the server says of the model itself: a gateway believes that, whatever its file says."""
    strict_fields: bool = False
    """Whether fields that it does not know are refused."""
    reasoning_fields: tuple[str, ...] = ()
    think_tags: bool = False
    empty_content: str = "empty"
    call_ids: str = "keep"
    after_tool: bool = False
    """Whether the user may speak straight after a tool's result."""
    native: Abilities | None = None
    notes: list[Note] = field(default_factory=list)
    spent: Spent = Spent()

    @property
    def responses(self) -> bool:
        """Whether it has a Responses endpoint."""
        return self.native is not None

    def note(self, question: str, verdict: bool | None, detail: str = "") -> None:
        words: Verdict = "unknown" if verdict is None else "yes" if verdict else "no"
        self.notes.append(Note(question, words, detail))
