"""Keys in the file: whole or not at all, sealed, and never told by a guess."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.errors import StoreDamaged, StoreUnavailable
from isthmus.store.sqlite import keys as sqlite_keys
from isthmus.store.sqlite.store import SqliteStore
from keyed import NOW, deed, stored_key


def test_a_key_whose_deed_cannot_be_written_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    async def ask() -> None:
        store = SqliteStore(tmp_path / "s.db")
        key = stored_key()
        await store.add_key(key, deed())
        monkeypatch.setattr(sqlite_keys, "note", fail)
        with pytest.raises(StoreUnavailable):
            await store.add_key(stored_key("bob"), deed())
        with pytest.raises(StoreUnavailable):
            await store.change_key(replace(key, revoked_at=NOW), deed("key.revoke"), was=key)
        monkeypatch.undo()
        assert await store.keys() == [key]
        assert len(await store.deeds()) == 1
        await store.aclose()

    asyncio.run(ask())


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_after_kill_9_every_key_has_its_deed_and_every_deed_its_key(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); import runpy\n"
    code += f"sys.argv = {['', str(tmp_path / 's.db')]!r}\nrunpy.run_path({__file__!r}, run_name='__main__')"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _ in range(30)]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.read().split("\n")[:-1]

    async def look() -> tuple[list[str], list[str], int]:
        store = SqliteStore(tmp_path / "s.db")
        keys, deeds, mark = await store.keys(), await store.deeds(most=10_000), await store.keys_mark()
        await store.aclose()
        return [each.id for each in keys], [each.target for each in reversed(deeds)], mark

    ids, targets, mark = asyncio.run(look())
    assert ids == targets
    assert set(told) <= set(ids)
    assert mark & (1 << 48) - 1 == len(ids)


async def add_until_killed(path: Path) -> None:
    store = SqliteStore(path)
    for number in range(10_000):
        key = stored_key(f"n{number}")
        await store.add_key(key, deed(target=key.id))
        print(key.id, flush=True)


@pytest.mark.parametrize("change", ["content = replace(content, 'ann', 'eve')", "content = x'00'", "seal = 'text'"])
def test_a_row_that_is_not_as_it_was_written_is_no_key(tmp_path: Path, change: str) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "s.db")
        key = stored_key("ann")
        await store.add_key(key, deed())
        await store.add_key(stored_key("bob"), deed())
        with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
            connection.execute(f"UPDATE keys SET {change} WHERE id = ?", (key.id,))
        with pytest.raises(StoreDamaged, match=f"stored key `{key.id}` is not as it was written; `isthmus store check"):
            await store.keys()
        bob = stored_key("bob")
        assert await store.change_key(replace(bob, revoked_at=NOW), deed(), was=bob), "others can still be revoked"
        await store.aclose()

    asyncio.run(ask())


def test_another_file_in_its_place_has_another_mark(tmp_path: Path) -> None:
    """Restored from a backup: its keys are as they were then, and everybody has to hear of it."""

    async def ask() -> None:
        path = tmp_path / "s.db"
        store = SqliteStore(path, retry_seconds=0.01)
        await store.add_key(stored_key(), deed())
        mark = await store.keys_mark()
        with closing(sqlite3.connect(path)) as connection, closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
            connection.backup(copy)
        shutil.move(tmp_path / "copy.db", path)
        for _ in range(1000):
            try:
                if await store.keys_mark() != mark:
                    break
            except StoreUnavailable:
                await asyncio.sleep(0.01)
        assert await store.keys_mark() != mark
        assert await store.keys() == [stored_key()]
        await store.aclose()

    asyncio.run(ask())


if __name__ == "__main__":
    asyncio.run(add_until_killed(Path(sys.argv[1])))
