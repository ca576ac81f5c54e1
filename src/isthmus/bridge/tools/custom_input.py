"""The text that a model meant for a custom tool, taken out of whatever it sent as function arguments.

In: an argument string, whole or as it grows. Out: the tool's input text. The expected shape is
`{"input": "…"}`; models also send another key, the bare text, JSON inside a JSON string, or a fenced block.
`CustomInputStream` hands the text on while it arrives, but only once nothing that may still come can
change what was handed on: the whole reading of the finished call begins with everything it gave out.
Both read the expected shape with the same decoder, so they cannot disagree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from isthmus.bridge.tools.builtin import PATCH_BEGIN, expects_patch
from isthmus.protocol.json import JsonObject

Shape = Literal["input", "loose", "cut", "key", "text", "nested", "fenced"]


@dataclass(frozen=True, slots=True)
class CustomInput:
    text: str
    shape: Shape = "input"
    """`input`: as asked for · `loose`: the same in broken JSON · `cut`: it ends before the string does ·
    `key`: another key · `text`: no JSON at all · `nested`: JSON inside a JSON string · `fenced`: in a fence."""


def read_custom_input(arguments: str) -> CustomInput | None:
    """The input text; `None` where the arguments are JSON without any string that could be it."""
    found = _read(arguments)
    if found is None:
        return None
    unfenced = strip_fence(found.text)
    return found if unfenced is None else CustomInput(unfenced, "fenced")


def strip_fence(text: str) -> str | None:
    """What stands inside a text that is one fenced block and nothing else; `None` for any other text."""
    match = _FENCED.match(text.strip())
    if match is None or "\n```" in "\n" + match["body"]:
        return None
    return match["body"]


class CustomInputStream:
    """Feed it the argument fragments as they come; it returns the input text that is certain by then."""

    __slots__ = ("_decoder", "_held", "_pieces", "_prefix", "_state")

    def __init__(self, tool: JsonObject | None = None) -> None:
        """`tool` is the client's declaration: a patch that still lacks its first line must not go out."""
        self._decoder = _InputDecoder()
        self._prefix = PATCH_BEGIN if tool is not None and expects_patch(tool) else ""
        self._state: Literal["undecided", "live", "refused"] = "undecided"
        self._held = ""
        self._pieces: list[str] = []

    @property
    def live(self) -> bool:
        """Whether text was given out, which binds the finished item to be a custom call with that text."""
        return self._state == "live"

    @property
    def text(self) -> str:
        """All text given out so far."""
        return "".join(self._pieces)

    def feed(self, fragment: str) -> str:
        if self._state == "refused":
            return ""
        new = self._decoder.feed(fragment)
        if self._state == "undecided":
            new = self._decide(new)
        if new:
            self._pieces.append(new)
        return new

    def _decide(self, new: str) -> str:
        """Hold the beginning back until it cannot be cleaned away or put behind a prefix any more."""
        self._held += new
        if self._decoder.refused:
            self._state = "refused"
        elif self._prefix:
            if self._held.startswith(self._prefix):
                self._state = "live"
            elif not self._prefix.startswith(self._held):
                self._state = "refused"
        else:
            begun = self._held.lstrip()
            if begun and not _FENCE.startswith(begun[:3]):
                self._state = "live"
            elif begun.startswith(_FENCE) or len(self._held) > _MAX_HELD:
                self._state = "refused"
        if self._state != "live":
            return ""
        held, self._held = self._held, ""
        return held


_MAX_HELD: Final = 1024
_FENCE: Final = "```"
_FENCED: Final = re.compile(r"```[\w+.-]*[ \t]*\r?\n(?P<body>.*?)\r?\n?```\Z", re.DOTALL)
_KNOWN_KEYS: Final = ("patch", "content", "text", "code", "command", "script", "source", "value", "query")
_AFTER_VALUE: Final = re.compile(r"\s*(?:\Z|\}|,\s*(?:\Z|\"[^\"\\]*(?:\Z|\"\s*(?:\Z|:))))")
_END_OF_OBJECT: Final = re.compile(r"\"\s*\}?\s*\Z")
_LIKE_OBJECT: Final = re.compile(r"\s*\{\s*(?:\"|\}|\Z)")


def _read(arguments: str, nested: bool = False) -> CustomInput | None:
    value = _decode(arguments)
    decoder = _InputDecoder()
    text = decoder.feed(arguments) + decoder.finish()
    if decoder.opened:
        shape: Shape = "nested" if nested else "input" if value is not _NOT_JSON else "loose"
        if not decoder.closed:
            return CustomInput(text, "cut")
        if value is _NOT_JSON:
            text += _read_on(arguments[decoder.end :])
        return CustomInput(text, shape)
    if isinstance(value, dict):
        chosen = _choose_string(value)
        return None if chosen is None else CustomInput(chosen, "nested" if nested else "key")
    if isinstance(value, str):
        inner = None if nested or not _LIKE_OBJECT.match(value) else _read(value, nested=True)
        return inner or CustomInput(value, "nested")
    if value is not _NOT_JSON or not arguments.strip() or _LIKE_OBJECT.match(arguments):
        return None
    return CustomInput(arguments, "text")


