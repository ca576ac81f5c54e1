"""JSON of many megabytes, read and written in steps: no single one holds the interpreter for more than milliseconds.

In: bytes, or values. Out: the same as of one call of `msgspec`, also its errors. Whoever decodes a text of 50 MB in one
call holds everybody up for as long as that takes, in whatever thread; between two steps others have their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

LARGE: Final = 8_000_000
"""Bytes from which on it is worth it: steps take twice as long in all, and what is smaller is done in 25 ms at once."""
STEP: Final = 1_000_000
"""Bytes, or characters, of one step: a few milliseconds."""
_DEEP: Final = 8
"""Levels that are written one value at a time: as deep as the texts of any dialect lie. Below are schemas, which have
bounds of their own."""
_ESCAPE: Final = 12
"""Bytes of the longest thing that must not be cut in two: a character as two `\\uXXXX`."""
_ANY: Final = 1 << 62

_decode: Final[Callable[[bytes], Any]] = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_members: Final = msgspec.json.Decoder(list[msgspec.Raw])


class TooWide(ValueError):
    """A long text with a character outside the BMP: each of its characters takes four bytes then, and they are put
    together in one step."""


def decode_large(raw: bytes | bytearray | memoryview, step: int = STEP, widest: int = _ANY) -> Any:
    """`widest`: most characters of a text of that kind; more raise `TooWide`, before they are put together."""
    if len(raw) <= step:
        return _decode(raw)  # type: ignore[arg-type]  # any buffer will do
    match bytes(raw[:64]).lstrip()[:1]:
        case b"{":
            fields = _fields.decode(raw)
            return {name: decode_large(memoryview(value), step, widest) for name, value in fields.items()}
        case b"[":
            return [decode_large(memoryview(value), step, widest) for value in _members.decode(raw)]
        case b'"':
            return _decode_text(raw, step, widest)
        case _:
            return _decode(raw)  # type: ignore[arg-type]


def encode_large(value: Any, step: int = STEP) -> bytes:
    return b"".join(_pieces(value, step, _DEEP))  # joining bytes lets others run meanwhile


def encode_sized(value: Any, size: int) -> bytes:
    """In steps, if what it was made of has so many bytes."""
    return encode_large(value) if size > LARGE else _encode(value)


def _decode_text(raw: bytes | bytearray | memoryview, step: int, widest: int) -> str:
    """Each step begins where a character does. One that ends inside of one cannot be read: it ends a little earlier
    then."""
    start, end = bytes(raw[:64]).index(b'"') + 1, len(raw)
    while raw[end - 1] != ord('"'):  # white space may follow
        end -= 1
    end -= 1
    pieces: list[str] = []
    count, wide, may_be_wide = 0, False, end - start > widest
    while start < end:
        cut = _between_characters(raw, min(start + step, end), end)
        for earlier in range(cut, max(cut - _ESCAPE, start), -1):
            try:
                pieces.append(_decode(b'"%b"' % bytes(raw[start:earlier])))
            except (msgspec.DecodeError, UnicodeDecodeError):
                if earlier == end:
                    raise  # nothing was cut here
                continue
            start = earlier
            count += len(pieces[-1])
            wide = wide or (may_be_wide and _is_wide(pieces[-1]))
            if wide and count > widest:
                raise TooWide
            break
        else:
            _decode(raw)  # type: ignore[arg-type]  # raises what is wrong, and where
            raise AssertionError("a text that can be read as a whole can be read in steps")
    return "".join(pieces)


def _is_wide(piece: str) -> bool:
    # UTF-16 takes four bytes for the characters in question, and two for all others.
    return not piece.isascii() and len(piece.encode("utf-16-le")) > 2 * len(piece)


def _between_characters(raw: bytes | bytearray | memoryview, cut: int, end: int) -> int:
    """A place near to it that most likely stands between two characters."""
    if cut == end:
        return cut
    while raw[cut] & 0xC0 == 0x80:  # inside a character of UTF-8
        cut -= 1
    tail = bytes(raw[cut - _ESCAPE : cut])
    escape = tail.rfind(b"\\")
    return cut if escape <= 0 or tail[escape - 1 : escape] == b"\\" else cut - len(tail) + escape


def _pieces(value: Any, step: int, levels: int) -> Iterator[bytes]:
    if isinstance(value, str):
        if len(value) <= step:
            yield _encode(value)
            return
        yield b'"'
        for start in range(0, len(value), step):
            yield _encode(value[start : start + step])[1:-1]
        yield b'"'
    elif isinstance(value, dict) and levels and value:
        before = b"{"
        for name, inner in value.items():
            yield b"%b%b:" % (before, _encode(name))
            yield from _pieces(inner, step, levels - 1)
            before = b","
        yield b"}"
    elif isinstance(value, list | tuple) and levels and value:
        before = b"["
        for inner in value:
            yield before
            yield from _pieces(inner, step, levels - 1)
            before = b","
        yield b"]"
    else:
        yield _encode(value)
