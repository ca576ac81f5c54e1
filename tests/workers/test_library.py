"""The library checks answers in worker processes too, and bounds the schemas that it compiles itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isthmus import Bridge, Tool
from isthmus.config.schema import Config, Limits
from isthmus.errors import RequestRefused
from isthmus.testing import ScriptedUpstream, chat
from isthmus.wiring_bridge import LocalConnect

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def doubling(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {"d0": {"type": "object"}}
    for level in range(1, levels + 1):
        made[f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    return {"$ref": f"#/$defs/d{levels}", "$defs": made}


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}/exe").exists()


async def test_an_answer_is_checked_by_a_worker_that_ends_with_the_bridge() -> None:
    with ScriptedUpstream.running() as upstream:
        upstream.push(chat('{"n": "one"}'), chat('{"n": 1}'))
        profiles = {"deepseek": {"default": {"api_key": "k", "base_url": upstream.base_url}}}
        bridge = Bridge(profiles)
        connect = bridge._connect
        assert isinstance(connect, LocalConnect)
        async with bridge:
            run = await bridge.run("deepseek/deepseek-v4-pro", "Go", output_type=SCHEMA)
            assert run.output == {"n": 1}
            assert len(upstream.requests) == 2  # the first answer broke the contract and was asked for again
            workers = connect._workers
            assert workers is not None
            pids = workers.pids
            assert pids
        assert workers.pids == []
        assert not any(map(_runs, pids))


async def test_a_bridge_that_checks_nothing_starts_no_process() -> None:
    with ScriptedUpstream.running() as upstream:
        upstream.push(chat("Hello."))
        async with Bridge({"deepseek": {"default": {"api_key": "k", "base_url": upstream.base_url}}}) as bridge:
            await bridge.run("deepseek/deepseek-v4-pro", "Hi")
            assert isinstance(bridge._connect, LocalConnect)
            assert bridge._connect._workers is not None
            assert bridge._connect._workers.started == 0


def test_a_tool_with_a_schema_beyond_the_bounds_is_refused_when_it_is_made() -> None:
    with pytest.raises(RequestRefused, match=r"`f\.parameters`.*`checks\.max_expanded`") as refused:
        Tool.from_schema("f", "A tool", {"type": "object", **doubling(40)})
    assert refused.value.code == "schema_too_large"


async def test_the_limits_of_the_configuration_hold_for_the_library_too() -> None:
    with ScriptedUpstream.running([chat("hello")]) as upstream:
        profiles = {"deepseek": {"default": {"api_key": "k", "base_url": upstream.base_url}}}
        async with Bridge(profiles, config=Config(limits=Limits(max_items=3))) as bridge:
            with pytest.raises(RequestRefused, match=r"`limits\.max_items`"):
                await bridge.chat("deepseek/m", [{"role": "user", "content": "hi"}] * 4)
            assert upstream.requests == []
            await bridge.chat("deepseek/m", [{"role": "user", "content": "hi"}] * 3)
            assert len(upstream.requests) == 1
