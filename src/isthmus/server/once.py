"""What is answered once, and whoever waits for it: a client that leaves stops the upstream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from starlette.types import Receive, Scope

from isthmus.gateway.once import Once
from isthmus.server.http import ClientLeft
from isthmus.server.leaving import leaving_of
from isthmus.server.sinks import has_left

_T = TypeVar("_T")


async def answer_of(once: Once[Any, _T], scope: Scope, receive: Receive) -> _T:
    """Raises `ClientLeft`, and what the answer fails with."""
    with watched(once, scope, receive):
        try:
            return await once.answer()
        except asyncio.CancelledError:
            if once.ended().outcome != "cancelled":
                raise
            raise ClientLeft from None


@contextmanager
def watched(once: Once[Any, Any], scope: Scope, receive: Receive) -> Iterator[None]:
    leaving = leaving_of(scope)
    if leaving is not None:
        leaving.then(lambda: once.stop("left"))
        try:
            yield
        finally:
            leaving.then(None)
        return
    watching = asyncio.create_task(_stop_when_left(once, receive))
    try:
        yield
    finally:
        watching.cancel()


async def _stop_when_left(once: Once[Any, Any], receive: Receive) -> None:
    await has_left(receive)
    once.stop("left")
