"""Small repairs of a custom tool's input, made only where there is no doubt what was meant.

In: the client's tool and a text that does not match its grammar. Out: the mended text and a note, or `None`.
A text that already begins as it should is only ever added to at its end: what was streamed stays true.
"""

from __future__ import annotations

import re
from typing import Final

from isthmus.bridge.tools.builtin import PATCH_BEGIN, PATCH_END, expects_patch
from isthmus.bridge.tools.custom_input import strip_fence
from isthmus.bridge.tools.grammar import examine_input
from isthmus.protocol.json import JsonObject


def repair_input(tool: JsonObject, text: str) -> tuple[str, str] | None:
    """Mend a text: unwrap it, complete a patch's envelope, end its last line."""
    mended, notes = _repair_patch(text) if expects_patch(tool) else _repair_fence(text)
    if _lacks_newline(tool, mended):
        mended += "\n"
        notes.append("added the final newline")
    return (mended, ", ".join(notes)) if notes else None


def _repair_fence(text: str) -> tuple[str, list[str]]:
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
        inside = strip_fence(body)
        if inside is not None:
            body = inside.strip()
            notes.append("removed a code fence")
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


def _lacks_newline(tool: JsonObject, text: str) -> bool:
    given = tool.get("format")
    return examine_input(given, text).state == "differs" and examine_input(given, text + "\n").state == "matches"
