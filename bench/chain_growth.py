"""What a long conversation costs in the store: space, time to save a turn, time to load the whole chain.

Run `python bench/chain_growth.py`. Each turn brings about 3 KB of new items and echoes the same 44 KB of tools and
instructions, as an agent's turns do. `chained` continues with `previous_response_id`; `resent` sends the whole history
as input on every turn. `naive` is what one JSON document for each turn with all of its history would take.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from isthmus.ports import StoredResponse
from isthmus.store.sqlite.store import SqliteStore

WORDS = [word + ending for word in ("bridge", "token", "stream", "model") for ending in ("", "s", "ing", "ed")]


@dataclass(frozen=True, slots=True)
class Result:
    bytes: int
    save_ms: float
    load_ms: float
    naive_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, nargs="+", default=[1, 10, 50, 100, 200, 400, 800])
    parser.add_argument("--durability", choices=["process", "power"], default="process")
    arguments = parser.parse_args()
    titles = ("turns", "KB", "KB/turn", "naive KB", "save ms", "load ms", "µs/turn")
    print(" " * 8, *(f"{title:>9}" for title in titles))
    for style in ("chained", "resent"):
        for turns in arguments.turns:
            with tempfile.TemporaryDirectory() as folder:
                result = asyncio.run(measure(Path(folder) / "store.db", turns, style, arguments.durability))
            figures = (
                f"{turns}",
                f"{result.bytes / 1000:.0f}",
                f"{result.bytes / 1000 / turns:.2f}",
                f"{result.naive_bytes / 1000:.0f}",
                f"{result.save_ms:.2f}",
                f"{result.load_ms:.2f}",
                f"{result.load_ms * 1000 / turns:.1f}",
            )
            print(f"{style:>8}", *(f"{figure:>9}" for figure in figures))


async def measure(path: Path, turns: int, style: str, durability: str) -> Result:
    store = SqliteStore(path, durability="power" if durability == "power" else "process")
    empty = (await store.stats()).bytes
    saves: list[float] = []
    naive = 0
    for record, whole_size in conversation(turns, style):
        naive += whole_size
        started = time.perf_counter()
        await store.save(record)
        saves.append(time.perf_counter() - started)
    loads: list[float] = []
    for _ in range(15):
        started = time.perf_counter()
        if style == "chained":
            assert len(await store.chain(f"resp_{turns - 1}")) == turns
        else:
            assert await store.load(f"resp_{turns - 1}") is not None
        loads.append(time.perf_counter() - started)
    used = (await store.stats()).bytes - empty
    await store.aclose()
    # The last turns: saving must not grow slower as the conversation grows longer.
    return Result(used, statistics.median(saves[-10:]) * 1000, statistics.median(loads) * 1000, naive)


def conversation(turns: int, style: str) -> Iterator[tuple[StoredResponse, int]]:
    noise = random.Random(7)
    tools = [{"type": "function", "name": f"tool_{n}", "description": text(noise, 120)} for n in range(16)]
    instructions = text(noise, 1600)
    history: list[bytes] = []
    for number in range(turns):
        new = (item(noise, f"call_{number}", "user", 90),)
        made = (item(noise, f"rs_{number}", "assistant", 60), item(noise, f"msg_{number}", "assistant", 90))
        response = msgspec.json.encode(
            {
                "id": f"resp_{number}",
                "object": "response",
                "status": "completed",
                "instructions": instructions,
                "tools": tools,
                "output": [msgspec.Raw(each) for each in made],
            }
        )
        sent = new if style == "chained" else (*history, *new)
        previous = f"resp_{number - 1}" if style == "chained" and number else None
        yield (
            StoredResponse(f"resp_{number}", response, sent, previous, float(number)),
            sum(map(len, history)) + sum(map(len, new)) + len(response),
        )
        history += [*new, *made]


def item(noise: random.Random, id: str, role: str, words: int) -> bytes:
    content = [{"type": "output_text" if role == "assistant" else "input_text", "text": text(noise, words)}]
    return msgspec.json.encode({"id": id, "type": "message", "role": role, "content": content})


def text(noise: random.Random, words: int) -> str:
    return " ".join(f"{noise.choice(WORDS)}{noise.randrange(10_000)}" for _ in range(words))


if __name__ == "__main__":
    main()
