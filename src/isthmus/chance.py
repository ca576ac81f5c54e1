"""Random text for ids, from the system's own source of chance, of which many are asked for at a time: each asking is a
system call.

What came before tells nobody what comes next. A process that was forked begins anew, or both would make the same.
"""

from __future__ import annotations

import os
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


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=_ready.clear)
