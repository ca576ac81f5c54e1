"""A Codex process that repeats what it was handed: in a refusal, in a turn's error, in its last words."""

from __future__ import annotations

import asyncio
import stat
import sys
from pathlib import Path

import pytest

from isthmus.bridge.deltas import Failed
from isthmus.bridge.dialects.codex.decode import LegDecoder
from isthmus.errors import UpstreamFailed
from isthmus.upstream.codex.options import ProcessOptions
from isthmus.upstream.codex.process import start_process
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
            event = {"type": "error", "message": f"no {key}"}
            send({"method": "codex/event/error", "params": {"conversationId": "t", "msg": event}})
            send({"method": "item/agentMessage/delta", "params": {"threadId": "t", "delta": "said"}})
        case "end":
            sys.exit(f"goodbye {key}")
"""


def test_nothing_that_it_says_of_an_error_holds_a_key_that_it_was_handed(tmp_path: Path) -> None:
    program, script = tmp_path / "codex", tmp_path / "program.py"
    script.write_text(PROGRAM)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)

    async def main() -> None:
        process = await start_process(ProcessOptions(binary=program, environment={"MY_KEY": KEY}))
        try:
            with pytest.raises(UpstreamFailed) as refused:
                await process.request("refuse", {})
            assert_silent([KEY], refusal=everything_of(refused.value))
            turn = process.open_turn("t")
            asking = asyncio.create_task(process.request("fail", {}))
            heard = [await turn.get() for _ in range(4)]
            assert_silent([KEY], messages=repr(heard))
            decoder = LegDecoder({}, marks_responses=True)
            deltas = [delta for message in heard[:2] for delta in decoder.feed(message.method, message.params)]
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
