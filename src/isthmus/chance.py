"""Random text for ids, from the system's own source of chance, of which many are asked for at a time: each asking is a
system call.

What came before tells nobody what comes next. A process that was forked begins anew, or both would make the same.
"""

from __future__ import annotations

import os
from time import time_ns
from typing import Final

_SIZE: Final = 16
"""Bytes of chance in one."""
_AT_ONCE: Final = 256
_ready: Final[list[str]] = []


def random_text() -> str:
    """32 hexadecimal digits that nobody has had before."""
    try:
        return _ready.pop()  # in one step: no two threads get the same
    except IndexError:
        digits = os.urandom(_SIZE * _AT_ONCE).hex()
        first, *more = [digits[start : start + 2 * _SIZE] for start in range(0, len(digits), 2 * _SIZE)]
        _ready.extend(more)
        return first


def dated_text() -> str:
    """As many, of which the first eleven are the time in milliseconds: what is kept under such ids one after the other
    stands side by side in a store's indexes, instead of on as many pages as there are ids."""
    return f"{time_ns() // 1_000_000:011x}{random_text()[11:]}"


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=_ready.clear)
