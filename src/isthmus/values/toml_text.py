"""Values → TOML text. The standard library reads TOML and does not write it; these few lines are all we need."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import date, time
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(key: str) -> str:
    """A key, quoted where it must be."""
    return key if _BARE.fullmatch(key) else _quote(key)


def toml_value(value: Any) -> str:
    """A value on one line; `ValueError` for what TOML cannot hold."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _number(value)
        case str():
            return _quote(value)
        case Mapping():
            inner = ", ".join(f"{toml_key(str(key))} = {toml_value(entry)}" for key, entry in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(toml_value(entry) for entry in value)}]"
        case date() | time():  # and moments; no key of ours is one
            return _quote(str(value))
    raise ValueError(f"`{value!r}` cannot be written as TOML")


def _quote(text: str) -> str:
    # JSON's escapes are a part of TOML's; only DEL must be escaped here and not there.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _number(value: float) -> str:
    if math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
