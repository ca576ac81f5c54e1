"""Templates → answers. Everything is escaped unless a template of ours says otherwise, and no page may load, run or
send anything that is not from here: a prompt full of markup stays text, whatever a mistake of ours might let
through."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.types import Scope, Send

from isthmus import __version__
from isthmus.server.http import header, send_bytes
from isthmus.server.ui import plots, words

HTML: Final = "text/html; charset=utf-8"
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
GUARDED: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_KINDS: Final = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("isthmus.server.ui", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= words.FILTERS
    made.globals |= {"version": __version__, "plots": plots, "asset_mark": _mark()}
    return made


def render(template: str, **values: Any) -> bytes:
    return environment().get_template(template).render(values).encode("utf-8", "replace")


async def send_page(
    send: Send, page: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None, kind: str = HTML
) -> None:
    told = {**GUARDED, "cache-control": "no-store", **(headers or {})}
    await send_bytes(send, status, page, kind=kind, headers=told)


async def send_away(send: Send, to: str, headers: Mapping[str, str] | None = None) -> None:
    await send_page(send, b"", status=303, headers={"location": to, **(headers or {})})


async def send_asset(scope: Scope, send: Send, name: str) -> bool:
    """One of our few files; whether there is one of that name."""
    found = _asset(name)
    if found is None:
        return False
    body, etag = found
    told = {**GUARDED, "cache-control": "public, max-age=86400", "etag": etag}
    if header(scope, b"if-none-match") == etag:
        await send_bytes(send, 304, b"", kind=_KINDS[name.rpartition(".")[2]], headers=told)
    else:
        await send_bytes(send, 200, body, kind=_KINDS[name.rpartition(".")[2]], headers=told)
    return True


@cache
def _assets() -> Mapping[str, bytes]:
    """Read once: what a client names is looked up here, and never in the file system."""
    folder = files("isthmus.server.ui") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _KINDS}


@cache
def _mark() -> str:
    """Changes with the files: browsers may keep them otherwise."""
    whole = b"".join(body for _, body in sorted(_assets().items()))
    return hashlib.sha256(whole).hexdigest()[:12]


def _asset(name: str) -> tuple[bytes, str] | None:
    body = _assets().get(name)
    return None if body is None else (body, f'"{hashlib.sha256(body).hexdigest()[:20]}"')
