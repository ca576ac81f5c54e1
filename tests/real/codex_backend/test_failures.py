"""What goes wrong, and how it is told: upstream errors, lost processes, limits."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from isthmus.bridge.deltas import Failed, Finished, Text
from isthmus.bridge.dialects.codex.errors import LOGIN_MESSAGE
from isthmus.bridge.dialects.codex.wire import TurnSpec
from isthmus.errors import UpstreamFailed
from isthmus.testing import HANG, error, stream
from isthmus.upstream.codex.failures import CodexGone, RpcRefused
from real.codex_backend.rig import (
    WEATHER,
    answer,
    ask,
    calls,
    collect,
    in_loop,
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


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (400, "bad thing", Failed("bad thing", "invalid_prompt")),
        (401, "no key sk-12345678", Failed(LOGIN_MESSAGE, "upstream_unauthorized")),
        (429, "slow down", Failed("exceeded retry limit, last status: 429 Too Many Requests", "rate_limit_exceeded")),
        (500, "boom", "server_error"),
        (503, "busy", "server_is_overloaded"),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_upstream_errors_end_the_turn_with_a_code_clients_know(
    tmp_path: Path, status: int, message: str, expected: Failed | str
) -> None:
    @in_loop
    async def check() -> None:
        async with rig(tmp_path, error(status, message)) as codex:
            thread = await codex.start(spec())
            deltas = await collect(run(thread, ask()))
            (failed,) = deltas
            assert isinstance(failed, Failed)
            assert expected in (failed, failed.code)
            assert thread.rests is None
            assert len(codex.bodies()) == 1

    check()


def _failed(code: str) -> dict[str, Any]:
    return {"type": "response.failed", "response": {"id": "r", "error": {"code": code, "message": "m"}}}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (_failed("context_length_exceeded"), "context_length_exceeded"),
        (_failed("insufficient_quota"), "insufficient_quota"),
        (_failed("rate_limit_exceeded"), "rate_limit_exceeded"),
        ({"type": "response.created", "response": {"id": "r"}}, "server_error"),
    ],
    ids=["context", "quota", "rate", "broken-off"],
)
def test_failures_inside_the_stream_are_mapped(tmp_path: Path, event: dict[str, Any], expected: str) -> None:
    @in_loop
    async def check() -> None:
        async with rig(tmp_path, stream([event], done=False)) as codex:
            thread = await codex.start(spec())
            (failed,) = await collect(run(thread, ask()))
            assert isinstance(failed, Failed)
            assert failed.code == expected

    check()


@in_loop
async def test_an_answer_cut_short_is_a_length_finish(tmp_path: Path) -> None:
    cut = {
        "type": "response.incomplete",
        "response": {"id": "r", "incomplete_details": {"reason": "max_output_tokens"}},
    }
    async with rig(tmp_path, stream([*opened_message(), text_delta("Half"), cut], done=False)) as codex:
        thread = await codex.start(spec())
        assert await collect(run(thread, ask())) == [Text("Half"), Finished("length")]


@in_loop
async def test_a_process_lost_in_mid_turn_fails_each_open_turn_once(tmp_path: Path) -> None:
    hanging = stream([*opened_message(), text_delta("Hel"), HANG], done=False)
    async with rig(tmp_path, hanging, hanging, says("Back")) as codex:
        threads = [await codex.start(spec()) for _ in range(2)]
        readers = [asyncio.create_task(collect(run(thread, ask()))) for thread in threads]
        await codex.upstream.received(2)
        process = await codex.supervisor.process()
        os.kill(process.pid, signal.SIGKILL)
        results = await asyncio.gather(*readers, return_exceptions=True)
        assert [type(result) for result in results] == [CodexGone, CodexGone]
        assert [thread.state for thread in threads] == ["closed", "closed"]
        # The supervisor has another one ready for whoever comes next.
        thread = await codex.start(spec())
        assert text_of(await collect(run(thread, ask()))) == "Back"
        health = codex.supervisor.health()
        assert (health.state, health.restarts) == ("ready", 1)
        assert health.pid != process.pid


@in_loop
async def test_a_process_lost_between_call_and_answer_goes_on_from_injected_history(tmp_path: Path) -> None:
    async with rig(tmp_path, calls(("call_a", "get_weather", '{"city": "Paris"}')), says("Sunny")) as codex:
        thread = await codex.start(spec(WEATHER))
        await collect(run(thread, ask("Weather?")))
        process = await codex.supervisor.process()
        os.kill(process.pid, signal.SIGKILL)
        await process.ended.wait()
        with pytest.raises(CodexGone, match="gone"):
            await collect(answer(thread, {"call_a": "21"}))
        assert thread.state == "closed"
        history: list[dict[str, Any]] = [
            {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "SYS"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"type": "function_call", "call_id": "call_a", "name": "get_weather", "arguments": '{"city": "Paris"}'},
            {"type": "function_call_output", "call_id": "call_a", "output": "21"},
        ]
        again = await codex.start(spec(WEATHER), history)
        assert text_of(await collect(run(again, TurnSpec()))) == "Sunny"
        body = codex.bodies()[1]
        assert outputs_in(body) == [("call_a", "21")]
        assert [item.get("role", item["type"]) for item in body["input"]] == [
            "developer",
            "developer",
            "user",
            "function_call",
            "function_call_output",
        ]


@in_loop
async def test_a_call_that_codex_refuses_leaves_the_process_alone(tmp_path: Path) -> None:
    async with rig(tmp_path, says("Fine")) as codex:
        thread = await codex.start(spec())
        with pytest.raises(RpcRefused) as refused:
            await collect(run(thread, TurnSpec(items=({"type": "image", "url": "https://example.com/a.png"},))))
        assert refused.value.code == "invalid_prompt"
        other = await codex.start(spec())
        assert text_of(await collect(run(other, ask()))) == "Fine"
        assert codex.supervisor.health().restarts == 0


@in_loop
async def test_threads_are_bounded_and_the_idle_ones_make_room(tmp_path: Path) -> None:
    hanging = stream([*opened_message(), text_delta("Hel"), HANG], done=False)
    async with rig(tmp_path, says("Hi"), hanging, max_threads=2) as codex:
        first, second = await codex.start(spec()), await codex.start(spec())
        with pytest.raises(UpstreamFailed) as busy:
            await codex.start(spec())
        assert (busy.value.code, busy.value.status) == ("server_is_overloaded", 503)
        await collect(run(first, ask()))
        codex.threads.keep(first, "key", "head")
        reader = asyncio.create_task(collect(run(second, ask())))
        await codex.upstream.received(2)
        third = await codex.start(spec())
        assert (first.state, second.state, third.state) == ("closed", "busy", "busy")
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


@in_loop
async def test_a_closed_thread_leaves_the_process_too(tmp_path: Path) -> None:
    async with rig(tmp_path, says("Hi")) as codex:
        thread = await codex.start(spec())
        await collect(run(thread, ask()))
        process = await codex.supervisor.process()
        assert (await process.request("thread/loaded/list", {}))["data"] == [thread.id]
        thread.close()
        for _ in range(1000):
            if not (await process.request("thread/loaded/list", {}))["data"]:
                return
            await asyncio.sleep(0.05)
        pytest.fail("the thread is still loaded")
