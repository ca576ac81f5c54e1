"""The text that a model meant for a custom tool, taken out of whatever it sent as function arguments.

In: an argument string, as it grows. Out: the tool's input text. The expected shape is `{"input": "…"}`; models also
send another key, the bare text, JSON inside a JSON string, or a fenced block. `CustomInputReader` hands the text on
while it arrives, but only once nothing that may still come can change what was handed on; `read_custom_input` reads
the whole, and begins with everything that was given out.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

from isthmus.bridge.tools.builtin import PATCH_BEGIN, expects_patch
from isthmus.protocol.json import NOT_JSON, JsonObject, read_json

Shape = Literal["input", "loose", "cut", "key", "text", "nested", "fenced"]


class CustomInput(msgspec.Struct, frozen=True):
    text: str
    shape: Shape = "input"
    """`input`: as asked for · `loose`: the same in broken JSON · `cut`: it ends before the string does ·
    `key`: another key · `text`: no JSON at all · `nested`: JSON inside a JSON string · `fenced`: in a fence."""
    ignored: tuple[str, ...] = ()
    """Arguments beside the text: a custom tool takes nothing else."""


def read_custom_input(arguments: str, *, nested: bool = False) -> CustomInput | None:
    """The input text; `None` where the arguments are JSON without any string that could be it."""
    found = _read(arguments, nested)
    if found is None or found.shape == "cut":
        return found
    unfenced = strip_fence(found.text)
    return found if unfenced is None else msgspec.structs.replace(found, text=unfenced, shape="fenced")


def strip_fence(text: str) -> str | None:
    """What stands inside a text that is one fenced block and nothing else; `None` for any other text."""
    match = _FENCED.match(text.strip())
    if match is None or "\n```" in "\n" + match["body"]:
        return None
    return match["body"]


class CustomInputReader:
    """Feed it the argument fragments as they come; it returns the input text that is certain by then."""

    __slots__ = ("_at", "_held", "_prefix", "_state", "_tail")

    def __init__(self, tool: JsonObject) -> None:
        """`tool` is the client's declaration: a patch that still lacks its first line must not go out."""
        self._prefix = PATCH_BEGIN if expects_patch(tool) else ""
        self._state: Literal["opening", "held", "live", "over"] = "opening"
        self._at = 0
        self._held = self._tail = ""

    def feed(self, fragment: str) -> str:
        if self._state == "opening":
            fragment = self._open(fragment)
        if self._state in ("opening", "over"):
            return ""
        text, self._tail = _read_string(self._tail + fragment)
        if self._state == "held":
            text = self._release(text)
        if self._tail.startswith('"'):
            self._state = "over"
        return text

    def _open(self, fragment: str) -> str:
        """Match the opening; what is left of this fragment is the string's beginning."""
        for index, char in enumerate(fragment):
            if char == _OPENING[self._at]:
                self._at += 1
                if self._at == len(_OPENING):
                    self._state = "held"
                    return fragment[index + 1 :]
            elif not (char in " \t\r\n" and self._at in _SPACE_BEFORE):
                self._state = "over"
                break
        return ""

    def _release(self, text: str) -> str:
        """Hold the beginning back until it cannot be cleaned away or put behind a prefix any more."""
        held = self._held = self._held + text
        if self._prefix:
            live, over = held.startswith(self._prefix), not self._prefix.startswith(held)
        else:
            begun = held.lstrip()
            live = bool(begun) and not _FENCE.startswith(begun[:3])
            over = begun.startswith(_FENCE) or len(held) > _MAX_HELD
        if live or over:
            self._state = "live" if live else "over"
        return held if live else ""


