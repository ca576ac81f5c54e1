"""The conversations of a real file: found by another process, whole after a crash, and damage is told."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from isthmus.errors import StoreDamaged
from isthmus.ports import StoredConversation, StoredResponse
from isthmus.store.sqlite.store import SqliteStore
from stored import message, texts, turn

TALKS = 20
MOST = 1_000_000


def record_of(id: str, conversation: str, at: int) -> StoredResponse:
    """Two items in, one out; every one can be known from the id."""
    said = (message(f"{id} one"), message(f"{id} two"))
    return replace(turn(id, input=said), conversation=conversation, conversation_at=at)


async def talk_until_killed(path: Path, round_name: str) -> None:
    """Twenty conversations, a turn after the other in each; a turn is printed once its save has returned."""
    store = SqliteStore(path)

    async def talk(number: int) -> None:
        id = f"conv_{number}"
        if await store.conversation(id) is None:
            await store.start_conversation(StoredConversation(id, 0.0))
        for step in range(100_000):
            found = await store.conversation_turns(id, most=MOST)
            assert found is not None
            name = f"{round_name}-{number}-{step}"
            await store.save(record_of(name, id, found.at))
            print(name, flush=True)

    await asyncio.gather(*(talk(number) for number in range(TALKS)))


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_after_kill_9_no_response_is_there_without_what_it_said_nor_the_other_way_round(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    acknowledged: list[str] = []
    for number in range(6):
        acknowledged += run_and_kill(path, f"round{number}", 40 + 61 * number)
    asyncio.run(check(path, acknowledged))


def run_and_kill(path: Path, round_name: str, lines: int) -> list[str]:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); import runpy\n"
    code += f"sys.argv = {[__file__, str(path), round_name]!r}; runpy.run_path({__file__!r}, run_name='__main__')"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline().strip() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split("\n")[:-1]
    assert process.returncode == -signal.SIGKILL
    return [*seen, *rest]


async def check(path: Path, acknowledged: list[str]) -> None:
    store = SqliteStore(path)
    said: list[str] = []
    for number in range(TALKS):
        found = await store.conversation_turns(f"conv_{number}", most=MOST)
        assert found is not None
        said += texts(tuple(item for item, _ in found.items))
    ids = await store.readers.run(lambda connection: connection.execute("SELECT id FROM responses").fetchall())
    stored = {id for (id,) in ids}
    assert set(acknowledged) <= stored
    assert len(acknowledged) > 200
    for id in stored:
        turn = [f"{id} one", f"{id} two", f"answer {id}"]
        at = said.index(turn[0])
        assert said[at : at + 3] == turn, "whole, in its order, with nothing in between"
    assert len(said) == 3 * len(stored), "and nothing that no response has said"
    await store.aclose()


async def test_a_damaged_one_is_named_and_left_out_of_exports(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    for id in ("conv_1", "conv_2"):
        await store.start_conversation(StoredConversation(id, 0.0), [message(id, f"msg_{id}")])
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
        connection.execute("UPDATE pieces SET data = x'7b7d' WHERE item_id = 'msg_conv_1'")
    with pytest.raises(StoreDamaged) as damaged:
        await store.conversation_items("conv_1")
    assert damaged.value.metadata == {"id": "conv_1"}
    assert await store.conversation("conv_1") is not None, "what is not damaged is served"
    exported = [msgspec.json.decode(line)["conversation"] async for line in store.export_conversations()]
    assert exported == ["conv_2"]
    await store.aclose()


async def test_another_process_finds_what_was_said(tmp_path: Path) -> None:
    one, two = SqliteStore(tmp_path / "store.db"), SqliteStore(tmp_path / "store.db")
    await one.start_conversation(StoredConversation("conv_1", 0.0))
    await two.save(record_of("r1", "conv_1", 0))
    found = await one.conversation_turns("conv_1", most=MOST)
    assert found is not None
    assert texts(tuple(item for item, _ in found.items)) == ["r1 one", "r1 two", "answer r1"]
    await two.aclose()
    await one.aclose()


if __name__ == "__main__":
    asyncio.run(talk_until_killed(Path(sys.argv[1]), sys.argv[2]))
