"""The pool of worker processes: bounded in every way, light when idle, and nobody's job stops another's."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from isthmus.errors import WorkNotDone
from isthmus.workers.pool import PoolOptions, WorkerPool
from waiting import until, until_soon
from worker_jobs import RUNNERS

PATIENCE = 30.0
OPTIONS: dict[str, Any] = {
    "runners": RUNNERS,
    "workers": 1,
    "slow_workers": 1,
    "quick": 20.0,
    "deadline": 30.0,
    "idle": 30.0,
    "memory": 300_000_000,
    "queue": 10,
    "wait": 30.0,
}


@asynccontextmanager
async def pool(**options: Any) -> AsyncIterator[WorkerPool]:
    made = WorkerPool(PoolOptions(**{**OPTIONS, **options}))
    try:
        yield made
    finally:
        await made.aclose()
        assert made.pids == []


class Held:
    """A job that waits until it is let go."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._gate, self._begun = folder / "gate", folder / "begun"
        os.mkfifo(self._gate)
        self.payload = json.dumps([str(self._begun), str(self._gate)]).encode()

    @property
    def begun(self) -> list[int]:
        """The processes that began it, in order."""
        return [int(line) for line in self._begun.read_text().splitlines()] if self._begun.exists() else []

    async def let_go(self, answer: bytes = b"done") -> None:
        await asyncio.to_thread(self._gate.write_bytes, answer)


def is_gone(pid: int) -> bool:
    """Ended; one that nobody has waited for yet counts, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def test_a_process_is_started_by_the_first_job_and_does_the_next_ones_too() -> None:
    async with pool() as workers:
        assert (workers.started, workers.pids) == (0, [])
        payloads = [b"", b"x", os.urandom(3_000_000)]
        assert [await workers.run("echo", payload) for payload in payloads] == payloads
        assert workers.started == 1


def test_it_works_with_uvloop_as_well() -> None:
    async def use() -> None:
        async with pool(quick=0.2, deadline=0.5) as workers:
            assert await workers.run("echo", b"x" * 100_000) == b"x" * 100_000
            with pytest.raises(WorkNotDone, match=r"`checks\.deadline`"):
                await workers.run("spin", b"")
            assert await workers.run("echo", b"y") == b"y"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(use())


@pytest.mark.parametrize("quick", [0.05, 20.0], ids=["slow lane", "quick lane"])
async def test_a_job_that_never_ends_is_killed_at_its_deadline_and_the_next_is_fine(
    quick: float, caplog: pytest.LogCaptureFixture
) -> None:
    async with pool(quick=quick, deadline=0.4) as workers:
        await workers.run("echo", b"")
        [pid] = workers.pids
        with pytest.raises(WorkNotDone, match=r"0\.4 s \(`checks\.deadline`\)") as given_up:
            await workers.run("spin", b"")
        assert given_up.value.code == "work_too_costly"
        assert await workers.run("echo", b"next") == b"next"
        assert pid not in workers.pids
        await until_soon(lambda: is_gone(pid))
    (told,) = (record.msg.facts for record in caplog.records if str(record.msg).startswith("worker.deadline"))
    assert (told["pid"], told["job"]) == (pid, "spin")
    assert told["at"].startswith("spin ("), "the log says where it was stuck"
    assert "worker_jobs.py" in told["at"]


@pytest.mark.parametrize("kind", ["die", "hog"])
async def test_a_job_that_breaks_its_process_is_given_up_and_the_next_is_fine(kind: str) -> None:
    async with pool() as workers:
        with pytest.raises(WorkNotDone, match=r"300,000,000 bytes \(`checks\.memory`\)") as given_up:
            await workers.run(kind, b"")
        assert given_up.value.code == "work_too_costly"
        assert await workers.run("echo", b"next") == b"next"


async def test_a_process_that_grew_is_replaced() -> None:
    size = b"%d" % (_own_peak() + 20_000_000)
    async with pool(memory=int(size) + 150_000_000) as workers:
        assert await workers.run("swell", size) == size
        assert await workers.run("echo", b"next") == b"next"
        assert workers.started == 2


async def test_the_size_of_the_gateway_is_not_held_against_its_processes() -> None:
    ballast = bytearray(b"x") * 200_000_000
    async with pool() as workers:
        for _ in range(3):
            await workers.run("echo", b"")
        assert workers.started == 1
    del ballast


def _own_peak() -> int:
    """At least half of what the process may take, and more than this one ever took."""
    return max(150_000_000, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


async def test_a_bug_in_a_job_is_told_as_one_and_costs_no_process() -> None:
    async with pool() as workers:
        with pytest.raises(WorkNotDone, match="the log says more") as failed:
            await workers.run("fail", b"")
        assert failed.value.code == "work_failed"
        assert await workers.run("echo", b"next") == b"next"
        assert workers.started == 1


async def test_a_long_job_leaves_the_quick_lane_to_the_others(tmp_path: Path) -> None:
    held = Held(tmp_path / "held")
    async with pool(quick=1.0) as workers:
        long = asyncio.create_task(workers.run("hold", held.payload))
        await until_soon(lambda: held.begun)
        for number in range(5):
            assert await workers.run("echo", b"%d" % number) == b"%d" % number
        assert not long.done()
        await held.let_go()
        assert await long == b"done"
        assert len(held.begun) == 1


async def test_a_second_long_job_begins_anew_when_the_slow_lane_is_free(tmp_path: Path) -> None:
    first, second = Held(tmp_path / "first"), Held(tmp_path / "second")
    async with pool(quick=1.0) as workers:
        one = asyncio.create_task(workers.run("hold", first.payload))
        await until_soon(lambda: first.begun)
        two = asyncio.create_task(workers.run("hold", second.payload))
        await until_soon(lambda: second.begun)
        await until_soon(lambda: is_gone(second.begun[0]))
        assert await workers.run("echo", b"quick") == b"quick"
        assert not two.done()
        await first.let_go(b"one")
        assert await one == b"one"
        await until_soon(lambda: len(second.begun) == 2)
        await second.let_go(b"two")
        assert await two == b"two"


async def test_only_so_many_wait_and_the_next_is_told_to_come_back(tmp_path: Path) -> None:
    held = Held(tmp_path / "held")
    async with pool(queue=1) as workers:
        long = asyncio.create_task(workers.run("hold", held.payload))
        await until_soon(lambda: held.begun)
        waiting = asyncio.create_task(workers.run("echo", b"waited"))
        await asyncio.sleep(0)
        with pytest.raises(WorkNotDone, match=r"1 others are waiting \(`checks\.queue`\)") as refused:
            await workers.run("echo", b"")
        assert refused.value.code == "workers_busy"
        await held.let_go()
        assert (await long, await waiting) == (b"done", b"waited")


async def test_nobody_waits_for_ever_for_a_free_process(tmp_path: Path) -> None:
    held = Held(tmp_path / "held")
    async with pool(wait=0.05) as workers:
        long = asyncio.create_task(workers.run("hold", held.payload))
        await until_soon(lambda: held.begun)
        with pytest.raises(WorkNotDone, match=r"`checks\.wait`") as refused:
            await workers.run("echo", b"")
        assert refused.value.code == "workers_busy"
        await held.let_go()
        assert await long == b"done"


async def test_a_job_that_nobody_waits_for_any_more_is_killed(tmp_path: Path) -> None:
    held = Held(tmp_path / "held")
    async with pool() as workers:
        long = asyncio.create_task(workers.run("hold", held.payload))
        await until_soon(lambda: held.begun)
        long.cancel()
        await until_soon(lambda: is_gone(held.begun[0]))
        assert await workers.run("echo", b"next") == b"next"


async def test_an_idle_process_ends() -> None:
    async with pool(idle=0.05) as workers:
        await workers.run("echo", b"")
        [pid] = workers.pids
        await until_soon(lambda: is_gone(pid))
        assert workers.pids == []
        assert await workers.run("echo", b"again") == b"again"


async def test_one_that_died_while_idle_is_replaced() -> None:
    async with pool() as workers:
        await workers.run("echo", b"")
        os.kill(workers.pids[0], 9)
        await until_soon(lambda: is_gone(workers.pids[0]))
        await until_soon(lambda: not workers._idle[0].alive)  # the loop has heard of it, too
        assert await workers.run("echo", b"again") == b"again"


async def test_a_process_inherits_no_secrets_and_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-secret")
    with (tmp_path / "open").open("w"):
        async with pool() as workers:
            found = json.loads(await workers.run("surroundings", b""))
    assert set(found["environment"]) <= {"PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LC_CTYPE"}
    kinds = {name.split(":")[0] for name in found["files"]}
    assert {kind for kind in kinds if not kind.startswith("/proc")} == {"/dev/null", "pipe", "socket"} & kinds


async def test_closing_ends_what_runs_and_takes_nothing_new(tmp_path: Path) -> None:
    held = Held(tmp_path / "held")
    workers = WorkerPool(PoolOptions(**OPTIONS))
    long = asyncio.create_task(workers.run("hold", held.payload))
    await until_soon(lambda: held.begun)
    await workers.aclose()
    assert is_gone(held.begun[0])
    with pytest.raises(WorkNotDone):
        await long
    with pytest.raises(WorkNotDone, match="shutting down"):
        await workers.run("echo", b"")
    await workers.aclose()


PARENT = """
import asyncio, sys
from isthmus.workers.pool import PoolOptions, WorkerPool
from worker_jobs import RUNNERS

