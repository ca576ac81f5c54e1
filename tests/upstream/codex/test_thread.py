"""One thread's life, move by move, against a program that the test plays itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, get_args

import pytest

from isthmus.bridge.deltas import CallOpened, Failed, Finished, Text
from isthmus.bridge.dialects.codex.wire import ThreadSpec, TurnSpec, text_input
from isthmus.errors import UpstreamFailed
from isthmus.upstream.codex.failures import CodexGone, RpcRefused
from isthmus.upstream.codex.rpc import Notification, Request
from isthmus.upstream.codex.thread import _NEXT, CodexThread, State
from own_time import turns

SPEC = ThreadSpec("m", tool_names={"look": "look"})
TURN = TurnSpec((text_input("hi"),))


class Program:
    """Answers at once, unless a method is held back; writes down what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.replies: list[tuple[Any, Any]] = []
        self.answers: dict[str, Any] = {"thread/start": {"thread": {"id": "t"}}, "turn/start": {"turn": {"id": "1"}}}
        self.held_back: dict[str, asyncio.Event] = {}

    async def request(self, method: str, params: dict[str, Any], *, within: float | None = None) -> dict[str, Any]:
        self.told.append((method, params))
        if method in self.held_back:
            await self.held_back[method].wait()
        answer = self.answers.get(method, {})
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    def reply(self, identity: Any, result: dict[str, Any]) -> None:
        self.replies.append((identity, result))

    def reject(self, identity: Any, message: str) -> None:
        self.replies.append((identity, message))

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.told]


class Stage:
    def __init__(self) -> None:
        self.program = Program()
        self.states: list[State] = []
        self.thread = CodexThread(self.program, SPEC, lambda thread: self.states.append(thread.state), queue_size=9)

    def says(self, text: str, turn: str = "1") -> bool:
        return self.hears("item/agentMessage/delta", turn, itemId="m", delta=text)

    def hears(self, method: str, turn: str = "1", **params: Any) -> bool:
        return self.thread.hear(Notification(method, {"threadId": "t", "turnId": turn, **params}))

    def ends(self, status: str = "completed", turn: str = "1") -> None:
        self.thread.hear(Notification("turn/completed", {"threadId": "t", "turn": {"id": turn, "status": status}}))

    def calls(self, *call_ids: str, asked: tuple[str, ...] | None = None) -> None:
        for call_id in call_ids:
            item = {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}
            self.hears("rawResponseItem/completed", item=item)
        self.hears("rawResponse/completed")
        for call_id in call_ids if asked is None else asked:
            self.asks(call_id)

    def asks(self, call_id: str, turn: str = "1") -> bool:
        params = {"threadId": "t", "turnId": turn, "callId": call_id, "tool": "look", "arguments": {}}
        return self.thread.hear(Request(f"ask-{call_id}", "item/tool/call", params))

    async def running(self) -> Stage:
        await self.thread.open()
        await self.thread.run(TURN)
        return self

    async def read(self) -> list[Any]:
        heard: list[Any] = []
        while deltas := await self.thread.read():
            heard += [delta for delta in deltas if isinstance(delta, Text | CallOpened | Finished | Failed)]
        return heard

    async def parted(self) -> list[str]:
        """What was said to the program on leaving."""
        before = len(self.program.told)
        self.thread.close()
        assert self.thread.parting is not None
        await self.thread.parting
        return self.program.methods[before:]


