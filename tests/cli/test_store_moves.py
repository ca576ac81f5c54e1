"""`isthmus store migrate | copy | backup | restore`: what a person sees of them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from isthmus.cli.commands import app
from isthmus.store.open import open_store
from stored import turn
from waiting import until


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:{tmp_path}/x.db"

    async def main() -> None:
        store = open_store(url)
        await store.save(turn("resp_1", at=1000.0))
        await store.save(turn("resp_2", at=2000.0))
        await store.aclose()

    asyncio.run(main())
    (tmp_path / "x.db.key").write_bytes(b"k" * 32)
    return url


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["store", *arguments], env={"NO_COLOR": "1", "COLUMNS": "400"})
    assert result.exit_code == code, result.output
    return result


def test_copy_tells_what_it_did_and_compared(url: str, tmp_path: Path) -> None:
    done = run("copy", "--from", url, "--to", f"sqlite:{tmp_path}/y.db")
    assert "compared: every table of the target has the same rows" in done.stdout
    assert done.stderr == "", "no progress where nobody looks"
    assert json.loads(run("stats", "--store", f"sqlite:{tmp_path}/y.db", "--json").stdout)["responses"] == 2
    again = run("copy", "--from", url, "--to", f"sqlite:{tmp_path}/y.db", "--resume", "--json")
    told = json.loads(again.stdout)
    assert (told["tables"]["responses"], told["written"]) == (2, 0)


def test_copy_asks_before_it_replaces(url: str, tmp_path: Path) -> None:
    run("copy", "--from", url, "--to", f"sqlite:{tmp_path}/y.db")
    assert "`--force`" in run("copy", "--from", url, "--to", f"sqlite:{tmp_path}/y.db", code=1).stderr
    assert "give one of them" in run("copy", "--from", url, "--to", url, "--force", "--resume", code=1).stderr
    run("copy", "--from", url, "--to", f"sqlite:{tmp_path}/y.db", "--force")


def test_a_copy_without_a_key_says_so(url: str, tmp_path: Path) -> None:
    (tmp_path / "x.db.key").unlink()
    assert "there was no key" in run("copy", "--from", url, "--to", f"sqlite:{tmp_path}/y.db").stderr


def test_restore_puts_back_what_was_backed_up(url: str, tmp_path: Path) -> None:
    told = json.loads(run("backup", str(tmp_path / "copy.db"), "--store", url, "--json").stdout)
    assert told["key"] == str(tmp_path / "copy.db.key")
    run("prune", "--store", url, "--days", "1")
    assert "`--force`" in run("restore", str(tmp_path / "copy.db"), "--store", url, code=1).stderr
    shown = run("restore", str(tmp_path / "copy.db"), "--store", url, "--force").stdout
    assert f"restored 2 responses, 0 conversations from {tmp_path / 'copy.db'}" in shown
    assert json.loads(run("stats", "--store", url, "--json").stdout)["responses"] == 2


def test_migrate_says_when_there_is_nothing_to_do(url: str) -> None:
    assert run("migrate", "--store", url).stdout == "up to date\n"
    assert json.loads(run("migrate", "--store", url, "--dry-run", "--json").stdout) == {"pending": []}


def test_a_copy_that_was_killed_goes_on(url: str, tmp_path: Path) -> None:
    """`kill -9` in the middle: what was written by then is not written again."""
    many = [(f"p{number:06}", "x", b"y" * 500, 1.0) for number in range(30_000)]
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.executemany("INSERT INTO words VALUES (?, ?, ?, ?)", many)
    target = tmp_path / "y.db"
    command = [sys.executable, "-m", "isthmus", "store", "copy", "--from", url, "--to", f"sqlite:{target}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as copying:
        until(lambda: words_in(target) > 0 or copying.poll() is not None)
        copying.kill()
    assert 0 < words_in(target) < len(many), "it was killed in the middle"
    assert "`--resume` goes on" in run("copy", "--from", url, "--to", f"sqlite:{target}", code=1).stderr
    done = json.loads(run("copy", "--from", url, "--to", f"sqlite:{target}", "--resume", "--json").stdout)
    assert done["tables"]["words"] == len(many)
    assert 0 < done["written"] < done["rows"]


def words_in(path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM words").fetchone()[0])
    except sqlite3.OperationalError:
        return 0  # it is not there yet
