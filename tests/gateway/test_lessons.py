"""The store's lessons on their way into a target: remembered for a moment, bounded, never a reason to refuse."""

from __future__ import annotations

from typing import Any

from isthmus.bridge.types.plan import Lesson, Target
from isthmus.errors import ConfigError
from isthmus.gateway import lessons as module
from isthmus.gateway.lessons import Lessons
from isthmus.providers import load_provider
from isthmus.store.memory import MemoryStore

UNKNOWN = Target("mine", "m", load_provider("openai-compatible").capabilities("m"))
LESSON = Lesson("mine", "m", "tool_choice", "required", 100.0)


class Counting(MemoryStore):
    """A store that counts its reads, and fails when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.broken = False

    async def lessons(self, provider: str, model: str, *, since: float = 0.0) -> list[Lesson]:
        self.reads += 1
        if self.broken:
            raise ConfigError("gone", code="store_unavailable")
        return await super().lessons(provider, model, since=since)

    async def learn(self, lesson: Lesson, **limits: Any) -> None:
        if self.broken:
            raise ConfigError("gone", code="store_unavailable")
        await super().learn(lesson, **limits)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def taught(target: Target) -> bool:
    return "required" not in target.capabilities.tool_choice.supported


async def test_a_look_is_remembered_for_a_moment_and_then_others_lessons_are_seen() -> None:
    store, clock = Counting(), Clock()
    mine = Lessons(store, keep=50, now=clock, fresh=1)
    assert not taught(await mine.taught(UNKNOWN))
    await store.learn(LESSON)  # by another process
    assert not taught(await mine.taught(UNKNOWN))
    assert store.reads == 1
    clock.now += 1
    assert taught(await mine.taught(UNKNOWN))
    clock.now = 150.5
    assert not taught(await mine.taught(UNKNOWN)), "it is too old now"


async def test_what_was_just_learned_is_known_at_once() -> None:
    store, clock = Counting(), Clock()
    mine = Lessons(store, keep=50, now=clock)
    await mine.taught(UNKNOWN)
    await mine.keep("resp_1", LESSON, UNKNOWN)
    assert taught(await mine.taught(UNKNOWN))


async def test_a_lesson_that_gets_too_old_while_it_is_remembered_is_dropped() -> None:
    store, clock = Counting(), Clock()
    await store.learn(LESSON)
    mine = Lessons(store, keep=50, now=clock, fresh=1000)
    assert taught(await mine.taught(UNKNOWN))
    clock.now = 151
    assert not taught(await mine.taught(UNKNOWN))


async def test_a_broken_store_is_no_reason_to_refuse() -> None:
    store = Counting()
    store.broken = True
    mine = Lessons(store, keep=50, now=Clock())
    assert await mine.taught(UNKNOWN) is UNKNOWN
    await mine.keep("resp_1", LESSON, UNKNOWN)


async def test_known_providers_cost_no_read() -> None:
    store = Counting()
    known = Target("openai", "gpt-4o", load_provider("openai").capabilities("gpt-4o"))
    assert await Lessons(store, keep=50, now=Clock()).taught(known) is known
    assert await Lessons(store, keep=0, now=Clock()).taught(UNKNOWN) is UNKNOWN
    assert store.reads == 0


async def test_names_from_clients_do_not_pile_up() -> None:
    store = Counting()
    mine = Lessons(store, keep=50, now=Clock())
    for number in range(3 * module._REMEMBERED):
        await mine.taught(Target("mine", f"m{number}", UNKNOWN.capabilities))
    assert len(mine._looked) <= module._REMEMBERED
    long = "m" * 10_000
    await mine.keep("resp_1", Lesson("mine", long, "tool_choice", "required", 100), UNKNOWN)
    assert await store.lessons("mine", long) == []


async def test_what_the_user_states_himself_outranks_a_lesson() -> None:
    store, clock = Counting(), Clock()
    await store.learn(LESSON)
    mine = Lessons(store, keep=50, now=clock)
    entry = {"m": {"tool_choice": {"supported": ["auto", "none", "required"]}}}
    stated = load_provider("openai-compatible", models=entry)
    target = Target("mine", "m", stated.capabilities("m"))
    assert not taught(await mine.taught(target, stated))
    assert taught(await mine.taught(UNKNOWN, load_provider("openai-compatible")))
    other = load_provider("openai-compatible", models={"m": {"response_formats": {"supported": ["text"]}}})
    assert taught(await mine.taught(Target("mine", "m", other.capabilities("m")), other))
