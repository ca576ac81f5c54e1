"""Agents on a scripted model: the tools they use, and the way to run a scene."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from isthmus import Bridge, tool
from isthmus.testing import ScriptedModel

Scene = Callable[[Bridge, ScriptedModel], Coroutine[Any, Any, None]]


def with_model(script: list[Any], scenario: Scene, **options: Any) -> None:
    """Run a scene against a model with this script, all of which must be used."""

    async def main() -> None:
        model = ScriptedModel(script)
        async with Bridge(connect=model, **options) as bridge:
            await scenario(bridge, model)
        assert model.remaining == 0

    asyncio.run(main())


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool
def explode() -> str:
    """Fail."""
    raise LookupError("no such row")


def call(id: str, name: str = "double", **arguments: Any) -> tuple[str, str, dict[str, Any]]:
    """A call as scripts write it."""
    return id, name, arguments
