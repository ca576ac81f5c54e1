"""How many tokens a body takes, from its text alone: no provider tells beforehand, and no tokenizer is everybody's.

Three figures, for three questions. `most_tokens` errs high: whoever asks how much room is left must not be told too
much. `least_tokens` errs low: what is refused for its length must surely be too long. `likely_tokens` lies between.
Worth knowing: what a text costs is told by its script and its shape more than by its length, so bytes are sorted by
kind; the prices are those of a small vocabulary (SmolLM2: 49 thousand tokens, nearly all of them English), which are
the highest that any model in use has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

_PROMPT_FIELDS: Final = (
    *("messages", "system", "baseInstructions", "instructions", "history", "input", "tools", "dynamicTools"),
    *("response_format", "text", "output_config"),
)
"""Where the dialects keep what the model reads."""
_DATA: Final = re.compile(
    rb'data:(?P<type>[^;,"\\]{0,100})[^,"\\]{0,100};base64,(?P<url>[A-Za-z0-9+/_=-]*)'
    rb'|"(?:media_type":"(?P<media>[^"]{0,100})","data":")?(?P<bare>[A-Za-z0-9+/]{1024,}={0,2})"'
)
_PART: Final = re.compile(
    rb'"type":"(?:image_url|input_image|image|localImage|input_audio|audio_url|video_url|input_video|file|input_file'
    rb'|document)"'
)
_BEYOND_ASCII: Final = bytes(range(128, 256))
_PER_FILE: Final = 1_500
"""Tokens of an image or a file that travels as base64: its bytes are not read as text."""
_MOST_PER_FILE: Final = 5_000
"""The same at the most: a picture in the finest detail that a vendor sells."""
_PER_DOCUMENT: Final = 4
"""Characters of a document's base64 that may well hold a token: its pages are read as text and as pictures."""
_PER_REQUEST: Final = 64
"""What the model's template adds, small as the request may be."""

_PRICES: Final[Mapping[int, float]] = {
    ord("a"): 0.42,  # letters
    ord("A"): 1.0,  # capitals
    ord("0"): 1.02,  # figures: many vocabularies have one token for each
    ord("p"): 0.85,  # signs
    ord(" "): 0.05,  # a space belongs to the word behind it
    ord("l"): 2.7,  # letters with accents
    ord("g"): 1.15,  # Greek
    ord("c"): 1.1,  # Cyrillic
    ord("h"): 1.5,  # Hebrew, Arabic
    ord("o"): 2.25,  # Armenian, and what else has two bytes
    ord("i"): 2.4,  # the scripts of India, Thai
    ord("e"): 3.0,  # Georgian, Ethiopic, Khmer …
    ord("m"): 2.2,  # signs beyond ASCII
    ord("k"): 2.1,  # Chinese, Japanese
    ord("r"): 3.0,  # Korean
    ord("f"): 3.5,  # emoji
}
"""Tokens of one character, by its kind."""
_WORD: Final = 0.6
"""What a run of letters costs beside them; in base64 and hexadecimal figures there are many, and short ones."""
_PLAIN_WORD: Final = -0.35
"""Of a run behind a space: most likely it is a word that the vocabulary has."""
_SPACED_FIGURE: Final = 0.9
"""A space before a figure is a token of its own."""
_SPACED_SIGN: Final = 0.3
"""So it is before some signs."""


def _sort_bytes(*kinds: tuple[str, Iterable[int]]) -> bytes:
    """For each byte the kind of the character that begins with it; `.`: none does."""
    sorted_ = bytearray(b"." * 256)
    for kind, members in kinds:
        for byte in members:
            sorted_[byte] = ord(kind)
    return bytes(sorted_)


_KINDS: Final = _sort_bytes(
    ("p", range(0x80)),
    (" ", b" "),
    ("a", range(ord("a"), ord("z") + 1)),
    ("A", range(ord("A"), ord("Z") + 1)),
    ("0", range(ord("0"), ord("9") + 1)),
    ("o", range(0xC0, 0xE0)),
    ("l", range(0xC2, 0xCC)),
    ("g", (0xCE, 0xCF)),
    ("c", range(0xD0, 0xD4)),
    ("h", range(0xD7, 0xDC)),
    ("m", range(0xE0, 0xF0)),
    ("i", (0xE0,)),
    ("e", (0xE1,)),
    ("k", range(0xE3, 0xEA)),
    ("r", range(0xEA, 0xEE)),
    ("f", range(0xF0, 0x100)),
)
_LETTERS: Final = _sort_bytes(("a", b"a"))


def most_tokens(body: Mapping[str, Any]) -> int:
    """At least as many as the provider will count, for whatever people write: about twice as many for English prose,
    hardly more than there are for figures, base64 and the scripts that small vocabularies lack."""
    text, files = _read(body)
    pictures = max(len(files), len(_PART.findall(text)))
    documents = sum(_document_tokens(found) for found in files)
    return int(_price(text)) + pictures * _MOST_PER_FILE + documents + _PER_REQUEST


def likely_tokens(body: Mapping[str, Any]) -> int:
    text, files = _read(body)
    beyond = _beyond_ascii(text)
    return int((len(text) - beyond) / 4 + beyond / 2.5) + len(files) * _PER_FILE + 1


def least_tokens(body: Mapping[str, Any]) -> int:
    """Fewer than this it cannot be: the mean token of any real text is shorter, in every vocabulary in use."""
    return len(_read(body)[0]) // 8


def _read(body: Mapping[str, Any]) -> tuple[bytes, list[tuple[bytes, int]]]:
    """The text that the model reads, and what travels in it as base64: type and length of each."""
    text = msgspec.json.encode([body[name] for name in _PROMPT_FIELDS if name in body])
    files: list[tuple[bytes, int]] = []

    def note(found: re.Match[bytes]) -> bytes:
        data = found["url"] if found["url"] is not None else found["bare"]
        files.append((found["type"] or found["media"] or b"", len(data)))
        return b""

    return _DATA.sub(note, text), files


def _document_tokens(file: tuple[bytes, int]) -> int:
    """What a file may hold beyond a picture; nothing, where it is one."""
    kind, length = file
    if not kind or kind.startswith((b"image/", b"audio/", b"video/")):
        return 0
    return length // _PER_DOCUMENT


def _price(text: bytes) -> float:
    """Each line runs over the whole text in C: a body may have 50 MB."""
    kinds = text.translate(_KINDS)
    price = sum(kinds.count(kind) * each for kind, each in _PRICES.items())
    price += _WORD * (b"." + kinds).translate(_LETTERS).count(b".a")
    price += _PLAIN_WORD * kinds.count(b" a")
    return price + _SPACED_FIGURE * kinds.count(b" 0") + _SPACED_SIGN * kinds.count(b" p")


def _beyond_ascii(text: bytes) -> int:
    return len(text) - len(text.translate(None, _BEYOND_ASCII))
