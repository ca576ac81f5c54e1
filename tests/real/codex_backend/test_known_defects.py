"""The seven ways in which a known proxy breaks on the real binary; here each is a fact that holds.

Other tests beside this one look at the same ground more closely; these names are the checklist.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from isthmus.bridge.deltas import Failed, Finished, Text
from isthmus.bridge.dialects.codex.wire import ThreadSpec
from isthmus.testing import Gate, error, stream
from isthmus.upstream.codex.failures import RpcRefused
from real.codex_backend.rig import (
    WEATHER,
    answer,
    ask,
    calls,
    calls_of,
    closed_message,
    collect,
    completed,
    in_loop,
    next_said,
    opened_message,
    outputs_in,
    real,
    rig,
    run,
    says,
    spec,
    text_delta,
    text_of,
)

pytestmark = real

SOON = 60.0
"""Seconds; the proxy took its whole timeout, ours would be 900."""


@in_loop
async def test_defect_1_tools_are_accepted_and_an_early_refusal_kills_nothing(tmp_path: Path) -> None:
    async with rig(tmp_path, says("Alive")) as codex:
        reserved = ({"name": "mcp__x", "inputSchema": {"type": "object"}},)
        with pytest.raises(RpcRefused, match="reserved"):
            await codex.start(ThreadSpec("m", reserved, {"mcp__x": "x"}))
        thread = await codex.start(spec(WEATHER))
        assert text_of(await collect(run(thread, ask()))) == "Alive"
        assert codex.supervisor.health().restarts == 0


@in_loop
async def test_defect_2_tokens_stream_under_their_real_name(tmp_path: Path) -> None:
    gate = Gate("rest")
    answer = [*opened_message(), text_delta("a"), gate, text_delta("b"), closed_message("ab"), completed()]
    async with rig(tmp_path, stream(answer, done=False)) as codex:
        leg = run(await codex.start(spec()), ask())
        assert await next_said(leg) == Text("a")
        gate.open()
        assert text_of([delta async for delta in leg]) == "b"


@in_loop
async def test_defect_3_a_tool_call_finishes_its_leg_at_once(tmp_path: Path) -> None:
    async with rig(tmp_path, calls(("call_a", "get_weather", "{}"))) as codex:
        thread = await codex.start(spec(WEATHER))
        async with asyncio.timeout(SOON):
            deltas = await collect(run(thread, ask()))
        assert deltas[-1] == Finished("tool_calls")


@in_loop
async def test_defect_4_a_whole_reply_keeps_its_tool_call(tmp_path: Path) -> None:
    async with rig(tmp_path, calls(("call_a", "get_weather", "{}"))) as codex:
        thread = await codex.start(spec(WEATHER))
        assert calls_of(await collect(run(thread, ask()))) == [("call_a", "get_weather", "{}")]


@in_loop
async def test_defect_5_the_output_reaches_the_model_and_nobody_is_asked_twice(tmp_path: Path) -> None:
    async with rig(tmp_path, calls(("call_a", "get_weather", "{}")), says("Done")) as codex:
        thread = await codex.start(spec(WEATHER))
        await collect(run(thread, ask()))
        await collect(answer(thread, {"call_a": "21C"}))
        assert outputs_in(codex.bodies()[1]) == [("call_a", "21C")]
        assert len(codex.bodies()) == 2


@in_loop
async def test_defect_6_text_without_deltas_is_not_empty(tmp_path: Path) -> None:
    async with rig(tmp_path, stream([closed_message("Whole"), completed()], done=False)) as codex:
        thread = await codex.start(spec())
        assert text_of(await collect(run(thread, ask()))) == "Whole"


@in_loop
async def test_defect_7_a_failed_turn_resolves_with_the_real_error(tmp_path: Path) -> None:
    async with rig(tmp_path, error(400, "the real reason")) as codex:
        thread = await codex.start(spec())
        async with asyncio.timeout(SOON):
            assert await collect(run(thread, ask())) == [Failed("the real reason", "invalid_prompt")]
