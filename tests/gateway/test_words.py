"""When servers are asked about themselves, and what becomes of their answers: nobody waits, nobody asks twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.house import Upstream
from isthmus.errors import ConfigError, UpstreamFailed
from isthmus.gateway.directory import Served
from isthmus.gateway.words import Words
from isthmus.ports import Store, StoredWord
from isthmus.providers import load_provider
from isthmus.providers.word.told import Told, Word, encode_told
from isthmus.store.memory import MemoryStore


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Server:
    """Answers when it is told to."""

    def __init__(self, clock: Clock, *, own: bool = True, place: str = "here") -> None:
        self.own = own
        self.place = place
        self.asked = 0
        self.reached = asyncio.Event()
        self.cancelled = 0
        self.window = 4096
        self.failure: Exception | None = None
        self.gate: asyncio.Event | None = None
        self._clock = clock

    async def ask(self) -> Told:
        self.asked += 1
        self.reached.set()
        try:
            if self.gate is not None:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.failure is not None:
            raise self.failure
        return Told(at=self._clock(), own=self.own, models=("m",), words={"m": Word(context=self.window)})


class House:
    def __init__(self, *, own: bool = True, refresh: float = 60.0, keep: float = 600.0, store: Store | None = None):
        self.clock = Clock()
        self.server = Server(self.clock, own=own)
        self.store = store or MemoryStore()
        self.served = Served("mine", load_provider("vllm"), Upstream(), asking=self.server)
        self.words = Words({"mine": self.served}, self.store, refresh=refresh, keep=keep, now=self.clock)

    @property
    def window(self) -> int | None:
        return self.served.capabilities("m").limits.context

    async def settle(self) -> None:
        while pending := self.words._pending():
            await asyncio.wait(pending)


async def test_a_server_of_this_machine_is_asked_at_the_start() -> None:
    it = House()
    it.words.start()
    await it.settle()
    assert (it.server.asked, it.window) == (1, 4096)


async def test_a_vendor_is_asked_when_it_is_first_used() -> None:
    it = House(own=False)
    it.words.start()
    await it.settle()
    assert (it.server.asked, it.window) == (0, None)
    it.words.used("mine")
    await it.settle()
    assert (it.server.asked, it.window) == (1, 4096)


async def test_it_is_asked_again_when_its_word_is_old_and_it_is_used() -> None:
    it = House()
    it.words.start()
    await it.settle()
    it.server.window = 8192
    it.clock.now += 59
    it.words.used("mine")
    await it.settle()
    assert (it.server.asked, it.window) == (1, 4096)
    it.clock.now += 1
    it.words.used("mine")
    it.words.used("mine")
    await it.settle()
    assert (it.server.asked, it.window) == (2, 8192)


async def test_whoever_uses_it_does_not_wait() -> None:
    it = House(own=False)
    it.server.gate = asyncio.Event()
    it.words.used("mine")
    it.words.used("mine")
    assert it.window is None
    await it.server.reached.wait()
    assert it.server.asked == 1, "one question at a time"
    it.server.gate.set()
    await it.settle()
    assert it.window == 4096


async def test_one_that_does_not_answer_is_left_alone_longer_each_time() -> None:
    it = House(refresh=30)
    it.server.failure = UpstreamFailed("cannot be reached")
    it.words.start()
    await it.settle()
    waits = []
    for _ in range(5):
        waits.append(it.words._due["mine"] - it.clock.now)
        it.clock.now = it.words._due["mine"] - 0.1
        it.words.used("mine")
        await it.settle()
        it.clock.now += 0.1
        it.words.used("mine")
        await it.settle()
    assert waits == pytest.approx([5, 10, 20, 30, 30])
    assert it.server.asked == 6
    it.server.failure = None
    it.clock.now += 30
    it.words.used("mine")
    await it.settle()
    assert it.window == 4096
    assert it.words._failed == {}


async def test_a_word_that_cannot_be_had_anew_is_still_believed() -> None:
    it = House()
    it.words.start()
    await it.settle()
    it.clock.now += 100
    it.server.failure = UpstreamFailed("cannot be reached")
    it.words.used("mine")
    await it.settle()
    assert (it.server.asked, it.window) == (2, 4096)


async def test_a_bug_in_asking_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    it = House()
    it.server.failure = KeyError("oops")
    it.words.start()
    await it.settle()
    assert it.window is None
    assert "word.not_heard" in caplog.text


async def test_a_question_is_given_up_at_the_end() -> None:
    it = House()
    it.server.gate = asyncio.Event()
    it.words.start()
    await it.server.reached.wait()
    await it.words.aclose()
    assert it.server.cancelled == 1
    assert it.words._pending() == []


async def test_what_one_process_heard_the_others_take_from_the_store() -> None:
    first = House()
    first.words.start()
    await first.settle()
    second = House(store=first.store)
    second.words.start()
    await second.settle()
    assert (second.server.asked, second.window) == (0, 4096)
    second.clock.now += 100
    third = House(store=first.store)
    third.clock.now = second.clock.now
    third.server.window = 8192
    third.words.start()
    await third.settle()
    assert (third.server.asked, third.window) == (1, 8192)
    second.words.used("mine")
    await second.settle()
    assert (second.server.asked, second.window) == (0, 8192), "another one has asked a moment ago"


@pytest.mark.parametrize(
    "kept",
    [
        StoredWord("mine", "another address", encode_told(Told(at=999, words={"": Word(context=7)})), 999),
        StoredWord("another", "here", encode_told(Told(at=999, words={"": Word(context=7)})), 999),
        StoredWord("mine", "here", encode_told(Told(at=100, words={"": Word(context=7)})), 100),
        StoredWord("mine", "here", b"rubbish", 999),
    ],
    ids=["place", "provider", "age", "rubbish"],
)
async def test_what_does_not_concern_it_is_not_believed(kept: StoredWord) -> None:
    it = House(own=False)
    await it.store.hear(kept)
    it.words.start()
    await it.settle()
    assert it.window is None


async def test_a_store_that_is_gone_keeps_nobody_from_asking() -> None:
    class Gone(MemoryStore):
        async def words(self, **limits: Any) -> list[StoredWord]:
            raise ConfigError("gone", code="store_unavailable")

        async def hear(self, word: StoredWord, **limits: Any) -> None:
            raise ConfigError("gone", code="store_unavailable")

    it = House(store=Gone())
    it.words.start()
    await it.settle()
    assert it.window == 4096


@pytest.mark.parametrize("refresh", [0.0])
async def test_no_refresh_no_questions_and_nothing_is_believed(refresh: float) -> None:
    it = House(refresh=refresh)
    await it.store.hear(StoredWord("mine", "here", encode_told(Told(at=999, words={"": Word(context=7)})), 999))
    it.words.start()
    it.words.used("mine")
    await it.words.settled(5)
    await it.settle()
    assert (it.server.asked, it.window) == (0, None)


async def test_a_list_waits_for_servers_of_this_machine_and_not_for_long() -> None:
    it = House()
    it.words.start()
    await it.words.settled(60)
    assert it.window == 4096
    slow = House()
    slow.server.gate = asyncio.Event()
    slow.words.start()
    await slow.words.settled(0.01)
    assert slow.window is None
    await slow.words.aclose()
