"""Our own `encrypted_content`: reasoning and vendor state that a client carries for us.

Clients such as Codex store nothing on the server and send every item back. What a vendor needs again
(reasoning text, `reasoning_details`, thought signatures) travels in a versioned, authenticated envelope:
`isth2.<payload>.<mac>`. A foreign or forged envelope opens to `None` and is never sent upstream.
The payload is signed, not secret: it holds only what the same client was shown, or opaque vendor state.

The signature binds it to its owner and to its kind, and with the payload to its provider; never to a conversation:
clients fork and resume, and what they carry must open there. Envelopes of 0.1.0 (`isth1.`) name neither owner nor kind:
they still open, for whoever holds one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import zlib
from typing import Any, Final, Literal

import msgspec

PREFIX: Final = "isth2."
_UNBOUND: Final = "isth1."
_MAX_PAYLOAD: Final = 8 * 1024 * 1024
"""Bound on what an envelope may unpack to: it comes from outside."""


Kind = Literal["reasoning", "compaction", "tool_result"]


class Sealed(msgspec.Struct, frozen=True):
    """What one reasoning (or compaction) item carries for us."""

    provider: str
    text: str = ""
    extras: dict[str, Any] = {}
    """Message-level vendor state, by upstream field (`reasoning_details` …)."""
    calls: dict[str, Any] = {}


def seal(sealed: Sealed, key: bytes, *, owner: str = "", kind: Kind = "reasoning") -> str:
    payload = zlib.compress(msgspec.json.encode(sealed), 6)
    return PREFIX + _encode(payload) + "." + _encode(_mac(payload, key, _bound(owner, kind)))


def unseal(envelope: str, key: bytes, *, owner: str = "", kind: Kind = "reasoning") -> Sealed | None:
    """The content of one of our envelopes; `None` for anything that is not, was changed, or is another owner's."""
    prefix = envelope[: len(PREFIX)]
    if prefix not in (PREFIX, _UNBOUND):
        return None
    bound = _bound(owner, kind) if prefix == PREFIX else b""
    payload_text, _, mac_text = envelope[len(PREFIX) :].partition(".")
    try:
        payload, mac = _decode(payload_text), _decode(mac_text)
        if not hmac.compare_digest(mac, _mac(payload, key, bound)):
            return None
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(payload, _MAX_PAYLOAD)
        if unpacker.unconsumed_tail:
            return None
        return msgspec.json.decode(plain, type=Sealed)
    except (ValueError, binascii.Error, zlib.error, msgspec.DecodeError):
        return None


def is_envelope(text: str) -> bool:
    """Whether it calls itself one of ours; whether it is, `unseal` says."""
    return text.startswith((PREFIX, _UNBOUND))


def _bound(owner: str, kind: Kind) -> bytes:
    return msgspec.json.encode([PREFIX, owner, kind])


def _mac(payload: bytes, key: bytes, bound: bytes) -> bytes:
    return hmac.new(key, bound + payload, hashlib.sha256).digest()[:16]


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
