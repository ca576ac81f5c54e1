"""How many tokens a body takes, from its text alone: no provider tells beforehand, and no tokenizer is everybody's.

Three figures, for three questions. `most_tokens` errs high: whoever asks how much room is left must not be told too
much. `least_tokens` errs low: what is refused for its length must surely be too long. `likely_tokens` lies between.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

_PROMPT_FIELDS: Final = (
    *("messages", "system", "baseInstructions", "instructions", "history", "input", "tools", "dynamicTools"),
    *("response_format", "text", "output_config"),
)
"""Where the dialects keep what the model reads."""
_DATA: Final = re.compile(rb'data:[^,"\\]{0,200};base64,[A-Za-z0-9+/_=-]*|"[A-Za-z0-9+/]{1024,}={0,2}"')
_BEYOND_ASCII: Final = bytes(range(128, 256))
_PER_FILE: Final = 1_500
"""Tokens of an image or a file that travels as base64: its bytes are not read as text."""
_PER_REQUEST: Final = 64
"""What the model's template adds, small as the request may be."""


def most_tokens(body: Mapping[str, Any]) -> int:
    """At least as many as the provider will count, for nearly every text.

    A small vocabulary of English (SmolLM2: 49 thousand) makes a token of 4.5 bytes of prose, 4.2 of code, 3.2 of JSON,
    2.5 of German compounds, 1.5 of Chinese; larger ones of more.
    """
    plain, beyond, files = _measure(body)
    return int(plain / 2.4 + beyond / 1.4) + files * _PER_FILE + _PER_REQUEST


def likely_tokens(body: Mapping[str, Any]) -> int:
    plain, beyond, files = _measure(body)
    return int(plain / 4 + beyond / 2.5) + files * _PER_FILE + 1


def least_tokens(body: Mapping[str, Any]) -> int:
    """Fewer than this it cannot be: the mean token of any real text is shorter, in every vocabulary in use."""
    plain, beyond, _ = _measure(body)
    return (plain + beyond) // 8


def _measure(body: Mapping[str, Any]) -> tuple[int, int, int]:
    """Bytes of ASCII, bytes of other text, files."""
    text = msgspec.json.encode([body[name] for name in _PROMPT_FIELDS if name in body])
    text, files = _DATA.subn(b"", text)
    plain = len(text.translate(None, _BEYOND_ASCII))
    return plain, len(text) - plain, files
