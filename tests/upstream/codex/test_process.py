"""One program: the handshake, requests, what it asks us, its end; and that it repeats nothing that it was handed."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from codex_program import alive, heard, install, until_heard
from isthmus.bridge.deltas import Failed
from isthmus.bridge.dialects.codex.decode import LegDecoder
from isthmus.errors import ConfigError, UpstreamFailed
from isthmus.upstream.codex.failures import CodexGone
from isthmus.upstream.codex.options import CodexOptions
from isthmus.upstream.codex.process import CodexProcess, start_process
from isthmus.upstream.codex.turns import TurnMessage
from leaking import assert_silent, everything_of

KEY = "anOperatorsKey.4f8a1c93d7e25b60"
PROGRAM = """
import json, os, sys
key = os.environ["MY_KEY"]
def send(message): print(json.dumps(message), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            send({"id": asked["id"], "result": {"userAgent": "codex/0.163.0"}})
        case "refuse":
            send({"id": asked["id"], "error": {"code": -32600, "message": "x" * 990 + key}})
        case "fail":
            error = {"message": f"no {key}", "codexErrorInfo": "other", "additionalDetails": key}
            send({"method": "error", "params": {"threadId": "t", "error": error, "willRetry": False}})
            turn = {"status": "failed", "error": error}
            send({"method": "turn/completed", "params": {"threadId": "t", "turn": turn}})
            send({"method": "item/agentMessage/delta", "params": {"threadId": "t", "delta": "said"}})
        case "end":
            sys.exit(f"goodbye {key}")
"""


class Ear:
    """Hears everything; takes it or not."""

    def __init__(self, takes: bool = True) -> None:
        self.heard: list[tuple[str, TurnMessage]] = []
        self.lost: list[CodexGone] = []
        self.takes = takes
        self.more = asyncio.Event()

    def hear(self, thread_id: str, message: TurnMessage) -> bool:
        self.heard.append((thread_id, message))
        self.more.set()
        return self.takes

    def lose(self, gone: CodexGone) -> None:
        self.lost.append(gone)

    async def until(self, count: int) -> list[TurnMessage]:
        while len(self.heard) < count:
            self.more.clear()
            await self.more.wait()
        return [message for _, message in self.heard]


Scene = Callable[[CodexProcess, Ear], Coroutine[Any, Any, None]]


def _play(folder: Path, scene: Scene, *, takes: bool = True, **fields: Any) -> Ear:
    ear: Ear

    async def main() -> None:
        nonlocal ear
        ear = Ear(takes)
        process = await start_process(CodexOptions(binary=install(folder), **fields), ear)
        try:
            await scene(process, ear)
        finally:
            await process.close()

    asyncio.run(asyncio.wait_for(main(), 60))
    assert alive(folder / "codex") == []
    return ear


def test_it_shakes_hands_and_what_concerns_a_thread_goes_to_the_listener(tmp_path: Path) -> None:
    async def scene(process: CodexProcess, ear: Ear) -> None:
        assert process.user_agent == "codex/0.163.0"
        thread = (await process.request("thread/start", {}))["thread"]["id"]
        await process.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "call"}]})
        assert [message.method for message in await ear.until(3)] == [
            "rawResponseItem/completed",
            "rawResponse/completed",
            "item/tool/call",
        ]
        assert {named for named, _ in ear.heard} == {thread}

    ear = _play(tmp_path, scene)
    assert heard(tmp_path / "codex")[1]["params"]["capabilities"] == {"experimentalApi": True}
    assert ["was shut down" in gone.message for gone in ear.lost] == [True], "told once"


def test_a_call_of_a_thread_that_nobody_has_is_refused(tmp_path: Path) -> None:
    async def scene(process: CodexProcess, ear: Ear) -> None:
        await process.request("turn/start", {"threadId": "t", "input": [{"type": "text", "text": "call"}]})
        await ear.until(5)  # the program goes on after the refusal

    _play(tmp_path, scene, takes=False)
    (refused,) = [line for line in heard(tmp_path / "codex") if "error" in line]
    assert refused["error"] == {"code": -32601, "message": "this client does not answer `item/tool/call`"}


@pytest.mark.parametrize(("policy", "decision"), [("decline", "decline"), ("accept", "accept")])
def test_an_approval_is_answered_by_policy(tmp_path: Path, policy: Literal["decline", "accept"], decision: str) -> None:
    async def scene(process: CodexProcess, ear: Ear) -> None:
        await process.request("turn/start", {"threadId": "t", "input": [{"type": "text", "text": "hi"}]})
        await ear.until(3)

    _play(tmp_path, scene, approvals=policy)
    (answer,) = heard(tmp_path / "codex", None)
    assert answer["result"] == {"decision": decision}


def test_a_process_that_dies_fails_what_waits_and_tells_the_listener_once(tmp_path: Path) -> None:
    async def scene(process: CodexProcess, ear: Ear) -> None:
        (tmp_path / "trouble").write_text("no model/list")
        waiting = asyncio.create_task(process.request("model/list", {}))
        await until_heard(tmp_path / "codex", "model/list")
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(CodexGone, match=r"exit code -9\) while `model/list` was waiting"):
            await waiting
        assert process.ended.is_set()
        with pytest.raises(CodexGone):
            await process.request("model/list", {})

    assert len(_play(tmp_path, scene).lost) == 1


def test_a_question_that_is_not_answered_ends_in_time(tmp_path: Path) -> None:
    async def scene(process: CodexProcess, ear: Ear) -> None:
        (tmp_path / "trouble").write_text("no model/list")
        with pytest.raises(UpstreamFailed, match=r"did not answer `model/list` within 0.1 s"):
            await process.request("model/list", {}, within=0.1)

    _play(tmp_path, scene)


@pytest.mark.parametrize("missing", ["binary", "cwd"])
def test_a_program_that_cannot_be_started_is_told_as_such(tmp_path: Path, missing: str) -> None:
    async def main() -> None:
        options = replace(CodexOptions(binary=install(tmp_path)), **{missing: tmp_path / "nothing"})
        with pytest.raises(ConfigError, match="binary"):
            await start_process(options, Ear())

    asyncio.run(main())


def test_a_program_that_is_too_old_is_told_and_ended(tmp_path: Path) -> None:
    program = install(tmp_path)
    script = tmp_path / "program.py"
    script.write_text(script.read_text().replace("codex/0.163.0", "codex/0.92.1"))

    async def main() -> None:
        with pytest.raises(ConfigError, match=r"`codex` \(0.92\) is too old"):
            await start_process(CodexOptions(binary=program), Ear())

    asyncio.run(main())
    assert alive(program) == []


def test_nothing_that_it_says_of_an_error_holds_a_key_that_it_was_handed(tmp_path: Path) -> None:
    program, script = tmp_path / "codex", tmp_path / "program.py"
    script.write_text(PROGRAM)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)

    async def main() -> None:
        ear = Ear()
        process = await start_process(CodexOptions(binary=program, environment={"MY_KEY": KEY}), ear)
        try:
            with pytest.raises(UpstreamFailed) as refused:
                await process.request("refuse", {})
            assert_silent([KEY], refusal=everything_of(refused.value))
            asking = asyncio.create_task(process.request("fail", {}))
            messages = await ear.until(3)
            assert_silent([KEY], messages=repr(messages))
            decoder = LegDecoder({})
            deltas = [delta for message in messages[:2] for delta in decoder.feed(message.method, message.params)]
            assert deltas == [Failed("no <redacted>", "server_error")]
            with pytest.raises(UpstreamFailed) as gone:
                await process.request("end", {})
            with pytest.raises(UpstreamFailed):
                await asking
            assert "goodbye" in process.stderr
            assert_silent([KEY], stderr=process.stderr, end=everything_of(gone.value))
        finally:
            await process.close()

    asyncio.run(main())
