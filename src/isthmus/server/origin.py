"""A gateway on the loopback is reachable from every page in the user's browser: those are kept out.

A page names itself in `Origin`; a page that rebinds its name to 127.0.0.1 names itself in `Host`. Programs
send no `Origin`, and speak to the loopback by its name.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import Scope

from isthmus.addresses import is_loopback
from isthmus.errors import RequestRefused
from isthmus.server.http import header
from isthmus.server.options import ServerOptions


def check_origin(scope: Scope, options: ServerOptions) -> None:
    """Refuse what only a foreign web page would send."""
    if not options.local_only or "*" in options.allow_origins:
        return
    origin = header(scope, b"origin")
    if origin and origin not in options.allow_origins and not is_loopback(urlsplit(origin).hostname):
        raise RequestRefused(
            f"the web page `{origin}` may not call this gateway; name it in `server.allow_origins` if it should",
            code="foreign_origin",
            param="Origin",
        )
    host = header(scope, b"host")
    if host and not origin and not is_loopback(urlsplit(f"//{host}").hostname):
        raise RequestRefused(
            f"this gateway listens on the loopback and is not called `{host}`; use 127.0.0.1 or localhost, "
            "or set `server.host`",
            code="foreign_origin",
            param="Host",
        )
