"""The memory of this process, where the system tells it, and how to give back what nobody uses.

glibc keeps what was freed for later, in as many arenas as threads met, so that a gateway that once had a hundred large
requests would keep their room for ever. Two arenas are enough for the few threads here; large buffers get pages of
their own, which go back when they are freed; the rest is given back when memory has stopped growing (`vitals`). Other
C libraries see to it themselves, or not at all.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

_STATM: Final = Path("/proc/self/statm")
_ARENA_MAX: Final = -8
_MMAP_THRESHOLD: Final = -3
_ARENAS: Final = 2
_SEARCHES: Final = (20_000, 5, 5)
"""New objects before a search for garbage among the youngest, and how many of these before one among the older."""
_MOST_LITTER: Final = 64_000_000
_LARGE: Final = 1 << 20
"""Bytes of a buffer that gets pages of its own. Setting it keeps glibc from raising it to 32 MB by and by."""


def resident() -> int | None:
    """Bytes of memory that this process takes; `None`: nobody says."""
    try:
        pages = _STATM.read_bytes().split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGESIZE")


def tune_allocator() -> bool:
    """Once, before there are threads. False: it is not glibc's, and is left alone."""
    library = _glibc()
    if library is None:
        return False
    library.mallopt(_ARENA_MAX, _ARENAS)
    library.mallopt(_MMAP_THRESHOLD, _LARGE)
    return True


def search_seldom() -> None:
    """Once, when everything is loaded: what a process has then stays, and each full search for garbage would hold the
    loop up to look at all of it again (some 60,000 objects, 15 ms). What requests leave behind is gone without a
    search, but for what failed: that is looked for after so many objects, not after 700, which took an eighth of all
    time. While things are loaded there is nothing to find: the command switches the searches off, and this on again."""
    gc.freeze()
    gc.set_threshold(*_SEARCHES)
    gc.enable()


class Litter:
    """Bytes that may lie about until somebody looks for garbage: a few objects may hold much, and are not counted by
    what they hold."""

    __slots__ = ("_left", "_most")

    def __init__(self, most: int = _MOST_LITTER) -> None:
        self._most = self._left = most

    def dropped(self, size: int) -> None:
        """Something of this size is over; if it was not let go of, it is found now, or before so much more is."""
        self._left -= size
        if self._left < 0:
            self._left = self._most
            gc.collect(1)


def give_back() -> bool:
    """Let go of free memory; takes milliseconds, without the interpreter's lock. False: there is no way to."""
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))


@cache
def _glibc() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.CDLL(None)
        _: Callable[..., Any] = library.malloc_trim  # musl has none
    except (OSError, AttributeError):
        return None
    return library
