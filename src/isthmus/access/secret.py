"""A key itself: how one is made, and what is kept of it."""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import Final

KEY: Final = "ik_"
"""What every key begins with, so that it is known where it must not be: in a repository, in a log."""
SHOWN: Final = 10
"""Characters by which its holder recognises it."""


def new_key() -> str:
    """32 random bytes, in 43 characters that no shell and no URL reads as anything else."""
    return f"{KEY}{secrets.token_urlsafe(32)}"


def new_key_id() -> str:
    return f"key_{secrets.token_hex(8)}"


def digest_of(key: str) -> bytes:
    """A key is long and random: nothing is won by a slow hash, and no table has it."""
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
