"""A provider's way to show who asks → the signer for it. Nothing is imported for a way that nobody uses.

In: the `auth` and `sign` of a provider's endpoint, gaps filled. Out: a `Signer`, or a `ConfigError` with a way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isthmus.errors import ConfigError
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.sign import Answered, Fetch, Signer
from isthmus.upstream.wire import Wire

_LARGEST: Final = 256 * 1024
"""Bytes of an answer that brings a token."""


def open_signer(auth: str, facts: Mapping[str, str], endpoint: Endpoint, environ: Mapping[str, str]) -> Signer:
    """`endpoint` is the one that is signed for: its name, its proxy and its patience are used on the way to a token."""
    wait = endpoint.patience.connect
    if auth == "sigv4":
        from isthmus.upstream.sign.aws_credentials import find_credentials
        from isthmus.upstream.sign.sigv4 import SigV4Signer

        service, region = (_fact(facts, name, endpoint.provider) for name in ("service", "region"))
        return SigV4Signer(service, region, find_credentials(endpoint.provider, environ, wait))
    from isthmus.upstream.sign.google import open_google

    return open_google(endpoint.provider, _fact(facts, "scope", endpoint.provider), _fetch_with(endpoint), wait)


def _fact(facts: Mapping[str, str], name: str, provider: str) -> str:
    value = facts.get(name, "")
    if not value or "${" in value:
        words = f"provider `{provider}` cannot be signed for: its file says no `{name}` in `endpoint.sign`"
        raise ConfigError(words, param=f"providers.{provider}")
    return value


def _fetch_with(own: Endpoint) -> Fetch:
    """One exchange with a token server, on a connection of its own: it is asked about once an hour."""
    wait = own.patience.connect
    patience = Patience(connect=wait, first_byte=wait, idle=wait)

    async def fetch(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Answered:
        asked = Endpoint(
            own.provider,
            url,
            headers,
            proxy=own.proxy,
            trust_env=own.trust_env,
            verify_tls=own.verify_tls,
            patience=patience,
            called="the token server",
        )
        wire = Wire(asked)
        try:
            incoming = await wire.send(body, method=method)
            try:
                return incoming.status, incoming.headers, await incoming.beginning(_LARGEST)
            finally:
                incoming.close()
        finally:
            await wire.aclose()

    return fetch
