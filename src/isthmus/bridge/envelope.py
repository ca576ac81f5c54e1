"""Our own `encrypted_content`: reasoning and vendor state that a client carries for us.

Clients such as Codex store nothing on the server and send every item back. What a vendor needs again
(reasoning text, `reasoning_details`, thought signatures) travels in a versioned, authenticated envelope:
`isth1.<payload>.<mac>`. A foreign or forged envelope opens to `None` and is never sent upstream.
The payload is signed, not secret: it holds only what the same client was shown, or opaque vendor state.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import zlib
from typing import Any, Final

import msgspec

PREFIX: Final = "isth1."
_MAX_PAYLOAD: Final = 8 * 1024 * 1024
"""Bound on what an envelope may unpack to: it comes from outside."""


class Sealed(msgspec.Struct, frozen=True):
    """What one reasoning (or compaction) item carries for us."""

    provider: str
    text: str = ""
    extras: dict[str, Any] = {}
    """Message-level vendor state, by upstream field (`reasoning_details` …)."""
    calls: dict[str, Any] = {}


def seal(sealed: Sealed, key: bytes) -> str:
    payload = zlib.compress(msgspec.json.encode(sealed), 6)
    return PREFIX + _encode(payload) + "." + _encode(_mac(payload, key))


def unseal(envelope: str, key: bytes) -> Sealed | None:
    """The content of one of our envelopes; `None` for anything that is not, or was changed."""
    if not envelope.startswith(PREFIX):
        return None
    payload_text, _, mac_text = envelope[len(PREFIX) :].partition(".")
    try:
        payload, mac = _decode(payload_text), _decode(mac_text)
        if not hmac.compare_digest(mac, _mac(payload, key)):
            return None
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(payload, _MAX_PAYLOAD)
        if unpacker.unconsumed_tail:
            return None
        return msgspec.json.decode(plain, type=Sealed)
    except (ValueError, binascii.Error, zlib.error, msgspec.DecodeError):
        return None


def _mac(payload: bytes, key: bytes) -> bytes:
    return hmac.new(key, payload, hashlib.sha256).digest()[:16]


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
