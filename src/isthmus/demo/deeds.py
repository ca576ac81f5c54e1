"""What the user wants done on their machine: a file made, a command run.

In: one step of the user's text. Out: a `NewFile`, or a command line. Coding agents are tried with sentences such as
"create hello.txt with hello world", so these few are understood without a mistake.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Final

from isthmus.demo.words import read_words

_NAME: Final = r"[`\"'“]?(?P<path>(?:~|\.{1,2})?/?[\w-]+(?:/[\w.-]+)*\.[A-Za-z]\w{0,7}|(?<=[`\"'“])[^`\"'”\n]+)[`\"'”]?"
_CALLED: Final = r"(?:an?\s+|the\s+)?(?:new\s+|empty\s+)?(?:\w+\s+)?(?:file\s+)?(?:named\s+|called\s+|at\s+|in\s+)?"
_CREATE: Final = re.compile(
    rf"\b(?:create|add|write|make|generate|save)\s+{_CALLED}{_NAME}"
    r"(?:\s*(?:,\s*)?(?:with|containing|that\s+(?:says|contains|reads)|which\s+(?:says|contains)|saying|reading|:)\s*:?\s*"
    r"(?:in\s+it\s*:?\s*)?(?:the\s+)?(?:(?:text|content|contents|words?|line|message)\b\s*:?\s*)?(?P<content>.+))?",
    re.IGNORECASE | re.DOTALL,
)
_WRITE_INTO: Final = re.compile(
    rf"\b(?:write|put|save)\s+(?P<content>.+?)\s+(?:in|into|to)\s+{_CALLED}{_NAME}\s*[.!]?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_RUN: Final = re.compile(
    r"\b(?:run|execute)\s+(?:the\s+)?(?:(?:shell\s+|bash\s+)?command\s*:?\s+)?(?P<command>[^`\n]+?)[.?!]?\s*$",
    re.IGNORECASE,
)
_TICKED: Final = re.compile(r"`([^`\n]+)`")
_DEFAULT: Final = "Hello from the demo model."


@dataclass(frozen=True, slots=True)
class NewFile:
    path: str
    content: str

    def patch(self) -> str:
        """A patch in the manner of `apply_patch`."""
        return f"*** Begin Patch\n*** Add File: {self.path}\n{self.diff()}*** End Patch\n"

    def diff(self) -> str:
        """The lines of the patch alone."""
        return "".join(f"+{line}\n" for line in self.content.split("\n"))

    def command(self) -> str:
        return f"printf '%s\\n' {shlex.quote(self.content)} > {shlex.quote(self.path)}"


def find_file(text: str) -> NewFile | None:
    """The file that the text asks for."""
    created = _CREATE.search(text)
    found = created if created and created["content"] else _WRITE_INTO.search(text)
    if found:
        return NewFile(found["path"], _bare(found["content"]))
    return NewFile(created["path"], _DEFAULT) if created else None


def any_file(text: str) -> NewFile:
    """A harmless one, for a model that was told to use its patch tool whatever the text."""
    files = read_words(text).files
    return NewFile(files[0] if files else "hello.txt", _DEFAULT)


def find_command(text: str) -> str | None:
    """The command line that the text asks for."""
    found = _TICKED.search(text) or _RUN.search(text)
    return found[1] if found else None


def any_command(text: str) -> str:
    return f"echo {shlex.quote(text[:200] or 'hello')}"


def _bare(text: str) -> str:
    """Without the quotes, ticks or fence around it."""
    text = text.strip()
    quoted = re.match(r"```\w*\n(.*?)\n?```", text, re.DOTALL)
    quoted = quoted or re.match(r"[\"“`'](.+?)[\"”`'](?=\W*$)", text, re.DOTALL)
    return quoted[1] if quoted else text.removesuffix(".")
