from __future__ import annotations

import asyncio
import contextlib
import json
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, Finished, ItemBegan, ItemEnded, Text, Used
from isthmus.bridge.dialects.codex import wire
from isthmus.bridge.dialects.codex.dynamic_tools import build_dynamic_tools
from isthmus.bridge.dialects.codex.wire import (
    ThreadSpec,
    TurnSpec,
    build_send_user_message_params,
    build_send_user_turn_params,
    text_input,
)
from isthmus.errors import UpstreamFailed
from isthmus.upstream.codex.methods import ToolOutput
from isthmus.upstream.codex.options import ProcessOptions
from isthmus.upstream.codex.process import start_process
from isthmus.upstream.codex.session import CodexSessions
from isthmus.upstream.codex.supervisor import Supervisor

LOOKUP = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}
SPEC = ThreadSpec("m", tuple(build_dynamic_tools([LOOKUP])), {"lookup": "lookup"}, cwd="/work")


@contextlib.asynccontextmanager
async def _sessions(folder: Path) -> AsyncIterator[CodexSessions]:
    program = folder / "codex"
    script = Path(__file__).with_name("older_codex.py")
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "{folder / "asked"}"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    options = ProcessOptions(binary=program, home=folder)
    async with CodexSessions(Supervisor(lambda: start_process(options))) as sessions:
        yield sessions


async def _collect(leg: AsyncGenerator[Delta, None]) -> list[Delta]:
    async with contextlib.aclosing(leg):
        return [delta async for delta in leg if not isinstance(delta, Used | ItemBegan | ItemEnded)]


def _asked(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "asked").read_text().splitlines()]


def test_an_older_binary_is_spoken_to_in_its_own_words(tmp_path: Path) -> None:
    async def check() -> None:
        async with _sessions(tmp_path) as sessions:
            thread = await sessions.start(SPEC)
            deltas = await _collect(thread.run(TurnSpec(items=(text_input("hi"),))))
            assert deltas == [
                Text("Let me "),
                Text("see."),
                CallOpened(0, "call_1", "lookup"),
                CallArguments(0, '{"id":1}', whole=True),
                Finished("tool_calls"),
            ]
            deltas = await _collect(thread.answer({"call_1": ToolOutput("found")}))
            assert deltas == [Text("found"), Finished("stop")]
            assert sessions.health().malformed_lines == 1

    asyncio.run(asyncio.wait_for(check(), 60))
    asked = _asked(tmp_path)
    methods = [message["method"] for message in asked if "method" in message]
    assert methods[:6] == [
        "initialize",
        "initialized",
        "thread/start",
        "newConversation",
        "addConversationListener",
        "sendUserMessage",
    ]
    by_method: dict[Any, Any] = {message.get("method"): message.get("params") for message in asked}
    assert [tool["name"] for tool in by_method["newConversation"]["dynamicTools"]] == ["lookup"]
    assert by_method["sendUserMessage"] == build_send_user_message_params("conv-1", [text_input("hi")])
    replies = {message["id"]: message for message in asked if "method" not in message}
    assert replies[0]["result"] == {"output": "found", "success": True}
    assert replies["odd"]["error"]["code"] == -32601


def test_a_turn_with_settings_of_its_own_takes_the_older_method_that_carries_them(tmp_path: Path) -> None:
    turn = TurnSpec((text_input("hi"),), effort="low")

    async def check() -> None:
        async with _sessions(tmp_path) as sessions:
            await _collect((await sessions.start(SPEC)).run(turn))

    asyncio.run(asyncio.wait_for(check(), 60))
    by_method = {message.get("method"): message.get("params") for message in _asked(tmp_path)}
    assert by_method["sendUserTurn"] == build_send_user_turn_params("conv-1", SPEC, turn)
    assert "sendUserMessage" not in by_method


def test_the_seeds_own_functions_make_what_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is on the way of a real turn: a mark that it leaves arrives at the program."""

    def mark(name: str) -> None:
        build = getattr(wire, name)
        monkeypatch.setattr(wire, name, lambda *given: {**build(*given), "mark": name})

    mark("build_new_conversation_params")
    mark("build_send_user_message_params")

    async def check() -> None:
        async with _sessions(tmp_path) as sessions:
            await _collect((await sessions.start(SPEC)).run(TurnSpec((text_input("hi"),))))

    asyncio.run(asyncio.wait_for(check(), 60))
    by_method: dict[Any, Any] = {message.get("method"): message.get("params") for message in _asked(tmp_path)}
    assert by_method["newConversation"]["mark"] == "build_new_conversation_params"
    assert by_method["sendUserMessage"]["mark"] == "build_send_user_message_params"


def test_the_older_words_are_remembered(tmp_path: Path) -> None:
    async def check() -> None:
        async with _sessions(tmp_path) as sessions:
            await sessions.start(SPEC)
            await sessions.start(SPEC)

    asyncio.run(asyncio.wait_for(check(), 60))
    methods = [message.get("method") for message in _asked(tmp_path)]
    assert methods.count("thread/start") == 1
    assert methods.count("newConversation") == 2


def test_an_older_binary_cannot_take_over_a_history_and_says_so(tmp_path: Path) -> None:
    async def check() -> None:
        async with _sessions(tmp_path) as sessions:
            with pytest.raises(UpstreamFailed, match="too old"):
                await sessions.start(SPEC, [{"type": "message", "role": "user", "content": []}])

    asyncio.run(asyncio.wait_for(check(), 60))
