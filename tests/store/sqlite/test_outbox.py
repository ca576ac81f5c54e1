"""What only the outbox in SQLite does; what it has in common with the others is asked in `store/test_outbox`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from isthmus.ports import EventBatch, Notice
from isthmus.store.sqlite import outbox
from isthmus.store.sqlite.store import SqliteStore
from stored import new_database, turn


def notice(number: int) -> Notice:
    return Notice(f"n{number}", "hook", "response.completed", f"r{number}", b"{}")


def test_of_saves_that_share_a_transaction_one_that_fails_takes_only_its_own_notice_along(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        await store.save(turn("r0"), events=EventBatch(0, (b"0",)))
        saves = [store.save(turn(f"r{number}"), notices=[notice(number)]) for number in range(1, 6)]
        saves.append(store.save(turn("r0"), events=EventBatch(9, (b"9",)), notices=[notice(0)]))
        *saved, failed = await asyncio.gather(*saves, return_exceptions=True)
        assert saved == [True] * 5
        assert isinstance(failed, ValueError)
        assert {each.notice.id for each in await store.deliveries()} == {f"n{number}" for number in range(1, 6)}
        await store.aclose()

    asyncio.run(ask())


def test_a_notice_that_cannot_be_written_takes_its_save_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else there would be an end that nobody is told of."""

    def broken(*given: object) -> None:
        raise ValueError("not now")

    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        await store.save(turn("r1", status="in_progress"))
        monkeypatch.setattr("isthmus.store.sqlite.store.queue", broken)
        with pytest.raises(ValueError, match="not now"):
            await store.save(turn("r1"), notices=[notice(1)])
        with pytest.raises(ValueError, match="not now"):
            await store.update_status("r1", "failed", notices=[notice(1)])
        found = await store.load("r1")
        assert found is not None
        assert found.status == "in_progress"
        await store.aclose()

    asyncio.run(ask())


def test_notices_are_found_by_an_index() -> None:
    """However many wait, a look for those that are due reads no others."""
    connection = new_database()
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    outbox.queue(connection, [notice(1)], lambda: 1.0)
    outbox._take_due(connection, "hook", "a", 10.0, 5, lambda: 2.0)
    outbox._next_due(connection, "hook", lambda: 2.0)
    connection.set_trace_callback(None)
    looks = [statement for statement in seen if statement.startswith("SELECT")]
    assert len(looks) == 4
    for look in looks:
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {look}"))
        assert "SEARCH outbox" in plan, (look, plan)
        assert "SCAN" not in plan, (look, plan)
        assert "TEMP B-TREE" not in plan, (look, plan)
    connection.close()
