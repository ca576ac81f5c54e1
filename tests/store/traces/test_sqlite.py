"""Traces in a file: who may read it, and what becomes of one that is gone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from isthmus.errors import StoreUnavailable
from isthmus.ports.traces import TracePage
from isthmus.store.traces.sqlite import SqliteTraces
from traced import keep_in, traced


def ids(page: TracePage) -> list[str]:
    return [summary.id.removeprefix("req_") for summary in page.traces]


async def test_two_processes_share_a_file(tmp_path: Path) -> None:
    first, second = (SqliteTraces(tmp_path / "t.db") for _ in range(2))
    keep_in(first, [traced("1")])
    keep_in(second, [traced("2", provider="other")])
    keep_in(first, [traced("3", provider="other")])
    assert ids(await first.list("local")) == ids(await second.list("local")) == ["3", "2", "1"]
    assert [total.requests for total in await second.totals("local", by="provider")] == [2, 1]
    first.close()
    second.close()


async def test_the_file_is_for_its_user_only(tmp_path: Path) -> None:
    store = SqliteTraces(tmp_path / "t.db")
    keep_in(store, [traced("1")])
    for name in ("t.db", "t.db-wal"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    store.close()


async def test_a_file_that_was_deleted_is_begun_anew(tmp_path: Path) -> None:
    store = SqliteTraces(tmp_path / "t.db")
    keep_in(store, [traced("1")])
    assert ids(await store.list("local")) == ["1"]
    for file in [*tmp_path.iterdir()]:  # noqa: ASYNC240  nobody else is on this loop
        file.unlink()
    keep_in(store, [traced("2")])
    assert ids(await store.list("local")) == ["2"]
    store.close()


async def test_what_is_no_file_of_ours_is_left_alone_and_said_so(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(b"something else entirely, and long enough to be looked at")
    store = SqliteTraces(path)
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        keep_in(store, [traced("1")])
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        await store.list("local")
    assert path.read_bytes().startswith(b"something else")
    path.unlink()
    keep_in(store, [traced("1")])
    assert ids(await store.list("local")) == ["1"]
    store.close()
