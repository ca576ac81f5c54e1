"""Who still needs a gateway whose place another one has taken."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from isthmus.gateway.users import Users
from own_time import clock, run_in_own_time, turns


class Runs:
    def __init__(self, users: Users) -> None:
        self.stopped: list[tuple[object, str]] = []
        self._users = users

    def get(self, owner: str, id: str) -> Any:
        return SimpleNamespace(key=(owner, id))

    def stop(self, run: Any, reason: str) -> None:
        self.stopped.append((run.key, reason))
        self._users.end(run.key)


async def test_it_is_left_when_the_last_one_is_gone() -> None:
    users = Users()
    users.begin("request")
    users.begin(("local", "resp_1"))
    leaving = asyncio.create_task(users.leave(Runs(users), 600))  # type: ignore[arg-type]
    await turns()
    users.end("request")
    users.end("request")
    await turns()
    assert not leaving.done()
    users.end(("local", "resp_1"))
    await leaving
    assert len(users) == 0


def test_a_run_that_takes_too_long_is_ended_and_a_request_that_never_ends_is_not_waited_for() -> None:
    async def live() -> None:
        users = Users()
        runs = Runs(users)
        users.begin("request")
        users.begin(("local", "resp_1"))
        leaving = asyncio.create_task(users.leave(runs, 600))  # type: ignore[arg-type]
        await turns()
        clock().skip(599)
        await turns()
        assert runs.stopped == []
        clock().skip(2)
        await turns()
        assert runs.stopped == [(("local", "resp_1"), "shutdown")]
        clock().skip(11)
        await leaving

    run_in_own_time(live())
