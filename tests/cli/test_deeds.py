"""What is done at a terminal stands in the audit log, by whom and to what."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from isthmus.cli.commands import app
from isthmus.ports.outbox import Notice
from isthmus.store.open import open_store
from stored import turn


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:{tmp_path}/x.db"

    async def fill() -> None:
        store = open_store(url)
        for name in ("1", "2"):
            notice = Notice(f"wh_{name}", "billing", "response.completed", f"resp_{name}", b"{}", "ann")
            await store.save(turn(f"resp_{name}"), notices=[notice])
            await store.take_due("billing", holder="gw", seconds=600, most=1)
            await store.put_off(f"wh_{name}", holder="gw", seconds=None, reason="it answered HTTP 410")
        await store.aclose()

    asyncio.run(fill())
    (tmp_path / "x.db.key").write_bytes(bytes(32))
    return url


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"NO_COLOR": "1", "USER": "ann", "LOGNAME": "ann"})
    assert result.exit_code == code, result.output
    return result.stdout


def deeds(url: str) -> list[dict[str, Any]]:
    """The latest first."""
    return [json.loads(line) for line in run("audit", "--store", url, "--json").splitlines()]


@pytest.mark.parametrize(
    ("command", "action", "target", "details"),
    [
        (["store", "prune", "--days", "7"], "store.prune", "", {"days": "7.0"}),
        (["webhooks", "retry", "wh_1"], "webhook.retry", "wh_1", {}),
        (["webhooks", "retry", "--all"], "webhook.retry", "all", {}),
        (["webhooks", "forget", "wh_2"], "webhook.forget", "wh_2", {}),
    ],
)
def test_who_did_what_to_what(url: str, command: list[str], action: str, target: str, details: dict[str, str]) -> None:
    run(*command, "--store", url)
    (deed,) = deeds(url)
    assert (deed["actor"], deed["action"], deed.get("target", "")) == ("cli", action, target)
    assert deed["details"] == {**details, "user": "ann"}


def test_a_repair_is_noted_where_it_set_something_aside(url: str, tmp_path: Path) -> None:
    run("store", "check", "--repair", "--store", url)
    assert deeds(url) == [], "there was nothing to repair"
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute("UPDATE pieces SET data = x'7b7d' WHERE item_id = 'msg_resp_1'")
    run("store", "check", "--store", url, code=3)
    assert deeds(url) == [], "a look is no deed"
    run("store", "check", "--repair", "--store", url)
    (deed,) = deeds(url)
    assert (deed["actor"], deed["action"], deed["details"]["set_aside"]) == ("cli", "store.repair", "1")


def test_a_restore_is_noted_in_what_was_restored(url: str, tmp_path: Path) -> None:
    run("store", "backup", str(tmp_path / "copy.db"), "--store", url)
    run("store", "prune", "--days", "7", "--store", url)
    run("store", "restore", str(tmp_path / "copy.db"), "--store", url, "--force")
    (deed,) = deeds(url)
    assert (deed["actor"], deed["action"], deed["target"]) == ("cli", "store.restore", "copy.db")
