"""Random operations on the memory store and on one that is on disk: the same answers, whatever happens, and after a
restart.

Drawn from a seed rather than by hypothesis: the weights keep both stores well filled, so that most questions meet
shared pieces, forks, deleted turns and full streams.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from every_store import STORES, Clock, Opener
from isthmus.errors import RequestRefused
from isthmus.ports import LOCAL, UNFINISHED, EventBatch, Store
from isthmus.store.memory import MemoryStore
from stored import message, turn

STEPS = 200
LIMITS = {"max_event_bytes": 120}
STATUSES = ("completed", "completed", "incomplete", "failed", "in_progress", "queued")
UNNAMED = tuple(f"{place}{at}_r{number}" for place in ("in", "out") for at in (0, 1) for number in range(6))
HOLDERS = ("one", "two", "three")
NAMES = ("msg_x", "msg_y", *UNNAMED)

Question = Callable[[Store], Awaitable[Any]]


@pytest.mark.parametrize(("kind", "seed"), [*product(["sqlite"], range(20)), *product(["postgres"], range(20, 23))])
def test_memory_and_disk_give_the_same_answers(kind: str, seed: int, tmp_path: Path) -> None:
    asyncio.run(compare(random.Random(seed), STORES[kind], tmp_path))


async def compare(chance: random.Random, opener: Opener, folder: Path) -> None:
    clock = Clock()
    memory, disk = MemoryStore(**LIMITS, now=clock), opener(folder, **LIMITS, now=clock)
    streams: dict[str, int] = {}
    for step in range(STEPS):
        drawn = chance.choices(DRAWS, WEIGHTS)[0]
        for question in (drawn(chance, step, streams), count, export, lambda store: store.expired()):
            answers = [await answer(question, store) for store in (memory, disk)]
            assert answers[0] == answers[1], f"step {step}: {drawn.__name__}"
        if chance.random() < 0.02:
            await disk.aclose()
            disk = opener(folder, **LIMITS, now=clock)
        clock.at += chance.choice((0, 0, 1, 2, -1))
    await disk.aclose()


async def answer(question: Question, store: Store) -> Any:
    try:
        return await question(store)
    except (RequestRefused, ValueError) as error:
        return type(error), str(error), getattr(error, "code", None)


def draw_save(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    number = chance.randrange(12)
    # The parent follows from the number, so that saving again works; a few name one that never exists.
    previous = {0: None, 1: None, 7: "never"}.get(number, f"r{number // 2}")
    record = turn(
        f"r{number}",
        "r0" if chance.random() < 0.05 else previous,
        at=float(step),
        status=chance.choice(STATUSES),
        input=draw_items(chance),
        output=draw_items(chance),
        owner=owner_of(chance, number),
        padding="p" * chance.choice((0, 600, 3000)),
    )
    events = draw_events(chance, record.id, streams) if chance.random() < 0.3 else None
    holder = draw_holder(chance)
    return lambda store: store.save(record, events=events, holder=holder)


def draw_delete(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    number = chance.randrange(12)
    owner = owner_of(chance, number)
    return lambda store: store.delete(f"r{number}", owner=owner)


def draw_status(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    number = chance.randrange(12)
    status, owner, only_from = chance.choice(STATUSES), owner_of(chance, number), chance.choice(((), UNFINISHED))
    fields = {"error": {"code": "x"}, "padding": "q" * chance.choice((1, 700))}
    return lambda store: store.update_status(f"r{number}", status, owner=owner, only_from=only_from, fields=fields)


def draw_append(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    number = chance.randrange(12)
    owner, batch = owner_of(chance, number), draw_events(chance, f"r{number}", streams)
    holder = draw_holder(chance)
    return lambda store: store.append_events(f"r{number}", batch, owner=owner, holder=holder)


def draw_load(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    number = chance.randrange(12)
    owner = owner_of(chance, number)
    return lambda store: store.load(f"r{number}", owner=owner)


def draw_chain(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    number, depth = chance.randrange(12), chance.choice((1, 2, 3, 100))
    owner = owner_of(chance, number)
    return lambda store: store.chain(f"r{number}", owner=owner, max_depth=depth)


def draw_replay(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    number, after = chance.randrange(12), chance.randrange(-2, 60)
    owner = owner_of(chance, number)
    return lambda store: store.events(f"r{number}", owner=owner, after=after)


def draw_references(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    names, owner = chance.choices(NAMES, k=6), owner_of(chance, 0)
    return lambda store: store.items(names, owner=owner)


def draw_page(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    number = chance.randrange(12)
    page: dict[str, Any] = {
        "owner": owner_of(chance, number),
        "limit": chance.randrange(1, 6),
        "after": chance.choice((None, None, "msg_x", f"in0_r{number}", "nothing")),
        "order": chance.choice(("asc", "desc")),
    }
    return lambda store: store.list_input_items(f"r{number}", **page)


def draw_prune(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    older_than = float(step - chance.randrange(10, 80))

    async def prune(store: Store) -> int:
        return (await store.prune(older_than=older_than)).responses

    return prune


def draw_claim(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    number, holder, seconds = chance.randrange(12), chance.choice(HOLDERS), chance.randrange(20)
    owner = owner_of(chance, number)
    return lambda store: store.claim(f"run:r{number}", owner=owner, holder=holder, seconds=seconds)


def draw_renew(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    holder, seconds = chance.choice(HOLDERS), chance.randrange(20)
    return lambda store: store.renew(holder, seconds=seconds)


def draw_release(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    number, holder = chance.randrange(12), chance.choice(HOLDERS)
    owner = owner_of(chance, number)
    return lambda store: store.release(f"run:r{number}", owner=owner, holder=holder)


def draw_signal(chance: random.Random, step: int, streams: dict[str, int]) -> Question:
    number, word = chance.randrange(12), chance.choice(("cancel", "delete"))
    owner = owner_of(chance, number)
    return lambda store: store.signal(f"run:r{number}", word, owner=owner)


DRAWS = (
    draw_save,
    draw_delete,
    draw_status,
    draw_append,
    draw_load,
    draw_chain,
    draw_replay,
    draw_references,
    draw_page,
    draw_prune,
    draw_claim,
    draw_renew,
    draw_release,
    draw_signal,
)
WEIGHTS = (40, 4, 8, 12, 6, 12, 12, 12, 12, 4, 16, 8, 4, 8)


def owner_of(chance: random.Random, number: int) -> str:
    """Two of the twelve belong to somebody else; now and then the wrong one asks."""
    return "ann" if (number in (4, 9)) ^ (chance.random() < 0.05) else LOCAL


def draw_holder(chance: random.Random) -> str | None:
    """Mostly nobody: a response that is finished stays as it is for a holder, and much would be refused."""
    return chance.choice(HOLDERS) if chance.random() < 0.2 else None


def draw_items(chance: random.Random) -> tuple[bytes, ...]:
    """Few words, so that contents are shared; ids that repeat over different contents, and none."""
    return tuple(
        message(chance.choice(("a", "b", "c" * 3000)), chance.choice((None, None, "msg_x", "msg_y")))
        for _ in range(chance.randrange(4))
    )


def draw_events(chance: random.Random, id: str, streams: dict[str, int]) -> EventBatch:
    """Mostly what follows the last batch that was tried, sometimes not."""
    first = 0 if chance.random() < 0.1 else streams.get(id, 0)
    count = chance.randrange(12)
    streams[id] = first + count
    return EventBatch(first, tuple(b"[%d]" % (first + index) for index in range(count)))


async def count(store: Store) -> tuple[Any, ...]:
    stats = await store.stats()
    return stats.responses, stats.deleted, stats.unfinished, stats.pieces, stats.oldest, stats.newest


async def export(store: Store) -> list[bytes]:
    return [line async for line in store.export()]
