"""A custom call's input against the grammar of its tool: the examination, and the mending that it allows.

In: `ExamineInput`, small and plain enough to be sent to another process. Out: `Examined`: the text to pass on, what
was mended, and the verdict. Reading a client's grammar can take long: a gateway does it in its worker processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isthmus.bridge.tools.custom_input import read_custom_input
from isthmus.bridge.tools.grammar import VerdictState, examine_input
from isthmus.bridge.tools.repair import repair_input
from isthmus.protocol.json import JsonObject


@dataclass(frozen=True, slots=True)
class ExamineInput:
    tool: JsonObject
    """What a grammar needs of the client's declaration: `type`, `name`, `format`."""
    text: str
    whole: bool = True
    """A text that broke off is not completed: nobody knows how it would have gone on."""


@dataclass(frozen=True, slots=True)
class Examined:
    text: str
    note: str = ""
    """What was mended; empty: nothing."""
    state: VerdictState = "free"
    detail: str = ""


def examine(job: ExamineInput) -> Examined:
    """The verdict on a text, mended where there is no doubt what was meant."""
    grammar = job.tool.get("format")
    verdict = examine_input(grammar, job.text)
    if not job.whole or verdict.state == "matches":
        return Examined(job.text, "", verdict.state, verdict.detail)
    repaired = repair_input(job.tool, job.text)
    if repaired is None:
        return Examined(job.text, "", verdict.state, verdict.detail)
    text, note = repaired
    verdict = examine_input(grammar, text)
    return Examined(text, note, verdict.state, verdict.detail)


def examination_of(tool: JsonObject, arguments: str) -> ExamineInput | None:
    """The examination that a finished call of a custom tool needs; `None`: its tool has no grammar."""
    grammar = tool.get("format")
    if not isinstance(grammar, dict) or grammar.get("type") != "grammar":
        return None
    found = read_custom_input(arguments)
    return None if found is None else ExamineInput(declaration(tool), found.text, found.shape != "cut")


def declaration(tool: JsonObject) -> dict[str, Any]:
    """The part of a tool's declaration that examining its input depends on."""
    return {key: tool[key] for key in ("type", "name", "format") if key in tool}
