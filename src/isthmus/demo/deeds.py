"""What the user wants done on their machine: a file made, changed or deleted, a command run.

In: one step of the user's text. Out: a `FileDeed`, or a command line. Coding agents are tried with
sentences such as "create hello.txt with hello world", so these few are understood without a mistake.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Final, Literal

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
_DELETE: Final = re.compile(rf"\b(?:delete|remove)\s+{_CALLED}{_NAME}", re.IGNORECASE)
_CHANGE: Final = re.compile(
    r"\b(?:replace|change)\s+(?P<old>.{1,300}?)\s+(?:with|to|by|into)\s+(?P<content>.{1,300}?)\s+in\s+"
    rf"{_CALLED}{_NAME}",
    re.IGNORECASE,
)
_RUN: Final = re.compile(
    r"\b(?:run|execute)\s+(?:the\s+)?(?:(?:shell\s+|bash\s+)?command\s*:?\s+)?(?P<command>[^`\n]+?)[.?!]?\s*$",
    re.IGNORECASE,
)
_TICKED: Final = re.compile(r"`([^`\n]+)`")
_SHOW: Final = re.compile(
    rf"\b(?:show|cat|read|print|open|display)\s+(?:me\s+)?(?:the\s+)?{_CALLED}{_NAME}", re.IGNORECASE
)
_USUAL: Final = (
    (re.compile(r"\b(?:list|show|what|which)\b.*\b(?:files|folder|directory)\b", re.IGNORECASE), "ls -la"),
    (re.compile(r"\b(?:current|working|which)\s+(?:directory|folder)\b|\bwhere am i\b", re.IGNORECASE), "pwd"),
    (re.compile(r"\bgit\s+status\b", re.IGNORECASE), "git status"),
)
_DEFAULT: Final = "Hello from the demo model."


@dataclass(frozen=True, slots=True)
class FileDeed:
    kind: Literal["create", "change", "delete"]
    path: str
    content: str = ""
    old: str = ""

    def patch(self) -> str:
        """The deed as a patch in the manner of `apply_patch`."""
        match self.kind:
            case "create":
                body = f"*** Add File: {self.path}\n{_marked('+', self.content)}"
            case "change":
                body = f"*** Update File: {self.path}\n@@\n{_marked('-', self.old)}{_marked('+', self.content)}"
            case "delete":
                body = f"*** Delete File: {self.path}\n"
        return f"*** Begin Patch\n{body}*** End Patch\n"

    def diff(self) -> str:
        """The lines of the patch alone."""
        if self.kind == "change":
            return f"@@\n{_marked('-', self.old)}{_marked('+', self.content)}"
        return _marked("+", self.content)

    def command(self) -> str:
        """The deed as a command line."""
        path = shlex.quote(self.path)
        match self.kind:
            case "delete":
                return f"rm {path}"
            case "change":
                return f"sed -i {shlex.quote(f's/{_escaped(self.old)}/{_escaped(self.content)}/')} {path}"
        return f"printf '%s\\n' {shlex.quote(self.content)} > {path}"


def find_file_deed(text: str) -> FileDeed | None:
    if found := _CHANGE.search(text):
        return FileDeed("change", found["path"], _bare(found["content"]), _bare(found["old"]))
    created = _CREATE.search(text)
    if created and created["content"]:
        return FileDeed("create", created["path"], _bare(created["content"]))
    if found := _WRITE_INTO.search(text):
        return FileDeed("create", found["path"], _bare(found["content"]))
    if created:
        return FileDeed("create", created["path"], _DEFAULT)
    if found := _DELETE.search(text):
        return FileDeed("delete", found["path"])
    return None


def find_command(text: str) -> str | None:
    """The command line that the text asks for."""
    if ticked := _TICKED.search(text):
        return ticked[1]
    if asked := _RUN.search(text):
        return asked["command"]
    for words, command in _USUAL:
        if words.search(text):
            return command
    if shown := _SHOW.search(text):
        return f"cat {shlex.quote(shown['path'])}"
    return None


def any_file_deed(text: str) -> FileDeed:
    """A harmless one, for a model that was told to use its patch tool whatever the text."""
    files = read_words(text).files
    return FileDeed("create", files[0] if files else "hello.txt", _DEFAULT)


def any_command(text: str) -> str:
    return f"echo {shlex.quote(text[:200] or 'hello')}"


def _bare(text: str) -> str:
    """Without the quotes or ticks around it."""
    text = text.strip()
    fence = re.match(r"```\w*\n(.*?)\n?```", text, re.DOTALL)
    if fence:
        return fence[1]
    quoted = re.match(r"[\"“`'](.+?)[\"”`'](?=\W*$)", text, re.DOTALL)
    return quoted[1] if quoted else text.removesuffix(".")


def _marked(sign: str, text: str) -> str:
    return "".join(f"{sign}{line}\n" for line in text.split("\n"))


def _escaped(text: str) -> str:
    return re.sub(r"([/&\\.*\[\]^$])", r"\\\1", text)
