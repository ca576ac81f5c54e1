"""A gateway that hangs, or is gone, has no figure and says why, and does not hold up the run."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from bench.gateways import cpu, scene
from bench.gateways.process import Tree
from bench.gateways.progress import Progress
from bench.gateways.scene import Playing, Scene, first_answer
from bench.gateways.subjects import PEERS, Subject
from bench.gateways.workloads import WORKLOADS

PORTKEY = next(each for each in PEERS if each.key == "portkey")
HANGING = dataclasses.replace(PORTKEY, key="hanging", headers=lambda upstream: (), doors={"responses": "/v1/responses"})
KNOWN = [each for each in WORKLOADS if each.door == "responses" and each.part != "chain"]


class Upstream:
    """As much of a process as is asked of one that costs nothing."""

    def cpu(self) -> float:
        return 0.0


@asynccontextmanager
async def silent(connections: list[object]) -> AsyncIterator[int]:
    """Takes every connection, and never says a word."""

    class Silent(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            connections.append(transport)

    server = await asyncio.get_running_loop().create_server(Silent, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def on_stage(subject: Subject, port: int, folder: Path) -> Scene:
    made = Scene(cast(Tree, Upstream()), port, None, folder)
    made.playing.append(Playing(subject, port, port, None))
    return made


async def test_who_hangs_twice_is_asked_no_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cpu, "PATIENCE", 0.2)
    connections: list[object] = []
    async with silent(connections) as port:
        with Progress("test", 1) as progress:
            told = await cpu.measure(on_stage(HANGING, port, tmp_path), KNOWN, 3, 0.1, progress)
    figures = [row["hanging"] for row in told.values()]
    assert figures[0] == figures[1] == {"wrong": "no answer within 0.2 s"}
    assert figures[2:] == [{"not": "hung 2 times before, and is asked no more"}] * (len(KNOWN) - 2)
    assert len(connections) == 2 * cpu.CLIENTS


async def test_who_is_gone_says_so_and_the_others_go_on(tmp_path: Path) -> None:
    async with silent([]) as port:
        pass
    with Progress("test", 1) as progress:
        told = await cpu.measure(on_stage(HANGING, port, tmp_path), KNOWN[:3], 1, 0.1, progress)
    figures = [row["hanging"] for row in told.values()]
    assert "lets nobody in" in figures[0]["wrong"]
    assert "asked no more" in figures[2]["not"]


async def test_who_listens_and_never_answers_is_left_out_in_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(scene, "_ANSWERING", 0.3)
    async with silent([]) as port:
        with pytest.raises(RuntimeError, match="does not answer: no answer within"):
            await first_answer(Playing(HANGING, port, port, None))
