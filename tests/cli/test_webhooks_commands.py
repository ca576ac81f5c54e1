"""`isthmus webhooks`: what a person sees and does about deliveries, in a real database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from isthmus.cli.commands import app
from isthmus.ports import Notice, Store
from isthmus.store.open import open_store
from stored import turn


def with_store(url: str, use: Callable[[Store], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        store = open_store(url)
        try:
            return await use(store)
        finally:
            await store.aclose()

    return asyncio.run(main())


@pytest.fixture
def url(tmp_path: Path) -> str:
    """One given up, one that waits, one under way."""

    async def fill(store: Store) -> None:
        for name in ("a", "b", "c"):
            notice = Notice(f"wh_{name}", "billing", "response.completed", f"resp_{name}", b"{}", "ann")
            await store.save(turn(f"resp_{name}"), notices=[notice])
        await store.take_due("billing", holder="gw", seconds=600, most=2)
        await store.put_off("wh_a", holder="gw", seconds=None, reason="it answered HTTP 410")

    url = f"sqlite:{tmp_path}/x.db"
    with_store(url, fill)
    return url


def run(url: str, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["webhooks", *arguments, "--store", url], env={"NO_COLOR": "1"})
    assert result.exit_code == code, result.output
    return result.output


def test_the_list_shows_what_needs_a_person_first(url: str) -> None:
    first, second, third = run(url, "list").splitlines()
    assert first.split() == [
        *("given", "up", "wh_a", "billing", "response.completed", "resp_a", "attempts", "1:"),
        *("it", "answered", "HTTP", "410"),
    ]
    assert [line.split()[:2] for line in (second, third)] == [["waiting", "wh_c"], ["waiting", "wh_b"]]
    assert len(run(url, "list", "--most", "1").splitlines()) == 1


def test_the_list_is_for_programs_too(url: str) -> None:
    first, second, _ = (json.loads(line) for line in run(url, "list", "--json").splitlines())
    assert first == {
        "id": "wh_a",
        "state": "given_up",
        "endpoint": "billing",
        "type": "response.completed",
        "response": "resp_a",
        "owner": "ann",
        "attempts": 1,
        "queued_seconds_ago": first["queued_seconds_ago"],
        "due_in_seconds": None,
        "reason": "it answered HTTP 410",
    }
    assert (second["state"], second["reason"]) == ("waiting", None)
    assert second["due_in_seconds"] <= 0


def test_one_is_sent_again_or_all_that_were_given_up(url: str) -> None:
    assert run(url, "retry", "wh_c") == "1 to be sent again\n"
    assert run(url, "retry", "--all") == "1 to be sent again\n"
    assert run(url, "retry", "--all") == "0 to be sent again\n"
    due = with_store(url, lambda store: store.take_due("billing", holder="x", seconds=1, most=9))
    assert {each.notice.id for each in due} == {"wh_a", "wh_c"}


def test_one_is_forgotten_or_all_that_were_given_up(url: str) -> None:
    assert run(url, "forget", "--all") == "1 forgotten\n"
    assert run(url, "forget", "wh_c") == "1 forgotten\n"
    assert [line.split()[1] for line in run(url, "list").splitlines()] == ["wh_b"]


@pytest.mark.parametrize("command", ["retry", "forget"])
def test_what_is_under_way_or_unknown_is_left_alone(url: str, command: str) -> None:
    for id in ("wh_b", "wh_nobody"):
        assert f"no delivery `{id}` waits" in run(url, command, id, code=1)
    for arguments in ((), ("wh_a", "--all")):
        assert "name one delivery by its id, or say `--all`" in run(url, command, *arguments, code=1)


def test_an_empty_list_says_so(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/empty.db"
    with_store(url, lambda store: store.stats())
    assert run(url, "list") == "nothing waits, and nothing was given up\n"
    assert run(url, "list", "--json") == ""
    assert "there is no store at" in run(f"sqlite:{tmp_path}/nowhere.db", "list", code=1)
