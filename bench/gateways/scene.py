"""The scene of a run: the upstream and every subject, started, each on the core that it has to itself.

Subjects have the first core, the load and the upstream the others; with one core all share it, and the run says so. A
subject that does not start is told with its words and plays no part.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.gateways.client import Ask, run
from bench.gateways.process import Tree, free_port
from bench.gateways.subjects import ROOT, Subject
from bench.gateways.workloads import CHAIN, Workload, named

_PATIENCE: Final = 60.0
_ANSWERING: Final = 30.0
"""Seconds after it listens within which a subject has to answer."""
_HANGS: Final = 2
"""Of a subject, before it is given up."""


@dataclass(slots=True)
class Playing:
    """A subject that runs."""

    subject: Subject
    port: int
    upstream: int
    tree: Tree | None
    chain: str = ""
    """The last response of a chain that was made for it."""
    hung: int = 0
    """How often it let everybody wait for longer than anyone should."""

    def ask(self, workload: Workload) -> Ask:
        return self.subject.ask(workload, self.port, self.upstream, self.chain if workload.part == "chain" else "")

    def cpu(self) -> float:
        return self.tree.cpu() if self.tree else 0.0

    def given_up(self) -> str:
        """Nothing, or why it is asked no more: who hangs must not hold up everybody else."""
        return f"hung {self.hung} times before, and is asked no more" if self.hung >= _HANGS else ""


@dataclass(slots=True)
class Scene:
    upstream: Tree
    port: int
    core: int | None
    folder: Path
    playing: list[Playing] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    """Subjects that did not start, with the reason."""

    async def start(self, subject: Subject) -> tuple[Playing, float]:
        """It, and the seconds until it listened."""
        if subject.start is None:
            return Playing(subject, self.port, self.port, None), 0.0
        folder = Path(tempfile.mkdtemp(prefix=f"{subject.key}-", dir=self.folder))
        port = free_port()
        arguments, more = subject.start(folder, port, self.port)
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), **more}
        tree = Tree(arguments, folder, environment, self.core)
        try:
            seconds = await tree.listening(port)
        except BaseException:
            tree.end()
            raise
        return Playing(subject, port, self.port, tree), seconds


@asynccontextmanager
async def staged(subjects: Sequence[Subject]) -> AsyncIterator[Scene]:
    """A scene with these subjects; all of it is gone afterwards."""
    cores = os.sched_getaffinity(0)
    core = min(cores) if len(cores) > 1 else None
    _raise_file_limit()
    if core is not None:
        os.sched_setaffinity(0, cores - {core})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder) / "upstream"
        place.mkdir()
        environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT)}
        upstream = Tree([sys.executable, "-m", "bench.gateways.upstream"], place, environment, None)
        scene = Scene(upstream, 0, core, Path(folder))
        started: list[Playing] = []
        try:
            scene.port = await _port(upstream)
            for subject in subjects:
                try:
                    playing, _ = await scene.start(subject)
                    started.append(playing)
                    await first_answer(playing)
                    scene.playing.append(playing)
                except (OSError, RuntimeError) as error:
                    scene.absent[subject.key] = str(error).strip().splitlines()[0][:200]
            yield scene
        finally:
            trees = [upstream, *(each.tree for each in started if each.tree is not None)]
            for tree in trees:  # all at once: some take their time
                tree.ask_to_end()
            for tree in trees:
                tree.end()
            os.sched_setaffinity(0, cores)


async def first_answer(playing: Playing) -> None:
    """Wait until it answers at all, in the first of its doors; whoever listens may still have to load something."""
    small = named("Chat, small, whole" if "responses" not in playing.subject.doors else "small, whole")
    until = time.monotonic() + _ANSWERING
    for number in range(200):
        seen = await run(playing.ask(small), 1, 1, patience=until - time.monotonic())
        if not seen.wrong:
            return
        again = "connection ended" in seen.wrong[0] or " 503" in seen.wrong[0][:40]
        if time.monotonic() > until - 1 or (number > 20 and not again):
            break
        await asyncio.sleep(0.05)
    raise RuntimeError(f"does not answer: {seen.wrong[0]}")


async def make_chain(playing: Playing, turns: int = CHAIN) -> str:
    """So many turns, each after the one before; nothing, or what went wrong."""
    import json

    small = named("small, whole")
    for _ in range(turns):
        ask = playing.subject.ask(small, playing.port, playing.upstream, playing.chain)
        seen = await run(ask, 1, 1)
        if seen.wrong:
            return seen.wrong[0]
        playing.chain = json.loads(seen.last)["id"]
    return ""


async def _port(upstream: Tree) -> int:
    for _ in range(int(_PATIENCE / 0.01)):
        if (said := upstream.log.read_text()).endswith("\n"):
            return int(said.split()[0])
        await asyncio.sleep(0.01)
    raise RuntimeError(f"the upstream does not start: {upstream.words()}")


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 16_000 if hard == resource.RLIM_INFINITY else min(16_000, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
