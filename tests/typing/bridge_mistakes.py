"""Mistakes that the type checker must find: each line below carries the code of its error."""

from __future__ import annotations

from isthmus import Bridge, Limits, tool


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def use(bridge: Bridge) -> None:
    add("1", 2)  # type: ignore[arg-type]
    await bridge.run("m", "hi", temprature=1)  # type: ignore[call-overload]
    await bridge.run("m", "hi", on_limit="explode")  # type: ignore[call-overload]
    await bridge.chat("m", "hi", temperature="hot")  # type: ignore[arg-type]
    Limits(max_turns="3")  # type: ignore[arg-type]
    run = await bridge.run("m", "hi")
    run.output.upper()  # type: ignore[union-attr]
    (await bridge.resume(run)).output.upper()  # type: ignore[union-attr]
    await bridge.resume(run, temprature=1)  # type: ignore[call-overload]
    await bridge.resume(run, approvals={"a": "yes"})  # type: ignore[dict-item]
