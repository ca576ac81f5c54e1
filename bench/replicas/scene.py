"""The provider, the receiver of webhooks and the store of the replicas, as they are asked from outside."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.replicas.deeds import answer_to
from bench.replicas.told import Told
from bench.robustness.upstream import Call, delta

_OK: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_UNFINISHED: Final = "SELECT id FROM responses WHERE status IN ('queued', 'in_progress') AND {}"


async def answer(call: Call) -> None:
    """`say` at once, `slow` a word every moment, `wait` for half a minute."""
    pause = {"say": 0.002, "slow": 0.06, "wait": 3.0}[call.words.partition(" ")[0]]
    text = answer_to(call.words, len(call.body["messages"]) - 1)
    if not call.body.get("stream"):
        await asyncio.sleep(pause * 8)
        await call.reply(text)
        return
    await call.begin()
    for word in text.split(" "):
        await asyncio.sleep(pause)
        await call.say(delta(f"{word} "))
    await call.end()


@dataclass(slots=True)
class Receiver:
    told: Told

    async def take(self, call: Call) -> None:
        self.told.received[call.body["data"]["id"]] += 1
        await call.write(_OK)


class Books:
    """The store itself, looked at beside the replicas."""

    def __init__(self, url: str) -> None:
        self._url = url

    def unfinished(self) -> set[str]:
        there = "deleted = 0" if self._url.startswith("sqlite:") else "NOT deleted"
        return {str(row[0]) for row in self.ask(_UNFINISHED.format(there))}

    def leases(self) -> int:
        return int(self.ask(f"SELECT count(*) FROM leases WHERE until > {time.time()}")[0][0])

    def waiting(self) -> int:
        return int(self.ask("SELECT count(*) FROM outbox")[0][0])

    def ask(self, question: str) -> list[Any]:
        if self._url.startswith("sqlite:"):
            path = Path(self._url.removeprefix("sqlite:"))
            with closing(sqlite3.connect(path, timeout=10)) as file:
                return file.execute(question).fetchall()
        import psycopg

        with psycopg.connect(self._url, options="-c search_path=isthmus", connect_timeout=5) as server:
            return server.execute(question.encode()).fetchall()