def _read_on(rest: str) -> str:
    """In broken JSON the first quote may be one that the model forgot to escape: then the text goes on.

    Stopping there would hand the tool half a command.
    """
    if _AFTER_VALUE.match(rest):
        return ""
    body = _END_OF_OBJECT.sub("", rest)
    return '"' + _unescape_all(body)


_NOT_JSON: Final = object()


def _decode(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _choose_string(value: JsonObject) -> str | None:
    if isinstance(value.get("input"), str):
        return str(value["input"])
    if len(value) == 1:
        only = next(iter(value.values()))
        return only if isinstance(only, str) else None
    known = [value[key] for key in _KNOWN_KEYS if isinstance(value.get(key), str)]
    return known[0] if len(known) == 1 else None


_OPENING: Final = '{"input":"'
_SPACE_BEFORE: Final = frozenset({0, 1, 8, 9})
"""Places in the opening before which JSON allows whitespace."""
_SPECIAL: Final = re.compile(r'["\\]')
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX4: Final = re.compile(r"[0-9a-fA-F]{4}")
_HEX_BEGUN: Final = re.compile(r"[0-9a-fA-F]{0,3}\Z")
_LOST: Final = "\ufffd"


class _InputDecoder:
    """Decodes the string after `{"input":` piece by piece, cut anywhere, forgiving broken escapes."""

    __slots__ = ("_at", "_tail", "closed", "end", "opened", "refused")

    def __init__(self) -> None:
        self._at = 0
        self._tail = ""
        self.opened = False
        self.closed = False
        self.refused = False
        self.end = 0
        """Where the closing quote stood: just behind it, in the last fragment."""

    def feed(self, fragment: str) -> str:
        start = 0
        if not self.opened:
            start = self._open(fragment)
        if not self.opened or self.closed:
            return ""
        data = self._tail + fragment[start:]
        text, end = self._string(data)
        self.end = len(fragment) - len(data) + end
        return text

    def finish(self) -> str:
        """What an escape that was cut off by the end stands for: half a pair is lost, the rest is taken as it is."""
        tail, self._tail = self._tail, ""
        return _LOST if tail.startswith("\\u") and len(tail) >= 6 else tail if self.opened else ""

    def _open(self, fragment: str) -> int:
        """Match the opening; returns where the string begins in this fragment."""
        for index, char in enumerate(fragment):
            if self.refused:
                break
            if char == _OPENING[self._at]:
                self._at += 1
                if self._at == len(_OPENING):
                    self.opened = True
                    return index + 1
            elif not (char in " \t\r\n" and self._at in _SPACE_BEFORE):
                self.refused = True
        return len(fragment)

    def _string(self, data: str) -> tuple[str, int]:
        out: list[str] = []
        index = 0
        self._tail = ""
        while True:
            special = _SPECIAL.search(data, index)
            if special is None:
                out.append(data[index:])
                return "".join(out), len(data)
            at = special.start()
            out.append(data[index:at])
            if data[at] == '"':
                self.closed = True
                return "".join(out), at + 1
            decoded, index = _unescape(data, at)
            if index < 0:
                self._tail = data[at:]
                return "".join(out), len(data)
            out.append(decoded)


def _unescape_all(data: str) -> str:
    """Escapes decoded, quotes taken as they are."""
    out: list[str] = []
    index = 0
    while (at := data.find("\\", index)) >= 0:
        decoded, end = _unescape(data, at)
        if end < 0:
            break
        out += (data[index:at], decoded)
        index = end
    return "".join(out) + data[index:]


def _unescape(data: str, at: int) -> tuple[str, int]:
    """The escape at `at` and where it ends; a negative end means that more text is needed."""
    if at + 1 >= len(data):
        return "", -1
    kind = data[at + 1]
    if kind != "u":
        return _ESCAPES.get(kind, "\\" + kind), at + 2
    code = _read_hex(data, at + 2)
    if code is None:
        return "", -1
    if code < 0:
        return "\\u", at + 2
    if not 0xD800 <= code <= 0xDFFF:
        return chr(code), at + 6
    if code >= 0xDC00:
        return _LOST, at + 6
    return _unescape_pair(code, data, at + 6)


def _unescape_pair(high: int, data: str, at: int) -> tuple[str, int]:
    """A character outside the basic plane is two escapes; a lone half is no character."""
    if not "\\u".startswith(data[at : at + 2]):
        return _LOST, at
    low = _read_hex(data, at + 2) if len(data) >= at + 2 else None
    if low is None:
        return "", -1
    if not 0xDC00 <= low <= 0xDFFF:
        return _LOST, at
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)), at + 6


def _read_hex(data: str, at: int) -> int | None:
    """Four hex digits; `None` when there may still come some, -1 when there cannot."""
    found = _HEX4.match(data, at)
    if found:
        return int(found[0], 16)
    return None if _HEX_BEGUN.match(data, at) else -1