def staged(test: Callable[[Stage], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    async def play() -> None:
        await test(Stage())

    return lambda: asyncio.run(asyncio.wait_for(play(), 60))


def test_every_state_has_its_moves_and_the_end_has_none() -> None:
    assert set(_NEXT) == set(get_args(State))
    assert _NEXT["closed"] == frozenset()
    assert all("closing" in _NEXT[state] for state in ("opening", "busy", "idle", "held"))


@staged
async def test_a_turn_is_run_and_the_thread_rests_for_the_next(stage: Stage) -> None:
    await stage.running()
    stage.says("Hel")
    stage.says("lo")
    stage.ends()
    assert await stage.read() == [Text("Hel"), Text("lo"), Finished("stop")]
    assert stage.thread.rests == "idle"
    stage.thread.rest()
    stage.thread.take()
    assert stage.states == ["busy", "idle", "busy"]
    assert stage.program.methods == ["thread/start", "turn/start"]


@staged
async def test_a_turn_that_waits_is_held_and_goes_on_with_its_outputs(stage: Stage) -> None:
    await stage.running()
    stage.calls("a", "b")
    assert (await stage.read())[-1] == Finished("tool_calls")
    assert (stage.thread.rests, stage.thread.pending) == ("held", ("a", "b"))
    stage.thread.rest()
    stage.thread.take()
    image = {"type": "input_image", "image_url": "data:x"}
    await stage.thread.answer({"b": "two", "a": [image]})
    stage.says("Both")
    stage.ends()
    assert await stage.read() == [Text("Both"), Finished("stop")]
    assert stage.program.replies == [
        ("ask-a", {"contentItems": [{"type": "inputImage", "imageUrl": "data:x"}], "success": True}),
        ("ask-b", {"contentItems": [{"type": "inputText", "text": "two"}], "success": True}),
    ]
    assert stage.thread.pending == ()


@staged
async def test_an_answer_waits_for_a_call_that_was_not_asked_for_yet(stage: Stage) -> None:
    await stage.running()
    stage.calls("a", "b", asked=("a",))
    await stage.read()
    stage.thread.rest()
    stage.thread.take()
    await stage.thread.answer({"a": "1", "b": "2"})
    stage.asks("b")
    stage.ends()
    assert await stage.read() == [Finished("stop")]
    assert [identity for identity, _ in stage.program.replies] == ["ask-a", "ask-b"]


@staged
async def test_what_an_earlier_turn_says_late_is_not_heard(stage: Stage) -> None:
    await stage.running()
    stage.says("old", turn="0")
    stage.asks("late", turn="0")
    stage.says("new")
    stage.ends()
    assert await stage.read() == [Text("new"), Finished("stop")]
    assert stage.program.replies == [("ask-late", "this turn is over")]
    stage.thread.rest()
    assert not stage.says("nobody listens")


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_a_turn_that_failed_leaves_nothing_to_go_on_with(status: str) -> None:
    @staged
    async def check(stage: Stage) -> None:
        await stage.running()
        stage.ends(status)
        (failed,) = await stage.read()
        assert isinstance(failed, Failed)
        assert stage.thread.rests is None
        assert await stage.parted() == ["thread/unsubscribe"]
        assert stage.states == ["busy", "closing", "closed"]

    check()


@staged
async def test_leaving_in_mid_turn_interrupts_it(stage: Stage) -> None:
    await stage.running()
    stage.says("Hel")
    assert await stage.parted() == ["turn/interrupt", "thread/unsubscribe"]
    assert stage.program.told[-2][1] == {"threadId": "t", "turnId": "1"}


@staged
async def test_leaving_a_held_turn_interrupts_it_and_an_idle_thread_has_none(stage: Stage) -> None:
    await stage.running()
    stage.calls("a")
    await stage.read()
    stage.thread.rest()
    assert await stage.parted() == ["turn/interrupt", "thread/unsubscribe"]


@staged
async def test_leaving_before_the_turn_has_a_name_waits_for_it(stage: Stage) -> None:
    gate = stage.program.held_back["turn/start"] = asyncio.Event()
    await stage.thread.open()
    starting = asyncio.create_task(stage.thread.run(TURN))
    await turns()
    starting.cancel()
    stage.thread.close()
    await turns()
    assert stage.program.methods == ["thread/start", "turn/start"]
    gate.set()
    assert stage.thread.parting is not None
    await stage.thread.parting
    assert stage.program.methods[2:] == ["turn/interrupt", "thread/unsubscribe"]


@staged
async def test_leaving_before_the_thread_has_a_name_closes_it_as_soon_as_it_has_one(stage: Stage) -> None:
    gate = stage.program.held_back["thread/start"] = asyncio.Event()
    opening = asyncio.create_task(stage.thread.open())
    await turns()
    opening.cancel()
    stage.thread.close()
    gate.set()
    assert stage.thread.parting is not None
    await stage.thread.parting
    assert stage.program.told[1:] == [("thread/unsubscribe", {"threadId": "t"})]
    assert stage.states == ["closing", "closed"]


@staged
async def test_a_farewell_that_is_refused_is_one_all_the_same(stage: Stage) -> None:
    stage.program.answers["turn/interrupt"] = RpcRefused("turn/interrupt", -32600, "no active turn to interrupt")
    stage.program.answers["thread/unsubscribe"] = CodexGone("gone")
    await stage.running()
    assert await stage.parted() == ["turn/interrupt", "thread/unsubscribe"]
    assert stage.thread.state == "closed"


@staged
async def test_a_lost_process_ends_the_reader_after_its_last_words(stage: Stage) -> None:
    await stage.running()
    stage.says("Hel")
    stage.thread.lose(CodexGone("the codex process ended"))
    assert await stage.thread.read()
    with pytest.raises(CodexGone, match="ended"):
        await stage.read()
    stage.thread.close()
    assert (stage.thread.state, stage.thread.parting) == ("closed", None)
    with pytest.raises(CodexGone, match="its history can be given"):
        stage.thread.take()


@pytest.mark.parametrize(("kind", "answer"), [("thread", {}), ("turn", {"turn": {}})])
def test_a_thing_without_a_name_is_none(kind: str, answer: dict[str, Any]) -> None:
    @staged
    async def check(stage: Stage) -> None:
        stage.program.answers[f"{kind}/start"] = answer
        with pytest.raises(UpstreamFailed, match=f"`{kind}/start` without an id"):
            await stage.running()

    check()


@staged
async def test_a_reader_that_falls_behind_loses_its_turn(stage: Stage) -> None:
    await stage.running()
    for _ in range(10):
        stage.says("x")
    with pytest.raises(UpstreamFailed, match="9 messages behind"):
        await stage.read()


@staged
async def test_a_move_that_the_table_does_not_know_is_a_bug(stage: Stage) -> None:
    with pytest.raises(AssertionError, match="from opening to held"):
        stage.thread._move("held")
    await stage.running()
    with pytest.raises(AssertionError, match="ended well"):
        stage.thread.rest()
