"""A custom call's input against the grammar of its tool: the examination, and the mending that it allows.

In: `ExamineInput`, small and plain enough to be sent to another process. Out: `Examined`: the text to pass on, what
was mended, and the verdict. Reading a client's grammar can take long: a gateway does it in its worker processes.
"""

from __future__ import annotations

from dataclasses import dataclass

from isthmus.bridge.tools.custom_input import CustomInput
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


def examination_of(tool: JsonObject, found: CustomInput) -> ExamineInput | None:
    """The examination that the input of a custom tool needs; `None`: its tool has no grammar."""
    grammar = tool.get("format")
    if not isinstance(grammar, dict) or grammar.get("type") != "grammar":
        return None
    declaration: JsonObject = {key: tool[key] for key in ("type", "name", "format") if key in tool}
    return ExamineInput(declaration, found.text, found.shape != "cut")
