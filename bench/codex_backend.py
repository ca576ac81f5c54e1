"""Figures of the Codex backend: what it adds before the first word, what a thread weighs, what a crowd does to it.

Run: `python bench/codex_backend.py` (needs `isthmus[codex]`; no network, no login: the upstream is scripted).
The gateway is a process of its own, started as a user starts it; memory comes from the kernel.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp

from isthmus.bridge.deltas import Text
from isthmus.bridge.dialects.codex.wire import ThreadSpec, TurnSpec, text_input
from isthmus.protocol.json import JsonObject
from isthmus.testing import Answer, RecordedRequest, ScriptedUpstream, stream
from isthmus.upstream.codex.catalog import with_plain_catalog
from isthmus.upstream.codex.options import CodexOptions
from isthmus.upstream.codex.process import start_process
from isthmus.upstream.codex.thread import CodexThread
from isthmus.upstream.codex.threads import Threads

MODEL: Final = "codex/gpt-5.5"
TOOL: Final[JsonObject] = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
ROUNDS: Final = 2
PATIENCE: Final = 30.0


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ScriptedUpstream.running() as upstream:
        upstream.push(*[answer] * 2000)
        with running_gateway(Path(folder), upstream.base_url) as (url, pid):
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
                await first_word(session, f"{url}/v1/responses", ask("warm up"))
                await measure_threads(session, url, pid)
                await measure_first_word(session, url, upstream.base_url)
                await measure_crowd(session, url)
        await measure_program_alone(Path(folder) / "codex-home")
        upstream._script.clear()


async def measure_first_word(session: aiohttp.ClientSession, url: str, direct: str, times: int = 40) -> None:
    """From the request to the first text delta, one at a time, in the same minute."""
    there: list[float] = []
    new: list[float] = []
    going_on: list[float] = []
    for number in range(times):
        there.append((await first_word(session, f"{direct}/responses", plain(f"q{number}")))[0])
        seconds, response = await first_word(session, f"{url}/v1/responses", ask(f"q{number}"))
        new.append(seconds)
        seconds, _ = await first_word(session, f"{url}/v1/responses", ask("more", previous_response_id=response["id"]))
        going_on.append(seconds)
    print(f"first word, straight from the upstream   {_spread(there)}")
    print(f"first word, new conversation             {_spread(new)}")
    print(f"first word, conversation that goes on    {_spread(going_on)}")


async def measure_threads(session: aiohttp.ClientSession, url: str, pid: int, count: int = 50) -> None:
    """Memory of both processes with conversations that wait for their tools."""
    codex = next(child for child in children(pid))
    before = memory(codex), memory(pid)
    for number in range(count):
        await create(session, url, ask(f"held{number}", tools=[TOOL]))
    after = memory(codex), memory(pid)
    print(f"codex process, resident                  {before[0]:.0f} MB")
    print(f"one more thread that waits for its tools {(after[0] - before[0]) / count:.2f} MB in codex")
    print(f"                                         {(after[1] - before[1]) / count * 1000:.0f} kB in the gateway")


async def measure_program_alone(home: Path, times: int = 40) -> None:
    """The same first word without the gateway: what Codex itself takes."""
    options = await with_plain_catalog(CodexOptions(home=home, cwd=home.parent), home / "models.json")
    new: list[float] = []
    going_on: list[float] = []
    threads = Threads(options)
    process = await start_process(options, threads)
    await threads.open(process, ThreadSpec("gpt-5.5", base_instructions=""))
    for number in range(times):
        began = time.perf_counter()
        thread = await threads.open(process, ThreadSpec("gpt-5.5", base_instructions=""))
        new.append(await _heard(thread, f"q{number}", began))
        thread.rest()
        thread.take()
        going_on.append(await _heard(thread, "more", time.perf_counter()))
    await process.close()
    await threads.aclose()
    print(f"codex alone, new thread                  {_spread(new)}")
    print(f"codex alone, thread that goes on         {_spread(going_on)}")


async def _heard(thread: CodexThread, text: str, began: float) -> float:
    heard = 0.0
    await thread.run(TurnSpec((text_input(text),)))
    while deltas := await thread.read():
        if any(isinstance(delta, Text) for delta in deltas):
            heard = heard or time.perf_counter() - began
    return heard


async def measure_crowd(session: aiohttp.ClientSession, url: str, clients: int = 20) -> None:
    """Conversations at once, each with two rounds of two parallel calls."""
    began = time.perf_counter()
    said = await asyncio.gather(*(converse(session, url, f"client{number}") for number in range(clients)))
    seconds = time.perf_counter() - began
    whole = sum(text == expected(f"client{number}") for number, text in enumerate(said))
    requests = clients * (ROUNDS + 1)
    print(f"{clients} conversations with tools at once      {whole} of {clients} whole, {seconds:.2f} s")
    print(f"                                         {requests} requests, {seconds / requests * 1000:.0f} ms each")


async def converse(session: aiohttp.ClientSession, url: str, who: str) -> str:
    response = await create(session, url, ask(who, tools=[TOOL]))
    for number in range(ROUNDS):
        outputs = [
            {
                "type": "function_call_output",
                "call_id": item["call_id"],
                "output": json.loads(item["arguments"])["city"] + str(number),
            }
            for item in response["output"]
        ]
        response = await create(session, url, ask(outputs, tools=[TOOL], previous_response_id=response["id"]))
    return str(response["output_text"])


def expected(who: str) -> str:
    return f"{who}: " + " ".join(f"{who}{side}{number}" for number in range(ROUNDS) for side in "ab")


def answer(request: RecordedRequest) -> Answer:
    """The scripted model: tools where there are any, two rounds of them, then an answer made of their outputs."""
    body = request.json
    who = next(item for item in body["input"] if item.get("role") == "user")["content"][0]["text"]
    told = [item["output"] for item in body["input"] if item["type"] == "function_call_output"]
    if body.get("tools") and len(told) < 2 * ROUNDS:
        made = [(f"{who}-{len(told)}{side}", json.dumps({"city": who + side})) for side in "ab"]
        return stream([*(_call(index, *call) for index, call in enumerate(made)), _completed()], done=False)
    return stream([*_message(f"{who}: " + " ".join(told) if told else f"Hello {who}"), _completed()], done=False)


def ask(given: Any, **fields: Any) -> JsonObject:
    return {"model": MODEL, "input": given, **fields}


def plain(text: str) -> JsonObject:
    content = [{"type": "input_text", "text": text}]
    return {"model": "m", "stream": True, "input": [{"type": "message", "role": "user", "content": content}]}


async def create(session: aiohttp.ClientSession, url: str, body: JsonObject) -> JsonObject:
    async with session.post(f"{url}/v1/responses", json=body) as reply:
        response: JsonObject = await reply.json()
        assert reply.status == 200, response
        return response


async def first_word(session: aiohttp.ClientSession, url: str, body: JsonObject) -> tuple[float, JsonObject]:
    began = time.perf_counter()
    heard = 0.0
    last: JsonObject = {}
    async with session.post(url, json={**body, "stream": True}) as reply:
        assert reply.status == 200, await reply.text()
        async for line in reply.content:
            if not heard and b"output_text.delta" in line:
                heard = time.perf_counter() - began
            if line.startswith(b"data: {"):
                last = json.loads(line[6:])
    return heard, last.get("response", {})


@contextmanager
def running_gateway(folder: Path, upstream: str) -> Iterator[tuple[str, int]]:
    home = folder / "codex-home"
    home.mkdir()
    (home / "config.toml").write_text(
        'model_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\n'
        f'base_url = "{upstream}"\nwire_api = "responses"\n'
    )
    config = folder / "isthmus.toml"
    config.write_text(
        f'[server]\nport = 0\n[models]\ndemo = false\ndefault = "{MODEL}"\n[providers.codex]\nuses = "codex"\n'
        f'[providers.codex.codex]\nhome = "{home}"\nmax_threads = 200\n[store]\nurl = "memory:"\n'
        '[log]\nlevel = "warning"\n'
    )
    log = folder / "gateway.log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("isthmus")), "serve", "--config", str(config)],
            stdout=subprocess.DEVNULL,
            stderr=written,
            cwd=folder,
            env={"PATH": os.environ.get("PATH", ""), "HOME": str(folder)},
        )
    try:
        yield _address(process, log), process.pid
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        _, found, rest = log.read_text().partition("listening on ")
        if found and "\n" in rest:
            return rest.split()[0]
        time.sleep(0.02)
    raise RuntimeError(f"the gateway did not start:\n{log.read_text()}")


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def memory(pid: int) -> float:
    """Resident memory in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1000


def _spread(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return f"{statistics.median(ordered) * 1000:5.1f} ms median, {ordered[int(len(ordered) * 0.95)] * 1000:5.1f} ms p95"


def _call(index: int, call_id: str, arguments: str) -> JsonObject:
    item = {"type": "function_call", "id": f"fc_{index}", "call_id": call_id, "name": "get_weather"}
    return {"type": "response.output_item.done", "output_index": index, "item": {**item, "arguments": arguments}}


def _message(text: str) -> list[JsonObject]:
    item: JsonObject = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    done = {**item, "content": [{"type": "output_text", "text": text}]}
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_text.delta", **place, "delta": text},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
    ]


def _completed() -> JsonObject:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}


if __name__ == "__main__":
    asyncio.run(main())
