"""Call ids in the shape a provider insists on: the same id gives the same shape in every request.

In: ids that are unique in the history. Out: ids that are unique in the request. Calls and their results
are written with the same codec, so they still find each other.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable
from typing import Final, Literal

_ALPHABET: Final = string.ascii_letters + string.digits
_LENGTH: Final = 9


def create_call_id_codec(rule: Literal["keep", "alphanumeric9"]) -> Callable[[str], str]:
    """One codec per request: it remembers what it gave out."""
    if rule == "keep":
        return str
    given: dict[str, str] = {}
    taken: set[str] = set()

    def encode(call_id: str) -> str:
        if call_id not in given:
            fits = len(call_id) == _LENGTH and call_id.isascii() and call_id.isalnum()
            short, attempt = call_id if fits else _shorten(call_id, 0), 0
            while short in taken:
                attempt += 1
                short = _shorten(call_id, attempt)
            taken.add(short)
            given[call_id] = short
        return given[call_id]

    return encode


def _shorten(call_id: str, attempt: int) -> str:
    digest = hashlib.sha256(f"{attempt}:{call_id}".encode("utf-8", "surrogatepass")).digest()
    number = int.from_bytes(digest[:12], "big")
    letters = []
    for _ in range(_LENGTH):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)
