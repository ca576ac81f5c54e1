"""What somebody with many requests costs somebody with one: `python -m bench.fairness`.

An upstream of its own takes a fixed time for each request; the gateway sends so many at a time. One owner asks 500
things at once, and while they wait another asks a few, one after the other. Told is how long the other waits for the
first word: alone, behind the crowd in one line (as where both are one owner), and in turn with it.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from aiohttp import web
from bench.robustness.report import table

from isthmus.bridge.parse import parse_request
from isthmus.config import load_config
from isthmus.gateway.caller import Caller
from isthmus.gateway.gateway import Gateway
from isthmus.testing.replies import chat_reply
from isthmus.wiring import running_gateway

CROWD: Final = 500
PLACES: Final = 4
TAKES: Final = 0.05
"""Seconds that the upstream works on one request."""
ASKED: Final = 10
"""Requests of the other owner's."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fairness", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--crowd", type=int, default=CROWD)
    parser.add_argument("--places", type=int, default=PLACES)
    given = parser.parse_args()
    rows = asyncio.run(measure(given.crowd, given.places))
    print(f"{given.crowd} requests of one owner, {given.places} at a time, {TAKES * 1000:.0f} ms each\n")
    print("\n".join(table(("the other owner", "median, ms", "slowest, ms"), rows)))


async def measure(crowd: int, places: int) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, owner, size in (
        ("alone", "ann", 0),
        ("in one line with them", "noisy", crowd),
        ("in turn", "ann", crowd),
    ):
        async with _gateway(places) as gateway:
            waits = await _play(gateway, owner, size)
        rows.append((name, f"{statistics.median(waits) * 1000:.0f}", f"{max(waits) * 1000:.0f}"))
    return rows


async def _play(gateway: Gateway, owner: str, crowd: int) -> list[float]:
    """How long the first word of each of the other's requests took."""
    noisy = [asyncio.create_task(_first_word(gateway, "noisy")) for _ in range(crowd)]
    while crowd and not gateway.directory.served["main"].load().waiting:  # noqa: ASYNC110  # it tells nobody
        await asyncio.sleep(0)
    # Behind a crowd in one line even the first of them takes as long as the crowd: one says it all.
    waits = [await _first_word(gateway, owner) for _ in range(1 if owner == "noisy" else ASKED)]
    for task in noisy:
        task.cancel()
    await asyncio.gather(*noisy, return_exceptions=True)
    return waits


async def _first_word(gateway: Gateway, owner: str) -> float:
    began = time.monotonic()
    asked = parse_request({"model": "main/m", "input": "hi", "store": False})
    run = await gateway.create(Caller(owner=owner), asked)
    first = 0.0
    async for _ in run.events():
        first = first or time.monotonic() - began
    return first


@asynccontextmanager
async def _gateway(places: int) -> AsyncIterator[Gateway]:
    async def answer(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(TAKES)
        return web.json_response(chat_reply("ok"))

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    toml = (
        "[models]\ndemo = false\n[store]\nurl = 'memory:'\n[trace]\ncapture = 'off'\n"
        f"[providers.main]\nuses = 'openai-compatible'\nbase_url = 'http://127.0.0.1:{port}/v1'\nask = false\n"
        f"max_connections = {places}\nmax_queued = 100000\n"
    )
    try:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "isthmus.toml"
            file.write_text(toml)
            file.chmod(0o600)
            config = load_config(file, environ={"HOME": folder}).config
        async with running_gateway(config) as gateway:
            yield gateway
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    main()
