"""Paths as clients write them → our own; and for those that are none of ours, the address that was probably meant.

Served although they are spelled otherwise, because they can mean only one thing: doubled slashes, `/v1` missing or
twice, the prefix of a proxy there or not. A path below a foreign one (`/api/v1/responses`) is refused, and told where
to go: whoever sends there has another server in mind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from starlette.types import Scope

from isthmus.errors import RequestRefused
from isthmus.server.http import header

VERSION: Final = "/v1"
_SLASHES: Final = re.compile(r"/{2,}")
_ENDS: Final = re.compile(
    r"/(?P<end>chat/completions(?:/[^/]+(?:/messages)?)?|messages(?:/count_tokens)?|embeddings|images/(?:generations|edits)"
    r"|responses(?:/[^/]+(?:/cancel|/input_items)?)?|models(?:/.+)?"
    r"|conversations(?:/[^/]+(?:/items(?:/[^/]+)?)?)?|isthmus/traces(?:/[^/]+(?:/conversation)?)?"
    r"|health|ready|metrics|openapi\.json)\Z",
    re.DOTALL,
)
_PLAIN: Final = ("health", "ready", "metrics", "openapi.json")


def clean_prefix(prefix: str) -> str:
    """`isthmus/` → `/isthmus`; nothing stays nothing."""
    stripped = prefix.strip("/")
    return f"/{stripped}" if stripped else ""


def clean_path(path: str, prefix: str = "") -> str:
    """One slash at a time, none at the end, and without the prefix."""
    if "//" in path:
        path = _SLASHES.sub("/", path)
    if prefix and (path == prefix or path.startswith(f"{prefix}/")):
        path = path[len(prefix) :]
    return path.rstrip("/") or "/"


def spellings(path: str) -> Iterator[str]:
    """The path, and what else it can only mean, the likeliest first."""
    yield path
    if not path.startswith(f"{VERSION}/"):
        yield f"{VERSION}{path}"
    once = path
    while once.startswith(f"{VERSION}{VERSION}/"):
        once = once[len(VERSION) :]
    if once != path:
        yield once


def nothing_there(scope: Scope, prefix: str) -> RequestRefused:
    """The refusal of a path that is none of ours."""
    secure = "s" if scope["scheme"] in ("https", "wss") else ""
    path, place = scope["path"], f"{secure}://{header(scope, b'host') or '127.0.0.1'}{prefix}"
    base = f"http{place}"
    from isthmus.server.unserved import find_unserved

    if row := next((row for each in spellings(path) if (row := find_unserved(each)) is not None), None):
        instead = row.instead.replace("`/v1/", f"`{'ws' if row.socket else 'http'}{place}/v1/")
        words = f"{row.name}: not served here; {instead}. `{base}/openapi.json` lists what is"
        return RequestRefused(words, code="not_served")
    if found := _ENDS.search(path):
        end = found["end"]
        right = f"{base}/{end}" if end in _PLAIN else f"{base}{VERSION}/{end}"
        words = f"there is nothing at `{path}`; you probably mean `{right}`: the base URL is `{base}{VERSION}`"
    else:
        words = f"there is nothing at `{path}`; the base URL is `{base}{VERSION}`, `{base}/openapi.json` lists the rest"
    return RequestRefused(words, code="not_found")
