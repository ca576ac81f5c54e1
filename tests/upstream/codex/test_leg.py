"""One leg of a Codex turn: what it said is what its thread is found by."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from isthmus.bridge.deltas import Delta, Failed, Finished, ItemBegan, ItemEnded, Markup, Reasoning, Text
from isthmus.bridge.dialects.codex.resume import read_continuation, said_key
from isthmus.bridge.limits import DEFAULT_ANSWER, AnswerLimits
from isthmus.errors import RateLimited, UpstreamFailed, UpstreamTimedOut
from isthmus.upstream.codex.failures import CodexGone
from isthmus.upstream.codex.leg import Leg
from own_time import clock, run_in_own_time, turns

BODY: dict[str, Any] = {"model": "m", "input": [{"type": "text", "text": "go"}]}


class Speaker:
    """A thread that says this, message by message; an event is waited for, and a failure raised."""

    def __init__(self, *said: Any) -> None:
        self.said = list(said)
        self.begun = False

    async def begin(self) -> None:
        self.begun = True

    async def read(self) -> Sequence[Delta]:
        following = self.said.pop(0) if self.said else ()
        if isinstance(following, Exception):
            raise following
        if isinstance(following, asyncio.Event):
            await following.wait()
            return await self.read()
        return tuple(following)


def _leg(speaker: Speaker, silence: float = 60, limits: AnswerLimits = DEFAULT_ANSWER) -> Leg:
    return Leg("mine", cast(Any, speaker), speaker.begin, silence=silence, limits=limits)


async def _read(leg: Leg) -> list[Delta]:
    return [delta async for deltas in leg.read() for delta in deltas]


async def _said() -> str:
    spoken = ([ItemBegan("message"), Text(text), ItemEnded()] for text in ("Looking at it.", "Done."))
    leg = _leg(Speaker(*spoken, [Finished("stop")]))
    await leg.accepted(None)
    assert (await _read(leg))[-1] == Finished("stop")
    return leg.text


def test_a_thread_that_spoke_twice_is_found_again_by_the_two_messages() -> None:
    def message(role: str, kind: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    history = [
        message("user", "input_text", "go"),
        message("assistant", "output_text", "Looking at it."),
        message("assistant", "output_text", "Done."),
    ]
    later = {**BODY, "history": history, "input": [{"type": "text", "text": "more"}]}
    found = read_continuation(later)
    assert found is not None
    assert found.key == said_key(BODY, asyncio.run(_said()))


def test_a_refusal_before_the_first_word_is_an_error_of_its_kind() -> None:
    async def check() -> None:
        leg = _leg(Speaker([Failed("slow down", "rate_limit_exceeded")]))
        with pytest.raises(RateLimited, match="slow down"):
            await leg.accepted(None)
        await leg.leave()

    asyncio.run(check())


def test_a_failure_after_the_first_word_names_the_provider() -> None:
    async def check() -> None:
        leg = _leg(Speaker([Text("a")], [Failed("broke", "server_error")]))
        await leg.accepted(None)
        assert (await _read(leg))[-1] == Failed("provider `mine`: broke", "server_error")

    asyncio.run(check())


def test_a_model_that_thinks_in_silence_is_let_through_after_a_while() -> None:
    async def check() -> None:
        word = asyncio.Event()
        leg = _leg(Speaker(word, [Text("late")]))
        accepting = asyncio.create_task(leg.accepted(5))
        await turns()
        assert not accepting.done()
        clock().skip(5)
        await accepting
        word.set()
        assert await _read(leg) == [Text("late")]

    run_in_own_time(check())


def test_silence_has_an_end() -> None:
    async def check() -> None:
        leg = _leg(Speaker([Text("a")], asyncio.Event()), silence=200)
        await leg.accepted(None)
        reading = asyncio.create_task(_read(leg))
        await turns()
        clock().skip(200)
        with pytest.raises(UpstreamTimedOut, match="provider `mine` was silent for 200 s"):
            await reading

    run_in_own_time(check())


def test_a_lost_thread_is_told_by_the_providers_name() -> None:
    async def check() -> None:
        leg = _leg(Speaker(CodexGone("the codex process ended")))
        with pytest.raises(UpstreamFailed, match="provider `mine`: the codex process ended"):
            await leg.accepted(None)
        await leg.leave()

    asyncio.run(check())


def test_whoever_leaves_before_the_first_word_leaves_no_task() -> None:
    async def check() -> None:
        speaker = Speaker(asyncio.Event())
        leg = _leg(speaker)
        await turns()
        assert speaker.begun
        await leg.leave()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(check())


@pytest.mark.parametrize(
    ("setting", "said"),
    [("max_answer", [Text("x" * 400)]), ("max_answer", [Reasoning("x" * 400)]), ("max_chunks", [Text("x")])],
)
def test_an_answer_without_end_is_cut_and_says_so(setting: str, said: list[Delta]) -> None:
    async def ask() -> None:
        leg = _leg(Speaker(*[said] * 100), limits=AnswerLimits(max_answer=1000, max_chunks=10))
        *_, markup, finished = await _read(leg)
        assert isinstance(markup, Markup)
        assert f"`limits.{setting}`" in str(markup)
        assert finished == Finished("length")
        assert leg.cut
        await leg.leave()

    run_in_own_time(ask())


def test_an_answer_that_ends_by_itself_is_not_cut() -> None:
    async def ask() -> None:
        leg = _leg(Speaker([Text("x" * 2000), Finished("stop")]), limits=AnswerLimits(max_answer=1000))
        assert (await _read(leg))[-1] == Finished("stop")
        assert not leg.cut

    run_in_own_time(ask())
