"""Waiting for a state that tells nobody when it is reached: another process, another thread, a file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

from isthmus.testing.signals import PATIENCE

T = TypeVar("T")
_PAUSE: Final = 0.005


def until(reached: Callable[[], T], what: str | Callable[[], object] = "it never came to that") -> T:
    """What `reached` gives, as soon as that is true; `what` is said when it never is."""
    deadline = time.monotonic() + PATIENCE
    while not (found := reached()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(_PAUSE)
    return found


async def until_soon(reached: Callable[[], T], what: str = "it never came to that") -> T:
    """The same beside a running loop."""
    deadline = time.monotonic() + PATIENCE
    while not (found := reached()):  # what is waited for here has no event
        assert time.monotonic() < deadline, what
        await asyncio.sleep(_PAUSE)
    return found
