"""What a probe found out: one verdict per question for people, and facts for the provider file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Note:
    question: str
    verdict: Verdict
    detail: str = ""


@dataclass(slots=True)
class Findings:
    """Filled in while asking; the defaults are the cautious answers."""

    model: str = ""
    models: tuple[str, ...] = ()
    context: int | None = None
    inputs: tuple[str, ...] = ()
    """What it reads besides text, in the order of the file format."""
    limit_field: str = ""
    strict_fields: bool = False
    """Whether fields that it does not know are refused."""
    parameters: tuple[str, ...] = ()
    """Sampling and similar parameters that are accepted."""
    streaming: bool = False
    streaming_usage: bool = False
    reasoning_fields: tuple[str, ...] = ()
    think_tags: bool = False
    developer: bool = False
    system_anywhere: bool = False
    empty_content: str = "empty"
    call_ids: str = "keep"
    tools: bool = False
    parallel: bool = False
    choices: tuple[str, ...] = ("auto", "none")
    formats: tuple[str, ...] = ("text",)
    responses: bool = False
    notes: list[Note] = field(default_factory=list)

    def note(self, question: str, verdict: bool | None, detail: str = "") -> None:
        words: Verdict = "unknown" if verdict is None else "yes" if verdict else "no"
        self.notes.append(Note(question, words, detail))
