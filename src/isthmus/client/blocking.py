"""Coroutines for programs that have no event loop of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def block_on(start: Callable[[], Coroutine[Any, Any, T]], name: str) -> T:
    """Run it to its end on a loop of its own; inside a running loop that is a mistake, and said so."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    raise RuntimeError(f"`{name}_sync` was called inside a running event loop; write `await bridge.{name}(…)` there")
