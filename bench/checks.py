"""What checking a JSON format costs: CPU time per request, the first use, and the memory of a worker process.

Run `python -m bench.checks`. Requests with and without a small strict schema take turns against the same gateway; CPU
time is that of the gateway and, apart from it, of its worker processes, as the kernel counts it.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bench.robustness.rig import running_gateway

from isthmus.testing import ScriptedUpstream, chat

SCHEMA: Final = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "people": {"type": "integer", "minimum": 0},
        "founded": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z-]+$"}},
    },
    "required": ["city", "people"],
    "additionalProperties": False,
}
ANSWER: Final = '{"city": "Ulm", "people": 128928, "founded": "0854-07-22", "tags": ["old-town", "danube"]}'
_TICK: Final = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.checks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=1500)
    asyncio.run(_measure(parser.parse_args().requests))


async def _measure(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder, ScriptedUpstream.running(default=chat(ANSWER)) as upstream:
        async with running_gateway(Path(folder), upstream.base_url, store="memory:") as gateway:
            pid = gateway.process.pid
            await asyncio.to_thread(_report, f"http://{gateway.host}:{gateway.port}", pid, count)


def _report(url: str, pid: int, count: int) -> None:
    plain = {"model": "up/any", "input": "Ulm?", "store": False}
    format = {"type": "json_schema", "name": "city", "schema": SCHEMA, "strict": True}
    structured = {**plain, "text": {"format": format}}
    _ask(url, plain, 200)
    print(f"idle gateway: {_rss(pid):.1f} MB, {len(_workers(pid))} workers")
    print(f"first structured request: {_ask(url, structured, 1) * 1000:.0f} ms")
    _ask(url, structured, 200)
    for name, body in (("plain", plain), ("structured", structured)):
        before, workers = _cpu(pid), sum(map(_cpu, _workers(pid)))
        each = _ask(url, body, count) / count
        gateway = (_cpu(pid) - before) / count * 1e6
        work = (sum(map(_cpu, _workers(pid))) - workers) / count * 1e6
        print(f"{name}: gateway {gateway:.0f} µs CPU, workers {work:.0f} µs CPU, {each * 1000:.2f} ms in all")
    for worker in _workers(pid):
        print(f"worker {worker}: {_rss(worker):.1f} MB")


def _ask(url: str, body: dict[str, Any], count: int) -> float:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    data = json.dumps(body).encode()
    began = time.perf_counter()
    for _ in range(count):
        connection.request("POST", "/v1/responses", data, {"content-type": "application/json"})
        answer = connection.getresponse()
        found = json.loads(answer.read())
        assert found["status"] == "completed", found
    connection.close()
    return time.perf_counter() - began


def _workers(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent == pid:
                found.append(int(entry.name))
    return found


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _rss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1000


if __name__ == "__main__":
    main()
