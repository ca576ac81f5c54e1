"""One leg of a Codex turn: what it said is what its thread is found by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

from isthmus.bridge.deltas import Delta, Finished, ItemBegan, ItemEnded, Text
from isthmus.bridge.dialects.codex.resume import read_continuation, said_key
from isthmus.upstream.codex.leg import Leg

BODY: dict[str, Any] = {"model": "m", "input": [{"type": "text", "text": "go"}]}


async def _deltas() -> AsyncGenerator[Delta, None]:
    for text in ("Looking at it.", "Done."):
        yield ItemBegan("message")
        yield Text(text)
        yield ItemEnded()
    yield Finished("stop")


async def _said() -> str:
    leg = Leg("codex", cast(Any, None), _deltas(), silence=60)
    async for _ in leg.read():
        pass
    assert leg.ended
    return leg.text


def test_a_thread_that_spoke_twice_is_found_again_by_the_two_messages() -> None:
    def message(role: str, kind: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    history = [
        message("user", "input_text", "go"),
        message("assistant", "output_text", "Looking at it."),
        message("assistant", "output_text", "Done."),
    ]
    later = {**BODY, "history": history, "input": [{"type": "text", "text": "more"}]}
    found = read_continuation(later)
    assert found is not None
    assert found.key == said_key(BODY, asyncio.run(_said()))
