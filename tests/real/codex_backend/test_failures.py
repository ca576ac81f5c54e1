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
from isthmus.upstream.codex.methods import ToolOutput
from real.codex_backend.rig import (
    WEATHER,
    ask,
    calls,
    collect,
    in_loop,
    opened_message,
    outputs_in,
    real,
    rig,
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
            thread = await codex.sessions.start(spec())
            deltas = await collect(thread.run(ask()))
            (failed,) = deltas
            assert isinstance(failed, Failed)
            assert expected in (failed, failed.code)
            assert thread.state == "closed"
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
            thread = await codex.sessions.start(spec())
            (failed,) = await collect(thread.run(ask()))
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
        thread = await codex.sessions.start(spec())
        assert await collect(thread.run(ask())) == [Text("Half"), Finished("length")]


@in_loop
async def test_a_process_lost_in_mid_turn_fails_each_open_turn_once(tmp_path: Path) -> None:
    hanging = stream([*opened_message(), text_delta("Hel"), HANG], done=False)
    async with rig(tmp_path, hanging, hanging, says("Back")) as codex:
        threads = [await codex.sessions.start(spec()) for _ in range(2)]
        readers = [asyncio.create_task(collect(thread.run(ask()))) for thread in threads]
        await codex.upstream.received(2)
        process = await codex.supervisor.process()
        os.kill(process.pid, signal.SIGKILL)
        results = await asyncio.gather(*readers, return_exceptions=True)
        assert [type(result) for result in results] == [CodexGone, CodexGone]
        assert [thread.state for thread in threads] == ["closed", "closed"]
        # The supervisor has another one ready for whoever comes next.
        thread = await codex.sessions.start(spec())
        assert text_of(await collect(thread.run(ask()))) == "Back"
        health = codex.sessions.health()
        assert (health.state, health.restarts) == ("ready", 1)
        assert health.pid != process.pid


@in_loop
async def test_a_process_lost_between_call_and_answer_goes_on_from_injected_history(tmp_path: Path) -> None:
    async with rig(tmp_path, calls(("call_a", "get_weather", '{"city": "Paris"}')), says("Sunny")) as codex:
        thread = await codex.sessions.start(spec(WEATHER))
        await collect(thread.run(ask("Weather?")))
        process = await codex.supervisor.process()
        os.kill(process.pid, signal.SIGKILL)
        await process.ended.wait()
        with pytest.raises(CodexGone, match="gone"):
            await collect(thread.answer({"call_a": ToolOutput("21")}))
        assert codex.sessions.holding({"call_a"}) is None
        history: list[dict[str, Any]] = [
            {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "SYS"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"type": "function_call", "call_id": "call_a", "name": "get_weather", "arguments": '{"city": "Paris"}'},
            {"type": "function_call_output", "call_id": "call_a", "output": "21"},
        ]
        again = await codex.sessions.start(spec(WEATHER), history)
        assert text_of(await collect(again.run(TurnSpec()))) == "Sunny"
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
        thread = await codex.sessions.start(spec())
        with pytest.raises(RpcRefused) as refused:
            await collect(thread.run(TurnSpec(items=({"type": "image", "url": "https://example.com/a.png"},))))
        assert refused.value.code == "invalid_prompt"
        other = await codex.sessions.start(spec())
        assert text_of(await collect(other.run(ask()))) == "Fine"
        assert codex.sessions.health().restarts == 0


@in_loop
async def test_threads_are_bounded_and_the_idle_ones_make_room(tmp_path: Path) -> None:
    hanging = stream([*opened_message(), text_delta("Hel"), HANG], done=False)
    async with rig(tmp_path, hanging, hanging, max_threads=2) as codex:
        first, second = await codex.sessions.start(spec()), await codex.sessions.start(spec())
        third = await codex.sessions.start(spec())
        assert (first.state, second.state, third.state) == ("closed", "idle", "idle")
        readers = [asyncio.create_task(collect(thread.run(ask()))) for thread in (second, third)]
        await codex.upstream.received(2)
        with pytest.raises(UpstreamFailed) as busy:
            await codex.sessions.start(spec())
        assert (busy.value.code, busy.value.status) == ("server_is_overloaded", 503)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


@in_loop
async def test_idle_threads_are_closed_and_held_ones_live_longer(tmp_path: Path) -> None:
    now = [0.0]
    limits: dict[str, Any] = {"clock": lambda: now[0], "idle_seconds": 10, "held_seconds": 100}
    async with rig(tmp_path, calls(("call_a", "get_weather", "{}")), **limits) as codex:
        held, idle = await codex.sessions.start(spec(WEATHER)), await codex.sessions.start(spec())
        await collect(held.run(ask()))
        now[0] = 50.0
        assert await codex.sessions.sweep() == 1
        assert (idle.state, held.state) == ("closed", "paused")
        now[0] = 200.0
        assert await codex.sessions.sweep() == 1
        assert held.state == "closed"
        with pytest.raises(CodexGone):
            await collect(held.answer({"call_a": ToolOutput("x")}))


@in_loop
async def test_a_closed_thread_leaves_the_process_too(tmp_path: Path) -> None:
    async with rig(tmp_path, says("Hi")) as codex:
        thread = await codex.sessions.start(spec())
        await collect(thread.run(ask()))
        process = await codex.supervisor.process()
        assert (await process.request("thread/loaded/list", {}))["data"] == [thread.id]
        await thread.close()
        for _ in range(1000):
            if not (await process.request("thread/loaded/list", {}))["data"]:
                return
            await asyncio.sleep(0.05)
        pytest.fail("the thread is still loaded")


@in_loop
async def test_a_thread_that_nobody_waited_for_is_closed_as_soon_as_it_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rig(tmp_path) as codex:
        process = await codex.supervisor.process()
        asked, sent, send = [], asyncio.Event(), process.request

        async def request(method: str, params: dict[str, Any], **options: Any) -> dict[str, Any]:
            asked.append(method)
            sent.set()
            return await send(method, params, **options)

        monkeypatch.setattr(process, "request", request)
        starting = asyncio.create_task(codex.sessions.start(spec()))
        await sent.wait()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        (reaper,) = codex.sessions._reapers
        await reaper
        assert codex.sessions.count == 0
        assert asked == ["thread/start", "thread/unsubscribe"]
