"""The text that a model meant for a custom tool, taken out of whatever it sent as function arguments.

In: an argument string, as it grows. Out: the tool's input text. The expected shape is `{"input": "…"}`; models also
send another key, the bare text, JSON inside a JSON string, or a fenced block. There is one reader: `feed` hands the
text on while it arrives, but only once nothing that may still come can change what was handed on; `finish` reads the
whole, and begins with everything that was given out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
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
    ignored: tuple[str, ...] = ()
    """Arguments beside the text: a custom tool takes nothing else."""


def read_custom_input(arguments: str) -> CustomInput | None:
    """The input text; `None` where the arguments are JSON without any string that could be it."""
    reader = CustomInputReader()
    reader.feed(arguments)
    return reader.finish(arguments)


def strip_fence(text: str) -> str | None:
    """What stands inside a text that is one fenced block and nothing else; `None` for any other text."""
    match = _FENCED.match(text.strip())
    if match is None or "\n```" in "\n" + match["body"]:
        return None
    return match["body"]


class CustomInputReader:
    """Feed it the argument fragments as they come; it returns the input text that is certain by then."""

    __slots__ = ("_decoder", "_held", "_prefix", "_state")

    def __init__(self, tool: JsonObject | None = None) -> None:
        """`tool` is the client's declaration: a patch that still lacks its first line must not go out."""
        self._decoder = _InputDecoder()
        self._prefix = PATCH_BEGIN if tool is not None and expects_patch(tool) else ""
        self._state: Literal["undecided", "live", "refused"] = "undecided"
        self._held = ""

    def feed(self, fragment: str) -> str:
        new = self._decoder.feed(fragment)
        if self._state == "live":
            return new
        return self._decide(new) if self._state == "undecided" else ""

    def finish(self, arguments: str, *, nested: bool = False) -> CustomInput | None:
        """The whole, once all of `arguments` was fed."""
        found = self._read(arguments, nested)
        if found is None or found.shape == "cut":
            return found
        unfenced = strip_fence(found.text)
        return found if unfenced is None else replace(found, text=unfenced, shape="fenced")

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

    def _read(self, arguments: str, nested: bool) -> CustomInput | None:
        value = _decode(arguments)
        decoder = self._decoder
        if decoder.opened:
            text = decoder.finish()
            if not decoder.closed:
                return CustomInput(text, "cut")
            if value is _NOT_JSON:
                return CustomInput(text + _read_on(_behind_input(arguments)), "nested" if nested else "loose")
            return CustomInput(text, "nested" if nested else "input", _others(value, "input"))
        if isinstance(value, dict):
            key = _choose_key(value)
            return None if key is None else CustomInput(value[key], "nested" if nested else "key", _others(value, key))
        if isinstance(value, str):
            inner = None if nested or not _LIKE_OBJECT.match(value) else _read_nested(value)
            return inner or CustomInput(value, "nested")
        if value is not _NOT_JSON or not arguments.strip() or _LIKE_OBJECT.match(arguments):
            return None
        return CustomInput(arguments, "text")


def _read_nested(arguments: str) -> CustomInput | None:
    reader = CustomInputReader()
    reader.feed(arguments)
    return reader.finish(arguments, nested=True)


_MAX_HELD: Final = 1024
_FENCE: Final = "```"
_FENCED: Final = re.compile(r"```[\w+.-]*[ \t]*\r?\n(?P<body>.*?)\r?\n?```\Z", re.DOTALL)
_KNOWN_KEYS: Final = ("patch", "content", "text", "code", "command", "script", "source", "value", "query")
_AFTER_VALUE: Final = re.compile(r"\s*(?:\Z|\}|,\s*(?:\Z|\"[^\"\\]*(?:\Z|\"\s*(?:\Z|:))))")
_END_OF_OBJECT: Final = re.compile(r"\"\s*\}?\s*\Z")
_LIKE_OBJECT: Final = re.compile(r"\s*\{\s*(?:\"|\}|\Z)")


def _behind_input(arguments: str) -> str:
    """What stands behind the input's closing quote, whatever the fragments were in which it came."""
    decoder = _InputDecoder()
    decoder.feed(arguments)
    return arguments[decoder.end :]


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


def _choose_key(value: JsonObject) -> str | None:
    if isinstance(value.get("input"), str):
        return "input"
    names = list(value) if len(value) == 1 else _KNOWN_KEYS
    found = [name for name in names if isinstance(value.get(name), str)]
    return found[0] if len(found) == 1 else None


def _others(value: JsonObject, key: str) -> tuple[str, ...]:
    return tuple(name for name, given in value.items() if name != key and given is not None)


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

    __slots__ = ("_at", "_pieces", "_tail", "closed", "end", "opened", "refused")

    def __init__(self) -> None:
        self._at = 0
        self._tail = ""
        self._pieces: list[str] = []
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
        self._pieces.append(text)
        return text

    def finish(self) -> str:
        """All of it. Of an escape that the end cut off, half a pair is lost, and the rest stays as it is."""
        tail = _LOST if self._tail.startswith("\\u") and len(self._tail) >= 6 else self._tail
        return "".join(self._pieces) + tail

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
