"""A custom call's input against the grammar of its tool: the examination, and the mending that it allows.

In: `ExamineInput`, small and plain enough to be sent to another process. Out: `Examined`: the text to pass on, what
was mended, and the verdict. Reading a client's grammar can take long: a gateway does it in its worker processes.
Repairs are made only where there is no doubt what was meant. A text that already begins as it should is only ever
added to at its end: what was streamed stays true.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from isthmus.bridge.tools.builtin import PATCH_BEGIN, PATCH_END, expects_patch
from isthmus.bridge.tools.custom_input import strip_fence
from isthmus.bridge.tools.grammar import VerdictState, examine_input
from isthmus.protocol.json import JsonObject


class ExamineInput(msgspec.Struct, frozen=True, tag=True):
    tool: JsonObject
    """What a grammar needs of the client's declaration: `type`, `name`, `format`."""
    text: str


class Examined(msgspec.Struct, frozen=True, tag=True):
    text: str
    note: str = ""
    state: VerdictState = "free"
    detail: str = ""


def examination_of(tool: JsonObject, text: str) -> ExamineInput | None:
    """The examination that the input of a custom tool needs; `None`: its tool has no grammar."""
    grammar = tool.get("format")
    if not isinstance(grammar, dict) or grammar.get("type") != "grammar":
        return None
    return ExamineInput({key: tool[key] for key in ("type", "name", "format") if key in tool}, text)


def examine(job: ExamineInput) -> Examined:
    grammar = job.tool.get("format")
    verdict = examine_input(grammar, job.text)
    text, notes = (job.text, []) if verdict.state == "matches" else _repair(job.tool, job.text)
    return Examined(text, ", ".join(notes), *(examine_input(grammar, text) if notes else verdict))


def _repair(tool: JsonObject, text: str) -> tuple[str, list[str]]:
    """Mend a text: unwrap it, complete a patch's envelope, end its last line; and say what was done."""
    mended, notes = _repair_patch(text) if expects_patch(tool) else _unfence(text)
    given = tool.get("format")
    if examine_input(given, mended).state == "differs" and examine_input(given, mended + "\n").state == "matches":
        return mended + "\n", [*notes, "added the final newline"]
    return mended, notes


def _unfence(text: str) -> tuple[str, list[str]]:
    inside = strip_fence(text)
    return (text, []) if inside is None else (inside, ["removed a code fence"])


def _repair_patch(text: str) -> tuple[str, list[str]]:
    notes: list[str] = []
    body = text
    if not body.startswith(PATCH_BEGIN):
        body, notes = _unwrap(body.strip())
        if _HEADER.match(body):
            body = f"{PATCH_BEGIN}\n{body}"
            notes.append(f"added the line `{PATCH_BEGIN}`")
        elif not body.startswith(PATCH_BEGIN):
            return text, []
        elif not notes:
            notes.append("removed blank space around the patch")
    if not body.rstrip().endswith(PATCH_END) and _WHOLE.match(body):
        body += f"{'' if body.endswith(chr(10)) else chr(10)}{PATCH_END}"
        notes.append(f"added the line `{PATCH_END}`")
    return body, notes


def _unwrap(body: str) -> tuple[str, list[str]]:
    """Take off a fence and the shell command that a patch was wrapped into, once each, in either order."""
    notes: list[str] = []
    for _ in range(2):
        inside, said = _unfence(body)
        if said:
            body = inside.strip()
            notes += said
        command = _HEREDOC.match(body)
        if command:
            body = command["body"].strip()
            notes.append("removed the shell command around it")
    return body, notes


_HEADER: Final = re.compile(r"\*\*\* (?:Add|Update|Delete) File: \S")
_WHOLE: Final = re.compile(re.escape(PATCH_BEGIN) + r"[ \t]*\r?\n\*\*\* (?:Add|Update|Delete) File: \S")
_HEREDOC: Final = re.compile(
    r"(?:apply_?patch[ \t]*)?<<-?[ \t]*(?P<quote>['\"]?)(?P<word>\w+)(?P=quote)[ \t]*\r?\n"
    r"(?P<body>.*?)\r?\n(?P=word)[ \t]*\Z",
    re.DOTALL,
)
