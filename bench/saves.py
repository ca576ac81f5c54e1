"""What a save costs in SQLite and in PostgreSQL: saves per second, CPU time of a small request, and room on the disk.

Run `python -m bench.saves`. The saves go to the stores themselves, alone and many at a time; requests go through a real
gateway, whose CPU time is told by the kernel, and beside it that of the database's processes. The database runs on the
same machine, with its own care for the disk. What a response takes there is measured with agents: instructions and
tools that stay the same, a piece of source code to read in each turn, and 1.2 kB of prose for an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.robustness.client import Client
from bench.robustness.report import table
from bench.robustness.rig import running_gateway
from msgspec.json import encode

from isthmus.ports import StoredResponse
from isthmus.store.open import open_store
from isthmus.testing import ScriptedUpstream, chat
from isthmus.testing.postgres import PostgresServer

_TICK: Final = os.sysconf("SC_CLK_TCK")
_SOURCES: Final = Path(__file__).parents[1] / "src"
_PROSE: Final = Path(__file__).parents[1] / "docs"
_TURNS: Final = 25
_TEXT: Final = "a word of an ordinary answer, and some more of them " * 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.saves", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each figure")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--agents", type=int, default=20, help=f"of {_TURNS} turns each, for the room on the disk")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, PostgresServer.running(settings={}) as server:
        places = {"SQLite": lambda name: f"sqlite:{folder}/{name}.db", "PostgreSQL": lambda name: server.new_database()}
        rows = []
        for store, durability, many in itertools.product(places, ("process", "power"), (1, 32)):
            url = places[store](f"{durability}{many}")
            rate = asyncio.run(_saves(url, durability, many, arguments.seconds))
            rows.append((store, durability, str(many), f"{rate:,.0f}"))
        print("\n".join(table(("store", "durability", "at a time", "saves per second"), rows)), end="\n\n")
        rows = []
        for store in places:
            figures = asyncio.run(_requests(Path(folder), places[store]("requests"), server, arguments.requests))
            rows.append((store, *(f"{each:,.0f}" for each in figures)))
        head = ("store", "gateway, µs CPU", "database, µs CPU", "each, µs in all")
        print("\n".join(table(head, rows)), end="\n\n")
        rows = []
        for store, chained in itertools.product(places, (True, False)):
            url = places[store](f"room{chained}")
            kept = asyncio.run(_room(Path(folder), url, server, arguments.agents, chained))
            sent = "the new turn (`previous_response_id`)" if chained else "the whole history"
            rows.append((store, sent, f"{kept / 1000:.1f} kB"))
        print("\n".join(table(("store", "what is sent", "for each stored response"), rows)))


async def _saves(url: str, durability: Any, many: int, seconds: float) -> float:
    store = open_store(url, durability=durability)
    numbers = itertools.count()
    until = time.perf_counter() + seconds

    async def save() -> None:
        while time.perf_counter() < until:
            await store.save(_record(next(numbers)))

    try:
        began = time.perf_counter()
        await asyncio.gather(*(save() for _ in range(many)))
        return next(numbers) / (time.perf_counter() - began)
    finally:
        await store.aclose()


def _record(number: int) -> StoredResponse:
    id = f"resp_{number:016x}"
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"{number} {_TEXT}"}]}
    told = {"type": "message", "id": f"msg_{id}", "role": "assistant", "status": "completed"}
    answer = {**told, "content": [{"type": "output_text", "text": f"{number} {_TEXT}", "annotations": []}]}
    whole = {"id": id, "object": "response", "status": "completed", "output": [answer], "model": "model"}
    return StoredResponse(id, encode(whole), (encode(said),), created_at=time.time(), model="model", provider="up")


async def _requests(folder: Path, url: str, server: PostgresServer, count: int) -> tuple[float, float, float]:
    """Microseconds for each request."""
    place = folder / f"gateway{abs(hash(url))}"
    place.mkdir()
    with ScriptedUpstream.running(default=chat("Hello there.")) as upstream:
        async with (
            running_gateway(place, upstream.base_url, store=url) as gateway,
            await Client.open(gateway.port) as client,
        ):
            await _ask(client, 100)
            before, database = gateway.cpu(), _cpu_of_database(server)
            began = time.perf_counter()
            await _ask(client, count)
            each = (time.perf_counter() - began) / count
            used = (gateway.cpu() - before) / count, (_cpu_of_database(server) - database) / count
    return used[0] * 1e6, used[1] * 1e6, each * 1e6


async def _ask(client: Client, count: int) -> None:
    for _ in range(count):
        reply = await client.request("POST", "/v1/responses", {"input": "Hello"})
        assert json.loads(reply.body)["status"] == "completed", reply.body


async def _room(folder: Path, url: str, server: PostgresServer, agents: int, chained: bool) -> float:
    """Bytes on the disk for each response, indexes included, traces not."""
    place = folder / f"room{abs(hash(url))}"
    place.mkdir()
    code = "".join(each.read_text() for each in sorted(_SOURCES.rglob("*.py")))
    prose = "".join(each.read_text() for each in sorted(_PROSE.rglob("*.md")))
    numbers = itertools.count()

    def piece(text: str, size: int) -> str:
        at = next(numbers) * 4001 % (len(text) - size)
        return text[at : at + size]

    tools = [_tool(number) for number in range(15)]
    with ScriptedUpstream.running() as upstream:
        before = _disk(url, server)
        async with (
            running_gateway(place, upstream.base_url, store=url) as gateway,
            await Client.open(gateway.port) as client,
        ):
            for _ in range(agents):
                last, history = None, list[Any]()
                for _ in range(_TURNS):
                    turn = {"type": "message", "role": "user", "content": piece(code, 4000)}
                    body = {"input": [turn] if chained else [*history, turn], "instructions": prose[:8000]}
                    if last is not None and chained:
                        body["previous_response_id"] = last
                    upstream.push(chat(piece(prose, 1200)))
                    reply = await client.request("POST", "/v1/responses", {**body, "tools": tools})
                    made = json.loads(reply.body)
                    assert made["status"] == "completed", reply.body
                    last, history = made["id"], [*history, turn, *made["output"]]
            await gateway.stop()
        return (_disk(url, server) - before) / agents / _TURNS


def _tool(number: int) -> dict[str, Any]:
    fields = {f"field_{each}": {"type": "string", "description": _TEXT[:80]} for each in range(5)}
    schema = {"type": "object", "properties": fields, "required": [], "additionalProperties": False}
    return {"type": "function", "name": f"tool_{number}", "description": _TEXT[:200], "parameters": schema}


def _disk(url: str, server: PostgresServer) -> int:
    path = Path(url.removeprefix("sqlite:"))
    if path.suffix == ".db":
        return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))
    traces = "('kinds', 'traces', 'places', 'totals', 'spreads', 'trace_state')"
    each = "pg_total_relation_size(format('%I.%I', schemaname, tablename)::regclass)"
    kept = f"schemaname = 'isthmus' AND tablename NOT IN {traces}"
    return int(
        server.execute(f"SELECT coalesce(sum({each}), 0) FROM pg_tables WHERE {kept}", url.rpartition("/")[2])[0][0]
    )


def _cpu_of_database(server: PostgresServer) -> float:
    """Of all its processes that are there now; its connections stay."""
    total = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if entry.joinpath("exe").readlink().name == "postgres" and str(server.folder) in os.readlink(entry / "cwd"):
                fields = entry.joinpath("stat").read_text().rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return total / _TICK


if __name__ == "__main__":
    main()
