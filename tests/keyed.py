"""Keys and deeds for tests."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from isthmus.ports.keys import Deed, StoredKey

NOW = 1_000_000.0


def stored_key(name: str = "ann", secret: str | None = None, **facts: Any) -> StoredKey:
    """The key of `secret`, which is made of its name where none is given."""
    secret = secret or secret_of(name)
    facts = {"created_at": NOW, **facts}
    digest = sha256(secret.encode()).digest()
    return StoredKey(facts.pop("id", f"key_{digest.hex()[:16]}"), name, digest, secret[:10], **facts)


def secret_of(name: str) -> str:
    return f"ik_{sha256(name.encode()).hexdigest()[:43]}"


def deed(action: str = "key.create", target: str = "", *, at: float = NOW, **details: str) -> Deed:
    return Deed(at, "cli", action, target, details)
