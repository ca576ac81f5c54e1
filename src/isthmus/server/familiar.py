"""What the headers of a request say of its client, remembered: the same few clients ask all the time.

In: a scope. Out: what browsers are told (or the refusal of a foreign page), and the caller. Worth knowing: keys are
looked at every time, and what was refused is never remembered.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.types import Scope

from isthmus.bridge.types.clients import ClientProfile
from isthmus.gateway.caller import Caller
from isthmus.server.compat import spelled_for
from isthmus.server.cors import cors_headers
from isthmus.server.http import RawHeaders, headers_of
from isthmus.server.options import ServerOptions
from isthmus.server.origin import check_origin
from isthmus.server.thinking import shown_to

MOST: Final = 256
"""Of each kind that are remembered: the last ones."""
LONGEST: Final = 512
"""Bytes of the headers of one; whoever sends more is looked at every time."""
_Key = tuple[bytes | None, ...]


class Familiar:
    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._pages: dict[_Key, RawHeaders] = {}
        self._clients: dict[_Key, ClientProfile] = {}

    def page(self, scope: Scope) -> RawHeaders:
        """What browsers are told. Refuses what only a foreign web page would send, and what is broken."""
        named, options = headers_of(scope), self._options
        if len(named) != len(scope["headers"]) or scope["http_version"] != "1.1":  # one may be there twice, or missing
            return cors_headers(check_origin(scope, options), options)
        key = (named.get(b"host"), named.get(b"origin"))
        told = self._pages.get(key)
        if told is None:
            told = cors_headers(check_origin(scope, options), options)
            _remember(self._pages, key, told)
        return told

    def caller(self, scope: Scope) -> Caller:
        """Who asks, with all that is known of their client. Refused where a key is needed and not shown."""
        get, keys = headers_of(scope).get, self._options.keys
        key = (get(b"originator"), get(b"user-agent"), get(b"isthmus-compat"), get(b"isthmus-thinking"))
        client = self._clients.get(key)
        if client is not None:
            caller = keys.holder(scope)
            return caller if caller.client is client else caller.speaking(client)
        settings = self._options.server
        caller = spelled_for(keys.identify(scope), scope, settings.compat)
        caller = shown_to(caller, scope, settings.thinking, settings.summary_readers)
        _remember(self._clients, key, caller.client)
        return caller


def _remember(known: dict[_Key, Any], key: _Key, value: object) -> None:
    if sum(len(part) for part in key if part is not None) > LONGEST:
        return
    if len(known) >= MOST:
        del known[next(iter(known))]
    known[key] = value