_OPENING: Final = '{"input":"'
_SPACE_BEFORE: Final = frozenset({0, 1, 8, 9})
"""Places in the opening before which JSON allows whitespace."""
_MAX_HELD: Final = 1024
_FENCE: Final = "```"
_FENCED: Final = re.compile(r"```[\w+.-]*[ \t]*\r?\n(?P<body>.*?)\r?\n?```\Z", re.DOTALL)
_OPENED: Final = re.compile(r'[ \t\r\n]*\{[ \t\r\n]*"input"[ \t\r\n]*:[ \t\r\n]*"')
_AFTER_VALUE: Final = re.compile(r"\s*(?:\Z|\}|,\s*(?:\Z|\"[^\"\\]*(?:\Z|\"\s*(?:\Z|:))))")
_END_OF_OBJECT: Final = re.compile(r"\"\s*\}?\s*\Z")
_LIKE_OBJECT: Final = re.compile(r"\s*\{\s*(?:\"|\}|\Z)")
_KNOWN_KEYS: Final = ("patch", "content", "text", "code", "command", "script", "source", "value", "query")


def _read(arguments: str, nested: bool) -> CustomInput | None:
    value = read_json(arguments)
    if opened := _OPENED.match(arguments):
        text, rest = _read_string(arguments[opened.end() :])
        if not rest.startswith('"'):
            # Of an escape that the end cut off, half a pair is lost, and the rest stays as it is.
            return CustomInput(text + (_LOST if rest.startswith("\\u") and len(rest) >= 6 else rest), "cut")
        if value is NOT_JSON:
            return CustomInput(text + _read_on(rest[1:]), "nested" if nested else "loose")
        return CustomInput(text, "nested" if nested else "input", _others(value, "input"))
    if isinstance(value, dict):
        key = _choose_key(value)
        return None if key is None else CustomInput(value[key], "nested" if nested else "key", _others(value, key))
    if isinstance(value, str):
        inner = None if nested or not _LIKE_OBJECT.match(value) else read_custom_input(value, nested=True)
        return inner or CustomInput(value, "nested")
    if value is not NOT_JSON or not arguments.strip() or _LIKE_OBJECT.match(arguments):
        return None
    return CustomInput(arguments, "text")


def _read_on(rest: str) -> str:
    """In broken JSON the first quote may be one that the model forgot to escape: then the text goes on. Stopping there
    would hand the tool half a command."""
    return "" if _AFTER_VALUE.match(rest) else '"' + _ESCAPE.sub(_unescape, _END_OF_OBJECT.sub("", rest))


def _choose_key(value: JsonObject) -> str | None:
    if isinstance(value.get("input"), str):
        return "input"
    names = list(value) if len(value) == 1 else _KNOWN_KEYS
    found = [name for name in names if isinstance(value.get(name), str)]
    return found[0] if len(found) == 1 else None


def _others(value: JsonObject, key: str) -> tuple[str, ...]:
    return tuple(name for name, given in value.items() if name != key and given is not None)


_HIGH: Final = "[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = "[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE: Final = re.compile(rf"\\(?:u({_HIGH}\\u{_LOW}|[0-9a-fA-F]{{4}})|(.))", re.DOTALL)
_UNFINISHED: Final = rf"\\(?:(?:u{_HIGH}\\)?u[0-9a-fA-F]{{0,3}}|u{_HIGH}\\?)?\Z"
_CERTAIN: Final = re.compile(rf'(?:[^"\\]+|(?!{_UNFINISHED})\\.)*', re.DOTALL)
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LOST: Final = "\ufffd"


def _read_string(data: str) -> tuple[str, str]:
    """A string's text, broken escapes forgiven, and what is behind it: the closing quote, or half an escape."""
    if "\\" not in data:  # most fragments, and much cheaper
        text, quote, rest = data.partition('"')
        return text, quote + rest
    certain = _CERTAIN.match(data)
    end = certain.end() if certain else 0
    return _ESCAPE.sub(_unescape, data[:end]), data[end:]


def _unescape(escape: re.Match[str]) -> str:
    """A character outside the basic plane is two escapes; a lone half is no character."""
    code, kind = escape.groups()
    if code is None:
        return _ESCAPES.get(kind, escape[0])
    return bytes.fromhex(code.replace("\\u", "")).decode("utf-16-be", "replace")
