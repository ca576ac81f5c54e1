"""Kill -9 in the midst of a hundred concurrent saves, again and again, on one file."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.ports import EventBatch, StoredResponse
from isthmus.store.sqlite.store import SqliteStore
from stored import message, turn

ROUNDS = 8
EVENTS = EventBatch(0, (b'{"sequence_number":0}', b'{"sequence_number":1}'))


def record_of(id: str) -> StoredResponse:
    """A turn that can be known from its id: chained, of any size, and sharing pieces with its neighbours."""
    round_name, number = id.split("_")
    size = random.Random(id).randrange(8_000)
    previous = f"{round_name}_{int(number) - 100}" if int(number) >= 100 else None
    return turn(id, previous, input=(message("the same for all"), message(id * (size // len(id)))), tools=["t" * 3000])


async def save_until_killed(path: Path, round_name: str) -> None:
    """A hundred workers; an id is printed once its save has returned."""
    store = SqliteStore(path)

    async def work(worker: int) -> None:
        for step in range(10_000):
            id = f"{round_name}_{worker + 100 * step}"
            await store.save(record_of(id), events=EVENTS)
            print(id, flush=True)

    await asyncio.gather(*(work(worker) for worker in range(100)))


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_every_acknowledged_save_is_whole_after_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    acknowledged: list[str] = []
    for number in range(ROUNDS):
        acknowledged += run_and_kill(path, f"round{number}", 50 + random.Random(number).randrange(600))
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert len(acknowledged) > ROUNDS * 50
    asyncio.run(check(path, acknowledged))


def run_and_kill(path: Path, round_name: str, lines: int) -> list[str]:
    command = [sys.executable, __file__, str(path), round_name]
    search = str(Path(__file__).parents[2])
    code = f"import sys; sys.path.insert(0, {search!r}); import runpy; sys.argv = {command[1:]!r}\n"
    code += f"runpy.run_path({__file__!r}, run_name='__main__')"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline().strip() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        # What it had printed before it died counts too; a line may be cut short.
        rest = process.stdout.read().split("\n")[:-1]
    assert process.returncode == -signal.SIGKILL
    return seen + rest


async def check(path: Path, acknowledged: list[str]) -> None:
    store = SqliteStore(path)
    for id in acknowledged:
        assert await store.load(id) == record_of(id), f"{id} was acknowledged"
        assert await store.events(id) == list(EVENTS.events)
    stored = 0
    async for _ in store.export():
        stored += 1
    assert stored >= len(acknowledged)
    ids = await store.readers.run(lambda connection: connection.execute("SELECT id FROM responses").fetchall())
    for (id,) in ids:
        assert await store.load(id) == record_of(id), f"{id} was never acknowledged, but what is there must be whole"
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(save_until_killed(Path(sys.argv[1]), sys.argv[2]))