async def main():
    options = dict(workers=2, slow_workers=1, quick=30, deadline=30, idle=60, memory=300_000_000, queue=9, wait=9)
    options["deadline"] = float(sys.argv[1])
    pool = WorkerPool(PoolOptions(runners=RUNNERS, **options))
    await asyncio.gather(pool.run("echo", b""), pool.run("echo", b""))
    spinning = asyncio.create_task(pool.run("spin", b""))
    while not pool._busy:
        await asyncio.sleep(0)
    print(*pool.pids, flush=True)
    await spinning

asyncio.run(main())
"""


def test_processes_end_with_a_parent_that_is_killed_also_in_the_middle_of_a_job() -> None:
    places = os.pathsep.join(place for place in sys.path if place)
    command = [sys.executable, "-c", PARENT, "1.0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": places}) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        parent.kill()
    assert len(pids) == 2
    until(lambda: all(map(is_gone, pids)), "a worker outlived its parent")


async def test_it_says_how_many_wait_and_how_many_work(tmp_path: Path) -> None:
    held = Held(tmp_path / "held")
    async with pool() as workers:
        jobs = [asyncio.create_task(workers.run("hold", held.payload)) for _ in range(3)]
        await until_soon(lambda: held.begun and workers.waiting == 2)
        assert (workers.busy, workers.waiting, workers.started) == (1, 2, 1)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        assert (workers.busy, workers.waiting) == (0, 0)
