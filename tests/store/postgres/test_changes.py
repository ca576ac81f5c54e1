"""Who waits is woken by what others commit, also if the word of it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import pytest

from isthmus.errors import StoreUnavailable
from isthmus.store.postgres.changes import Changes
from isthmus.store.postgres.connect import Options, connect
from isthmus.store.postgres.medium import Medium, Trouble
from postgres import name_of, server

LONG = 60.0


def listening(options: Options, question: Callable[[Changes, Medium], Awaitable[None]], **more: Any) -> None:
    async def ask() -> None:
        medium = Medium(options)
        changes = Changes(medium, **{"poll_seconds": LONG, **more})
        try:
            mark = await changes.watch(0, None)
            while not mark:  # it listens
                mark = await changes.watch(LONG, mark)
            await question(changes, medium)
        finally:
            await changes.aclose()

    asyncio.run(ask())


def commit(options: Options) -> None:
    """What a process does that dies before it has said so."""
    with closing(connect(options)) as connection:
        connection.execute("INSERT INTO secrets VALUES (gen_random_uuid()::text, 'x')")


def test_one_hears_what_another_one_commits(options: Options) -> None:
    async def ask(here: Changes, medium: Medium) -> None:
        there = Changes(Medium(options), poll_seconds=LONG)
        mark = await here.watch(0, None)
        there.changed()
        assert await here.watch(LONG, mark) > mark
        await there.aclose()

    listening(options, ask)


def test_another_schema_is_another_store(options: Options) -> None:
    from dataclasses import replace

    async def ask(here: Changes, medium: Medium) -> None:
        there = Changes(Medium(replace(options, schema="other")), poll_seconds=LONG)
        beside = Changes(Medium(options), poll_seconds=LONG)
        mark, heard = await here.watch(0, None), await beside.watch(0, None)
        there.changed()
        here.changed()
        assert await beside.watch(LONG, heard) > heard
        del mark
        await there.aclose()
        await beside.aclose()

    listening(options, ask)


def test_ones_own_changes_wake_too_and_are_in_the_mark(options: Options) -> None:
    async def ask(here: Changes, medium: Medium) -> None:
        mark = await here.watch(0, None)
        waiting = asyncio.create_task(here.watch(LONG, mark))
        here.changed()
        assert await waiting > mark
        here.changed()
        mark = await here.watch(0, None)
        await asyncio.sleep(0)
        assert await here.watch(0, mark) == mark

    listening(options, ask)


def test_a_word_that_nobody_sent_is_found_by_looking(options: Options) -> None:
    async def ask(here: Changes, medium: Medium) -> None:
        mark = await here.watch(0, None)
        await asyncio.to_thread(commit, options)
        async with asyncio.timeout(LONG):
            while await here.watch(LONG, mark) == mark:
                pass

    listening(options, ask, poll_seconds=0.05)


def test_without_a_change_the_wait_ends_by_itself(options: Options) -> None:
    async def ask(here: Changes, medium: Medium) -> None:
        mark = await here.watch(0, None)
        assert await here.watch(0.01, mark) == mark

    listening(options, ask)


@pytest.mark.parametrize("how", ["cut", "restarted"])
def test_what_happens_while_nobody_listens_counts_as_a_change(options: Options, how: str) -> None:
    async def ask(here: Changes, medium: Medium) -> None:
        mark = await here.watch(0, None)
        if how == "cut":
            database = name_of(options.address.url)
            server().execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
        else:
            await asyncio.to_thread(server().restart)
        assert await here.watch(LONG, mark) > mark
        there = Changes(Medium(options), poll_seconds=LONG)
        async with asyncio.timeout(LONG):
            while True:  # it listens again: what the other one says comes
                mark = await here.watch(0, None)
                there.changed()
                if await here.watch(1, mark) > mark:
                    break
        await there.aclose()

    listening(options, ask, retry_seconds=0.05)


def test_that_the_server_is_away_is_known_at_once_and_that_it_is_back(options: Options) -> None:
    async def ask(here: Changes, medium: Medium) -> None:
        mark = await here.watch(0, None)
        await asyncio.to_thread(server().stop)
        try:
            async with asyncio.timeout(LONG):
                while not medium.troubled:  # noqa: ASYNC110  another thread's doing
                    await asyncio.sleep(0.005)
            with pytest.raises(StoreUnavailable):
                medium.check()
        finally:
            await asyncio.to_thread(server().start)
        await asyncio.to_thread(medium.wait, LONG)
        assert await here.watch(LONG, mark) > mark

    listening(options, ask, retry_seconds=0.05)


def test_that_others_get_connections_again_is_found_out_by_itself(options: Options) -> None:
    async def ask(here: Changes, medium: Medium) -> None:
        medium.report(Trouble("too many clients", "wait"))
        await asyncio.to_thread(medium.wait, LONG)
        medium.check()

    listening(options, ask, retry_seconds=0.05)


def test_a_bug_in_listening_is_told_and_does_not_end_it(
    options: Options, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hear, failed = Changes._hear, []

    def fail_once(self: Changes, connection: Any) -> bool:
        if not failed:
            failed.append(1)
            raise ValueError("a bug")
        return hear(self, connection)

    monkeypatch.setattr(Changes, "_hear", fail_once)

    async def ask(here: Changes, medium: Medium) -> None:
        mark = await here.watch(0, None)
        here.changed()
        async with asyncio.timeout(LONG):
            while not failed or await here.watch(LONG, mark) == mark:  # noqa: ASYNC110
                await asyncio.sleep(0)

    listening(options, ask, retry_seconds=0.01)
    assert "store.listen.failed" in caplog.text


def test_files_beyond_those_that_select_knows_are_waited_for(options: Options) -> None:
    import os
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1300:
        pytest.skip("so many files cannot be opened here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1300), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        test_one_hears_what_another_one_commits(options)
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_closing_twice_does_nothing(options: Options) -> None:
    async def ask() -> None:
        changes = Changes(Medium(options))
        await changes.aclose()
        await changes.aclose()

    asyncio.run(ask())
