"""What every store answers about all it holds: orphans, stats, sharing, pruning, exports, many at once."""

from __future__ import annotations

import asyncio
import random

import msgspec
from msgspec.structs import replace

from every_store import every_store
from isthmus.ports import Store
from stored import message, turn


@every_store()
async def test_expired_lists_what_a_crash_left(store: Store) -> None:
    left = [
        turn("r1", status="queued"),
        turn("r2", status="in_progress", owner="ann"),
        turn("r5", status="in_progress"),
    ]
    for record in (*left, turn("r3"), turn("r4", status="failed")):
        await store.save(record)
    await store.delete("r5")
    assert await store.expired() == left[:2]


@every_store()
async def test_stats_count_what_there_is(store: Store) -> None:
    empty = await store.stats()
    assert (empty.responses, empty.pieces, empty.oldest, empty.newest) == (0, 0, None, None)
    await store.save(turn("r1", at=10.0))
    await store.save(turn("r2", "r1", at=30.0, status="queued"))
    await store.save(turn("r3", at=20.0))
    await store.delete("r3")
    stats = await store.stats()
    assert (stats.responses, stats.deleted, stats.unfinished, stats.pieces) == (2, 1, 1, 4)
    assert (stats.oldest, stats.newest) == (10.0, 30.0)
    assert stats.bytes > 0


@every_store()
async def test_history_sent_again_is_stored_once(store: Store) -> None:
    history: list[bytes] = []
    for number in range(30):
        history.append(message(f"question {number}"))
        answer = message(f"answer {number}", f"msg_{number}", "assistant")
        await store.save(turn(f"r{number}", input=tuple(history), output=(answer,), tools=["t" * 5000]))
        history.append(answer)
    assert (await store.stats()).pieces == 61
    loaded = await store.load("r29")
    assert loaded is not None
    assert loaded.input == tuple(history[:-1])


@every_store()
async def test_pruning_by_age_keeps_what_a_living_conversation_builds_on(store: Store) -> None:
    await store.save(turn("old", at=1.0))
    await store.save(turn("root", at=1.0))
    await store.save(turn("dead_branch", "root", at=2.0))
    await store.save(turn("live_branch", "root", at=50.0))
    await store.save(turn("running", at=1.0, status="in_progress"))
    await store.save(turn("gone", at=1.0))
    await store.delete("gone")
    pruned = await store.prune(older_than=10.0)
    assert pruned.responses == 3
    assert [turn.id for turn in await store.chain("live_branch")] == ["root", "live_branch"]
    assert await store.load("running") is not None
    assert await store.load("old") is None
    assert await store.load("dead_branch") is None
    assert (await store.stats()).deleted == 0
    assert (await store.prune(older_than=10.0)).responses == 0
    assert (await store.prune()).responses == 0


@every_store()
async def test_pruning_by_size_takes_the_longest_unused_conversations_whole(store: Store) -> None:
    noise = random.Random(1)
    for number in range(20):
        for step in range(3):
            words = noise.randbytes(20_000).hex()
            previous = f"c{number}_{step - 1}" if step else None
            await store.save(turn(f"c{number}_{step}", previous, at=float(number), input=(message(words),)))
    before = await store.stats()
    pruned = await store.prune(max_bytes=before.bytes // 2)
    after = await store.stats()
    assert after.bytes <= before.bytes // 2
    assert pruned.bytes > 0
    assert 0 < after.responses == 60 - pruned.responses
    assert after.responses % 3 == 0
    assert after.bytes > before.bytes // 4
    survivors = after.responses // 3
    for number in range(20):
        if number >= 20 - survivors:
            assert len(await store.chain(f"c{number}_2")) == 3
        else:
            assert await store.load(f"c{number}_0") is None


@every_store()
async def test_an_export_is_one_json_object_per_line_oldest_first(store: Store) -> None:
    records = [turn(f"r{number}", at=float(number), owner="ann" if number % 2 else "local") for number in range(150)]
    for record in records:
        await store.save(record)
    await store.save(replace(turn("spaced"), response=b'{\n "id": "spaced",\r\n "output": [ ]}'))
    assert await store.delete("r3", owner="ann")
    await store.save(records[0])
    lines = [line async for line in store.export()]
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    decoded = [msgspec.json.decode(line) for line in lines]
    assert [line["id"] for line in decoded] == [f"r{n}" for n in range(150) if n != 3] + ["spaced"]
    assert decoded[1]["owner"] == "ann"
    assert decoded[1]["response"] == msgspec.json.decode(records[1].response)
    assert decoded[1]["input"] == [msgspec.json.decode(records[1].input[0])]
    assert decoded[-1]["response"] == {"id": "spaced", "output": []}


@every_store()
async def test_many_at_once_all_arrive(store: Store) -> None:
    await asyncio.gather(*(store.save(turn(f"r{number}")) for number in range(500)))
    loaded = await asyncio.gather(*(store.load(f"r{number}") for number in range(500)))
    assert loaded == [turn(f"r{number}") for number in range(500)]


@every_store()
async def test_closing_twice_is_harmless(store: Store) -> None:
    await store.save(turn("r1"))
    await store.aclose()
    await store.aclose()
