"""The registry: who is found, who makes room, who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from isthmus.bridge.dialects.codex.wire import ThreadSpec, TurnSpec, text_input
from isthmus.errors import UpstreamFailed
from isthmus.upstream.codex.failures import CodexGone, RpcRefused
from isthmus.upstream.codex.options import CodexOptions
from isthmus.upstream.codex.rpc import Notification, Request
from isthmus.upstream.codex.thread import CodexThread
from isthmus.upstream.codex.threads import Threads
from own_time import clock, run_in_own_time, turns

SPEC = ThreadSpec("m", tool_names={"look": "look"})


class Program:
    def __init__(self) -> None:
        self.told: list[str] = []
        self.count = 0
        self.refuses = ""
        self.slow = asyncio.Event()
        self.slow.set()

    async def request(self, method: str, params: dict[str, Any], *, within: float | None = None) -> dict[str, Any]:
        self.told.append(method)
        await self.slow.wait()
        if method == self.refuses:
            raise RpcRefused(method, -32600, "no")
        self.count += 1
        return {"thread": {"id": f"t{self.count}"}, "turn": {"id": f"turn{self.count}"}}

    def reply(self, identity: Any, result: dict[str, Any]) -> None: ...

    def reject(self, identity: Any, message: str) -> None: ...


class World:
    def __init__(self, **options: Any) -> None:
        self.program = Program()
        self.threads = Threads(CodexOptions(**options))

    async def idle(self, key: str, head: str = "head") -> CodexThread:
        return await self._kept(key, head, [("turn/completed", {"turn": {"status": "completed"}})])

    async def held(self, key: str, head: str = "head") -> CodexThread:
        item = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}
        return await self._kept(
            key, head, [("rawResponseItem/completed", {"item": item}), ("rawResponse/completed", {})]
        )

    async def _kept(self, key: str, head: str, messages: list[tuple[str, dict[str, Any]]]) -> CodexThread:
        thread = await self.threads.open(self.program, SPEC)
        await thread.run(TurnSpec((text_input("hi"),)))
        for method, params in messages:
            assert self.threads.hear(thread.id, Notification(method, {"threadId": thread.id, **params}))
        if len(messages) > 1:
            assert self.threads.hear(thread.id, Request(0, "item/tool/call", {"callId": "a", "tool": "look"}))
        while await thread.read():
            pass
        self.threads.keep(thread, key, head)
        return thread


def _run(test: Coroutine[Any, Any, None]) -> None:
    run_in_own_time(asyncio.wait_for(test, 3600))


def test_a_thread_is_found_at_its_place_and_by_nobody_else() -> None:
    async def check() -> None:
        world = World()
        thread = await world.idle("here")
        assert world.threads.take("there", "head") is None
        assert world.threads.take("here", "head") is thread
        assert thread.state == "busy"
        assert world.threads.take("here", "head") is None

    _run(check())


def test_another_head_leaves_an_idle_thread_and_closes_a_held_one() -> None:
    async def check() -> None:
        world = World()
        idle, held = await world.idle("idle"), await world.held("held")
        assert world.threads.take("idle", "other") is world.threads.take("held", "other") is None
        assert (idle.state, held.state) == ("idle", "closing")
        assert world.threads.take("idle", "head") is idle

    _run(check())


def test_of_two_threads_with_the_same_past_the_later_one_is_kept() -> None:
    async def check() -> None:
        world = World()
        first, second = await world.idle("key"), await world.idle("key")
        assert world.threads.take("key", "head") is second
        await turns()
        assert (first.state, len(world.threads)) == ("closed", 1)

    _run(check())


def test_those_that_nobody_comes_back_to_are_closed_each_in_its_time() -> None:
    async def check() -> None:
        world = World(idle=10, hold=100)
        idle, held, taken = await world.idle("idle"), await world.held("held"), await world.idle("taken")
        assert world.threads.take("taken", "head") is taken
        clock().skip(50)
        await turns()
        assert (idle.state, held.state, taken.state) == ("closed", "held", "busy")
        clock().skip(100)
        await turns()
        assert (held.state, taken.state, len(world.threads)) == ("closed", "busy", 1)
        assert world.threads.take("held", "head") is None

    _run(check())


def test_the_idle_make_room_first_and_the_longest_first() -> None:
    async def check() -> None:
        world = World(max_threads=3)
        held, old, young = await world.held("held"), await world.idle("old"), await world.idle("young")
        clock().stop_clock()
        for gone, left in ((old, [held, young]), (young, [held]), (held, [])):
            await world.threads.open(world.program, SPEC)
            assert gone.state == "closed"
            assert all(thread.state in ("idle", "held") for thread in left)
        with pytest.raises(UpstreamFailed, match="all 3 codex threads are busy") as busy:
            await world.threads.open(world.program, SPEC)
        assert (busy.value.code, busy.value.status, busy.value.retry_after) == ("server_is_overloaded", 503, 1.0)

    _run(check())


def test_a_thread_that_is_being_given_its_history_makes_room_for_nobody() -> None:
    """It has no turn yet, and still it is somebody's."""

    async def check() -> None:
        world = World(max_threads=1)
        history = [{"type": "message", "role": "user", "content": []}]
        first = asyncio.create_task(world.threads.open(world.program, SPEC, history))
        await turns(2)
        world.program.slow.clear()
        await turns()
        assert world.program.told == ["thread/start", "thread/inject_items"]
        with pytest.raises(UpstreamFailed, match="busy"):
            await world.threads.open(world.program, SPEC)
        world.program.slow.set()
        assert (await first).state == "busy"

    _run(check())


def test_whoever_takes_leave_is_waited_for_because_the_program_still_holds_it() -> None:
    async def check() -> None:
        world = World(max_threads=1)
        thread = await world.idle("key")
        world.program.slow.clear()
        thread.close()
        opening = asyncio.create_task(world.threads.open(world.program, SPEC))
        await turns()
        assert world.program.told[-1] == "thread/unsubscribe"
        world.program.slow.set()
        assert (await opening).state == "busy"

    _run(check())


def test_a_history_that_is_refused_leaves_no_thread() -> None:
    async def check() -> None:
        world = World()
        world.program.refuses = "thread/inject_items"
        with pytest.raises(RpcRefused):
            await world.threads.open(world.program, SPEC, [{"type": "message"}])
        await turns()
        assert (world.program.told[-1], len(world.threads)) == ("thread/unsubscribe", 0)

    _run(check())


def test_a_lost_process_takes_all_its_threads_along() -> None:
    async def check() -> None:
        world = World()
        idle, busy = await world.idle("idle"), await world.threads.open(world.program, SPEC)
        await busy.run(TurnSpec())
        world.threads.lose(CodexGone("ended", stderr="why"))
        assert (idle.state, busy.state, len(world.threads)) == ("closed", "closed", 0)
        assert world.threads.take("idle", "head") is None
        with pytest.raises(CodexGone) as gone:
            await busy.read()
        assert gone.value.metadata == {"stderr": "why"}
        assert not world.threads.hear(busy.id, Notification("x"))

    _run(check())


def test_nothing_is_left_at_the_end() -> None:
    async def check() -> None:
        world = World()
        before = asyncio.all_tasks()
        await world.idle("idle")
        await world.held("held")
        await world.threads.open(world.program, SPEC)
        await world.threads.aclose()
        assert len(world.threads) == 0
        assert asyncio.all_tasks() == before

    _run(check())
