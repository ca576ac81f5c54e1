"""Do the receivers of webhooks make sense? Whoever is called of our own accord must have been named, twice.

In: `[webhooks]`. Out: `Problem`s. What a host's name leads to is nobody's promise: that is looked at with each call.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

from isthmus.addresses import fault_of_call
from isthmus.config.schema import Webhooks
from isthmus.values.problems import KeyPath, Problem

PREFIX: Final = "whsec_"
_SHORTEST: Final = 24
"""Bytes of a secret; the specification of Standard Webhooks asks for so many (standardwebhooks.com, 2026-11-17)."""
_MAKE_ONE: Final = "make one: `echo whsec_$(openssl rand -base64 32)`"


def check_webhooks(webhooks: Webhooks) -> Iterator[Problem]:
    for name, endpoint in webhooks.endpoints.items():
        at = ("webhooks", "endpoints", name)
        if not endpoint.url:
            yield Problem((*at, "url"), "is missing", "say where the receiver listens, with https")
        elif (fault := fault_of_call(endpoint.url, webhooks.allowed_hosts, webhooks.private_hosts)) is not None:
            yield Problem((*at, "url"), fault, "correct the address, or name its host in `[webhooks]`")
        if not endpoint.secret and not endpoint.secret_file:
            yield Problem((*at, "secret"), "is missing: nobody could tell our deliveries from forged ones", _MAKE_ONE)
        yield from _check_secret((*at, "secret"), endpoint.secret)
        yield from _check_secret((*at, "previous_secret"), endpoint.previous_secret)


def _check_secret(at: KeyPath, secret: str) -> Iterator[Problem]:
    if not secret:
        return
    if (key := secret_bytes(secret)) is None:
        yield Problem(at, f"begins with `{PREFIX}`, and the rest is no base64", _MAKE_ONE)
    elif len(key) < _SHORTEST:
        yield Problem(at, f"has {len(key)} bytes; it can be guessed with less than {_SHORTEST}", _MAKE_ONE, "warning")


def secret_bytes(secret: str) -> bytes | None:
    """What is signed with: `whsec_` announces base64, any other text is taken as it is; `None`: it is neither."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    bare = secret.removeprefix(PREFIX).rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True) or None
    except binascii.Error:
        return None
