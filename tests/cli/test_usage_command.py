"""`isthmus usage`: what was used and what it cost, from a real database."""

from __future__ import annotations

import asyncio
import csv
import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isthmus.cli.commands import app
from isthmus.ports.spending import Use
from isthmus.store.sqlite.store import SqliteStore

TODAY = datetime.now(UTC).date()
OLD = (TODAY - timedelta(days=40)).isoformat()


@pytest.fixture
def url(tmp_path: Path) -> str:
    async def fill() -> None:
        store = SqliteStore(tmp_path / "store.db")
        day = TODAY.isoformat()
        await store.note_uses(
            [
                Use(day, "key_a", "key_a", "", "deepseek", "chat", 2, 1500, 100, 300, 1_250_000_000),
                Use(day, "team:t", "key_b", "t", "zhipu", "glm-5", 1, 10, 0, 5, 0, 1),
                Use(OLD, "key_a", "key_a", "", "deepseek", "chat", 7),
            ]
        )
        await store.aclose()

    asyncio.run(fill())
    return f"sqlite:{tmp_path / 'store.db'}"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["usage", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_table_with_its_total(url: str) -> None:
    lines = run("--store", url).splitlines()
    assert lines[0].split() == ["day", "key", "provider", "model", "requests", "input", "cached", "output", "dollars"]
    assert lines[1].split()[1:] == ["key_a", "deepseek", "chat", "2", "1,500", "100", "300", "1.2500"]
    assert lines[2].split()[1:] == ["key_b", "zhipu", "glm-5", "1", "10", "0", "5", "0.0000", "+?"]
    assert lines[3].split() == ["total", "3", "1,510", "100", "305", "1.2500", "+?"]
    assert len(lines) == 4, "what is older is not asked for"


def test_csv_and_json_for_programs(url: str) -> None:
    rows = list(csv.DictReader(StringIO(run("--store", url, "--by", "team", "--csv"))))
    assert [(row["team"], row["requests"], row["cost"]) for row in rows] == [
        *(("", "2", "1.250000000"), ("t", "1", "0.000000000"))
    ]
    told = [json.loads(line) for line in run("--store", url, "--since", "60d", "--by", "day", "--json").splitlines()]
    assert [(each["day"], each["requests"]) for each in told] == [(OLD, 7), (TODAY.isoformat(), 3)]


def test_of_one_key_or_team_alone(url: str) -> None:
    assert run("--store", url, "--key", "key_a", "--by", "").splitlines()[1].split() == [
        *("2", "1,500", "100", "300", "1.2500")
    ]
    assert "glm-5" in run("--store", url, "--team", "t")
    assert "chat" not in run("--store", url, "--team", "t")


def test_nothing_is_said_in_words(url: str) -> None:
    assert run("--store", url, "--team", "nobody").startswith("nothing was used from ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--since", "soon"], "`since` must be a day"),
        (["--by", "x"], "`by` has `x`"),
        (["--csv", "--json"], "choose one"),
    ],
)
def test_a_mistake_is_told_with_the_next_step(url: str, arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(app, ["usage", "--store", url, *arguments])
    assert done.exit_code == 1
    assert words in done.output
