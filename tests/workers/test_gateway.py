"""The gateway and its workers: none while there is nothing to check, and none that outlives it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from isthmus.bridge.bounds import DEFAULT_BOUNDS, Bounds
from isthmus.config import load_config
from isthmus.config.schema import Checks
from isthmus.testing import ScriptedUpstream, chat
from isthmus.wiring import open_workers, schema_bounds
from isthmus.workers.pool import PoolOptions
from serving import running_gateway_process
from talking import Talk
from waiting import until

PATIENCE = 60.0
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
BRANCHING = {"anyOf": [{"properties": {"a": {"$ref": "#"}}, "minProperties": 1}] * 2, "type": "object"}
TOWER = '{"a":' * 60 + "1" + "}" * 60

IDLE = """
import asyncio, json, sys, urllib.request
from isthmus.config import load_config
from isthmus.server.serve import serve

def ask(url, body):
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url + "/v1/responses", json.dumps(body).encode(), headers)
    return json.load(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request))["status"]

async def main():
    stop, found = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve(load_config(sys.argv[1], environ={}).config, started=lambda *told: found.set_result(told), stop=stop)
    )
    url, gateway = await found
    format = {"type": "json_object"}
    statuses = [
        await asyncio.to_thread(ask, url, {"model": "demo", "input": "hello"}),
        await asyncio.to_thread(ask, url, {"model": "demo", "input": "hello", "text": {"format": format}}),
    ]
    before = [statuses, gateway._checker._workers.started]
    schema = json.loads(sys.argv[2])
    format = {"type": "json_schema", "name": "s", "schema": schema, "strict": True}
    tool = {"type": "custom", "name": "t", "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "a"'}}
    statuses = [
        await asyncio.to_thread(ask, url, {"model": "demo", "input": "hello", "text": {"format": format}}),
        await asyncio.to_thread(ask, url, {"model": "demo", "input": "use t", "tools": [tool]}),
    ]
    loaded = [name for name in ("jsonschema_rs", "lark") if name in sys.modules]
    print(json.dumps([before, [statuses, gateway._checker._workers.started > 0], loaded]), flush=True)
    stop.set()
    await serving

asyncio.run(main())
"""


def test_an_idle_gateway_has_no_worker_and_even_a_busy_one_loads_no_validator_itself(tmp_path: Path) -> None:
    config = tmp_path / "isthmus.toml"
    config.write_text('[server]\nport = 0\n[store]\nurl = "memory:"\n[log]\nlevel = "error"\n')
    places = os.pathsep.join(place for place in sys.path if place)
    command = [sys.executable, "-c", IDLE, str(config), json.dumps(SCHEMA)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, env={"PYTHONPATH": places, "HOME": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr
    before, after, loaded = json.loads(done.stdout)
    assert before == [["completed", "completed"], 0]
    assert after == [["completed", "completed"], True]
    assert loaded == []


@pytest.mark.parametrize("ending", ["kill", "stop"])
def test_workers_end_with_the_gateway_however_it_ends(tmp_path: Path, ending: str) -> None:
    with ScriptedUpstream.running() as upstream:
        upstream.push(chat('{"n": 1}'), chat(TOWER))
        toml = (
            f"[models]\ndemo = false\n[providers.up]\nuses = 'openai'\nbase_url = {upstream.base_url!r}\n"
            "api_key = 'k'\ndialect = 'chat'\nretries = 0\n[store]\nurl = 'memory:'\n"
            "[server]\ngrace = 0.1\n[checks]\ndeadline = 3\nquick = 0.2\nmemory = '2GB'\n"
        )
        with running_gateway_process(toml, tmp_path) as gateway:
            talk = Talk(gateway.url, timeout=PATIENCE)
            assert talk.create(_asked(SCHEMA))["status"] == "completed"
            thread = threading.Thread(target=lambda: _try(talk, _asked(BRANCHING)), daemon=True)
            thread.start()
            upstream.wait_received(2)
            children = _children(gateway.process.pid)
            assert children
            gateway.kill() if ending == "kill" else gateway.stop()
            until(lambda: not any(map(_is_there, children)), "a worker outlived the gateway")
            thread.join(PATIENCE)


def test_every_setting_reaches_its_part(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "workers": 3,
        "slow_workers": 4,
        "quick": 0.25,
        "deadline": 2.5,
        "idle": 7.0,
        "memory": 100_000_000,
        "queue": 8,
        "wait": 9.0,
        "cache": 10,
        **{name: at + 11 for at, name in enumerate(Bounds.__struct_fields__)},
    }
    assert set(given) == set(Checks.__struct_fields__)
    path = tmp_path / "isthmus.toml"
    path.write_text("[checks]\n" + "".join(f"{name} = {value}\n" for name, value in given.items()))
    checks = load_config(path, environ={}).config.checks
    options = open_workers(checks)._options
    named = [name for name in PoolOptions.__dataclass_fields__ if name != "runners"]
    assert {name: getattr(options, name) for name in named} == {name: given[name] for name in named}
    bounds = schema_bounds(checks)
    assert all(getattr(bounds, name) == given[name] for name in Bounds.__struct_fields__)
    assert {*named, *Bounds.__struct_fields__, "cache"} == set(given)


def test_the_defaults_are_those_of_the_core() -> None:
    assert schema_bounds(Checks()) == DEFAULT_BOUNDS


def _asked(schema: dict[str, Any]) -> dict[str, Any]:
    format = {"type": "json_schema", "name": "s", "schema": schema, "strict": True}
    return {"model": "up/gpt-4o", "input": "Go", "text": {"format": format}}


def _try(talk: Talk, body: dict[str, Any]) -> None:
    try:
        talk.post("/v1/responses", body)
    except OSError:
        return  # the gateway was killed: that is the test


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            except OSError:
                continue
            if int(parent) == pid and state != "Z":
                found.append(int(entry.name))
    return found


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
