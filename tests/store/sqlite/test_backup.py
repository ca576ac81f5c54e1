from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from isthmus.errors import ConfigError, StoreDamaged
from isthmus.store.copying.stores import back_up_store
from isthmus.store.open import examine_store
from isthmus.store.sqlite.store import SqliteStore
from stored import turn


@pytest.fixture
def path(tmp_path: Path) -> Path:
    async def fill() -> None:
        store = SqliteStore(path)
        for number in range(5):
            await store.save(turn(f"r{number}"))
        await store.aclose()

    path = tmp_path / "store.db"
    asyncio.run(fill())
    (tmp_path / "store.db.key").write_bytes(b"k" * 32)
    return path


def test_a_copy_is_one_private_file_with_its_key(path: Path, tmp_path: Path) -> None:
    made = back_up_store(f"sqlite:{path}", tmp_path / "copy.db")
    assert made.responses == 5
    assert made.key == tmp_path / "copy.db.key"
    assert (tmp_path / "copy.db.key").read_bytes() == b"k" * 32
    names = {each.name for each in tmp_path.iterdir() if each.name.startswith("copy")}
    assert names == {"copy.db", "copy.db.key"}
    if sys.platform != "win32":
        assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names} == {0o600}
    assert examine_store(f"sqlite:{tmp_path}/copy.db").responses == 5


def test_nothing_is_overwritten_unless_asked(path: Path, tmp_path: Path) -> None:
    for name in ("copy.db", "copy.db.key"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(ConfigError, match=rf"`.*{name}` is there already.*--force"):
            back_up_store(f"sqlite:{path}", tmp_path / "copy.db")
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
    (tmp_path / "copy.db").write_text("mine")
    (tmp_path / "copy.db-wal").write_text("of an older copy")
    assert back_up_store(f"sqlite:{path}", tmp_path / "copy.db", force=True).responses == 5
    assert not (tmp_path / "copy.db-wal").exists()


def test_the_store_itself_is_no_place_for_its_copy(path: Path) -> None:
    with pytest.raises(ConfigError, match="is the store itself"):
        back_up_store(f"sqlite:{path}", path, force=True)
    assert examine_store(f"sqlite:{path}").responses == 5


def test_a_place_that_does_not_exist_is_named(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs the folder"):
        back_up_store(f"sqlite:{path}", tmp_path / "nowhere" / "copy.db")


def test_a_damaged_store_has_no_backup(path: Path, tmp_path: Path) -> None:
    content = bytearray(path.read_bytes())
    for at in range(4096, len(content)):
        content[at] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(StoreDamaged):
        back_up_store(f"sqlite:{path}", tmp_path / "copy.db")
    assert not [each.name for each in tmp_path.iterdir() if each.name.startswith("copy")]


def test_a_copy_made_under_load_is_one_moment(path: Path, tmp_path: Path) -> None:
    """Chains of turns are saved all the time: a copy has every turn that one in it builds on."""
    copying = """
import sys
from pathlib import Path
from isthmus.store.copying.stores import back_up_store
print(back_up_store(f"sqlite:{sys.argv[1]}", Path(sys.argv[2])).responses)
"""

    async def save(stop: threading.Event) -> int:
        store, saved = SqliteStore(path), 0
        while not stop.is_set():
            await asyncio.gather(*(store.save(turn(f"c{lane}-{saved}", parent(lane, saved))) for lane in range(8)))
            saved += 1
        await store.aclose()
        return saved

    def parent(lane: int, number: int) -> str | None:
        return f"c{lane}-{number - 1}" if number else None

    async def run() -> int:
        stop = threading.Event()
        saving = asyncio.create_task(save(stop))
        await asyncio.sleep(0)
        try:
            copy = await asyncio.create_subprocess_exec(
                sys.executable, "-c", copying, str(path), str(tmp_path / "copy.db"), stdout=subprocess.PIPE
            )
            told, _ = await copy.communicate()
        finally:
            stop.set()
        assert await saving > 0
        return int(told)

    copied = asyncio.run(run())
    assert copied > 5
    assert examine_store(f"sqlite:{tmp_path}/copy.db").damage == ()

    async def ask() -> None:
        store = SqliteStore(tmp_path / "copy.db")
        assert (await store.stats()).responses == copied
        for lane in range(8):
            last = 0
            while await store.load(f"c{lane}-{last + 1}"):
                last += 1
            assert len(await store.chain(f"c{lane}-{last}")) == last + 1
        await store.aclose()

    asyncio.run(ask())
