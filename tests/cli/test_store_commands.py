"""`isthmus store`: what a person sees of a real database."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isthmus.cli.commands import app
from isthmus.ports import StoredConversation
from isthmus.store.open import open_store
from postgres import database_of, empty_database
from stored import message, turn


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:{tmp_path}/x.db"

    async def fill() -> None:
        store = open_store(url)
        await store.save(turn("resp_1", at=1000.0))
        await store.save(turn("resp_2", at=2000.0))
        await store.aclose()

    asyncio.run(fill())
    return url


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["store", *arguments], env={"NO_COLOR": "1"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_stats_tell_how_much_there_is(url: str) -> None:
    shown = run("stats", "--store", url)
    assert "responses      2" in shown
    assert "1970-01-01 00:33:20 UTC" in shown
    assert json.loads(run("stats", "--store", url, "--json"))["responses"] == 2


def test_export_writes_one_object_per_line(url: str, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    run("export", "--store", url, "-o", str(target))
    assert [json.loads(line)["id"] for line in target.read_text().splitlines()] == ["resp_1", "resp_2"]


def test_prune_forgets_by_the_limits_given(url: str) -> None:
    assert "forgot 2 responses" in run("prune", "--store", url, "--days", "1")
    assert json.loads(run("stats", "--store", url, "--json"))["responses"] == 0


def test_prune_by_size_leaves_age_alone(url: str) -> None:
    assert "forgot 0 responses" in run("prune", "--store", url, "--max-size", "1GB")


@pytest.mark.parametrize("command", [["stats"], ["export"], ["prune", "--days", "1"]], ids=lambda command: command[0])
@pytest.mark.parametrize("place", ["gone/x.db", "x.dbb"])
def test_a_wrong_path_is_told_and_nothing_is_made_there(tmp_path: Path, command: list[str], place: str) -> None:
    result = CliRunner().invoke(app, ["store", *command, "--store", f"sqlite:{tmp_path}/{place}"])
    assert result.exit_code == 1
    assert f"there is no store at `{tmp_path}/{place}`" in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_no_store_and_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "x.db").touch()
    assert CliRunner().invoke(app, ["store", "stats", "--store", f"sqlite:{tmp_path}/x.db"]).exit_code == 1
    assert (tmp_path / "x.db").read_bytes() == b""


@pytest.mark.parametrize("limits", [["--days", "0"], ["--max-size", "0"], []], ids=" ".join)
def test_to_prune_without_a_limit_says_what_a_limit_is(url: str, tmp_path: Path, limits: list[str]) -> None:
    config = tmp_path / "isthmus.toml"
    config.write_text("[store]\nkeep_days = 0\nmax_bytes = 0\n")
    result = CliRunner().invoke(app, ["store", "prune", "--config", str(config), "--store", url, *limits])
    assert result.exit_code == 1
    told = " ".join(result.output.split())
    assert "keeps everything, so there is nothing to forget" in told
    assert "`--days 7`" in told
    assert json.loads(run("stats", "--store", url, "--json"))["responses"] == 2


def test_a_size_that_is_none_is_told_in_words(url: str) -> None:
    result = CliRunner().invoke(app, ["store", "prune", "--store", url, "--max-size", "much"])
    assert result.exit_code == 1
    assert "`--max-size much` must be a size" in " ".join(result.output.split())


def test_a_memory_store_cannot_be_looked_at_from_outside() -> None:
    result = CliRunner().invoke(app, ["store", "stats", "--store", "memory:"])
    assert result.exit_code == 1
    assert "lives and dies with its gateway" in result.output


def test_a_provider_without_its_key_does_not_keep_anybody_from_the_store(url: str, tmp_path: Path) -> None:
    config = tmp_path / "isthmus.toml"
    config.write_text(f'[providers.deepseek]\napi_key = "${{NO_SUCH_KEY}}"\n[store]\nurl = "{url}"\n')
    assert "responses      2" in run("stats", "--config", str(config))


def damage(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_check_says_that_all_is_sound(url: str) -> None:
    assert "examined 2 responses, 0 conversations: all of them are as they were written" in run("check", "--store", url)
    assert json.loads(run("check", "--store", url, "--json")) == {
        "sound": True,
        "responses": 2,
        "conversations": 0,
        "damage": [],
    }


def test_check_names_what_is_damaged_and_repair_sets_it_aside(url: str, tmp_path: Path) -> None:
    damage(tmp_path / "x.db", "UPDATE pieces SET data = x'7b7d' WHERE item_id = 'msg_resp_1'")
    found = CliRunner().invoke(app, ["store", "check", "--store", url])
    assert found.exit_code == 3
    assert "response      resp_1: its output item 0 is not as it was written" in found.stdout
    assert "--repair" in found.stdout
    assert json.loads(run("stats", "--store", url, "--json"))["responses"] == 2, "a look changes nothing"
    repaired = json.loads(run("check", "--store", url, "--repair", "--json"))
    (set_aside,) = repaired["damage"]
    assert (repaired["sound"], set_aside["id"], set_aside["set_aside"]) == (True, "resp_1", True)
    assert json.loads(run("stats", "--store", url, "--json"))["responses"] == 1
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        assert connection.execute("SELECT id FROM quarantine").fetchall() == [("resp_1",)]


def test_a_store_that_cannot_be_examined_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("my notes " * 1000)
    for store, says in ((f"sqlite:{tmp_path}/none.db", "there is no store"), (f"sqlite:{tmp_path}/notes", "SQLite")):
        failed = CliRunner().invoke(app, ["store", "check", "--store", store], env={"COLUMNS": "400"})
        assert failed.exit_code == 1
        assert says in failed.stderr


def test_backup_tells_where_the_copy_and_its_key_are(url: str, tmp_path: Path) -> None:
    (tmp_path / "x.db.key").write_bytes(b"k" * 32)
    shown = run("backup", str(tmp_path / "copy.db"), "--store", url)
    assert f"copied 2 responses, 0 conversations, {(tmp_path / 'copy.db').stat().st_size:,} bytes" in shown
    assert f"{tmp_path / 'copy.db.key'}" in shown.replace("\n", "")
    again = CliRunner().invoke(app, ["store", "backup", str(tmp_path / "copy.db"), "--store", url])
    assert again.exit_code == 1
    assert "--force" in again.stderr
    run("backup", str(tmp_path / "copy.db"), "--store", url, "--force")


def test_a_copy_without_a_key_says_so(url: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["store", "backup", str(tmp_path / "copy.db"), "--store", url])
    assert done.exit_code == 0
    assert "there was no key beside the store" in done.stderr


def test_conversations_are_counted_exported_and_forgotten(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'store.db'}"

    async def fill() -> None:
        store = open_store(url)
        for id, at in (("conv_old", 1.0), ("conv_new", 4e9)):
            await store.start_conversation(StoredConversation(id, at), [message("hi", f"msg_{id}")])
        await store.aclose()

    asyncio.run(fill())
    assert "conversations  2 (2 items)" in run("stats", "--store", url)
    exported = run("export", "--store", url).splitlines()
    assert [json.loads(line)["conversation"] for line in exported if line.startswith("{")] == ["conv_old", "conv_new"]
    assert "examined 0 responses, 2 conversations" in run("check", "--store", url)
    assert "copied 0 responses, 2 conversations" in run("backup", str(tmp_path / "copy.db"), "--store", url)
    assert "forgot 0 responses, 0 conversations" in run("prune", "--store", url, "--days", "1")
    assert "forgot 0 responses, 1 conversations" in run("prune", "--store", url, "--conversation-days", "1")
    assert "conversations  1 (1 items)" in run("stats", "--store", url)


def test_a_store_on_a_server_is_looked_after_in_the_same_way(url: str, tmp_path: Path) -> None:
    server = database_of(tmp_path)
    run("copy", "--from", url, "--to", server)
    assert "responses      2" in run("stats", "--store", server)
    assert "examined 2 responses, 0 conversations: all of them are as they were written" in run(
        "check", "--store", server
    )
    assert [
        json.loads(line)["id"] for line in run("export", "--store", server).splitlines() if line.startswith("{")
    ] == [
        "resp_1",
        "resp_2",
    ]
    assert "up to date" in run("migrate", "--store", server)
    run("backup", str(tmp_path / "copy.db"), "--store", server)
    assert "forgot 2 responses" in run("prune", "--store", server, "--days", "1")
    run("restore", str(tmp_path / "copy.db"), "--store", server, "--force")
    assert "responses      2" in run("stats", "--store", server)


def test_a_schema_without_a_store_is_told_and_nothing_is_made_there() -> None:
    server = empty_database()
    for _ in range(2):
        result = CliRunner().invoke(app, ["store", "stats", "--store", server], env={"COLUMNS": "400"})
        assert result.exit_code == 1
        assert "there is no store in the schema `isthmus`" in result.stderr
