"""A stand-in for the `codex` program: an app-server that does what the words of a turn ask for, and writes down all
that it hears. What a real one does is asked in `tests/real`; this one can be slow, gone or in trouble at will.

    program = install(folder)               # folder/codex
    (folder / "trouble").write_text("no handshake")
    heard(program)                           # every message that reached it
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

from waiting import until_soon

PROGRAM = """
import json, os, sys
seen, trouble = open(sys.argv[1], "a"), os.path.join(os.path.dirname(sys.argv[1]), "trouble")
def note(**facts): print(json.dumps(facts), file=seen, flush=True)
def send(**message): print(json.dumps(message), flush=True)
def in_trouble(kind): return os.path.exists(trouble) and kind in open(trouble).read()
def say(text, thread):
    send(method="item/agentMessage/delta", params={"threadId": thread, "itemId": "m", "delta": text})
def finish(thread, turn):
    send(method="rawResponse/completed", params={"threadId": thread, "turnId": turn})
    send(method="turn/completed", params={"threadId": thread, "turn": {"id": turn, "status": "completed"}})
note(pid=os.getpid(), cwd=os.getcwd(), env=dict(os.environ), arguments=sys.argv[2:])
if sys.argv[-1] == "--bundled":
    if in_trouble("no catalog"):
        sys.stdin.read() or __import__("time").sleep(600)
    print(json.dumps({"models": []}))
    sys.exit()
count, open_calls = 0, {}
for line in sys.stdin:
    asked = json.loads(line)
    note(**asked)
    method, identity, params = asked.get("method"), asked.get("id"), asked.get("params") or {}
    thread = params.get("threadId")
    if identity is not None and method is not None and in_trouble("no " + method):
        continue
    match method:
        case "initialize":
            send(id=identity, result={"userAgent": "codex/0.163.0"})
        case "thread/start":
            count += 1
            send(id=identity, result={"thread": {"id": f"{os.getpid()}-{count}"}})
        case "turn/start":
            turn = f"turn-{identity}"
            send(id=identity, result={"turn": {"id": turn}})
            words = " ".join(part.get("text", "") for part in params["input"])
            if "die" in words:
                sys.exit(3)
            elif "call" in words:
                item = {"type": "function_call", "call_id": "call_a", "name": "look", "arguments": "{}"}
                send(method="rawResponseItem/completed", params={"threadId": thread, "turnId": turn, "item": item})
                send(method="rawResponse/completed", params={"threadId": thread, "turnId": turn})
                call = {"threadId": thread, "turnId": turn, "callId": "call_a", "tool": "look", "arguments": {}}
                open_calls[f"tool-{turn}"] = (thread, turn)
                send(id=f"tool-{turn}", method="item/tool/call", params=call)
            elif "wait" in words:
                say("Hm", thread)
            elif "nothing" in words:
                finish(thread, turn)
            else:
                open_calls["may I"] = (thread, turn)
                send(id="may I", method="item/commandExecution/requestApproval", params={"threadId": thread})
        case None if identity in open_calls:
            thread, turn = open_calls.pop(identity)
            say("ok" if identity == "may I" else "answered", thread)
            finish(thread, turn)
        case str() if identity is not None:
            send(id=identity, result={})
"""


def install(folder: Path, name: str = "codex") -> Path:
    """The program as a file; again after it was removed, as an upgrade does."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    program = folder / name
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "{program}.seen" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def heard(program: Path, method: str | None = "") -> list[dict[str, Any]]:
    """What it was told, or only the calls of one method; `None`: only the answers."""
    file = Path(f"{program}.seen")
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return lines if method == "" else [line for line in lines if "id" in line and line.get("method") == method]


async def until_heard(program: Path, words: str) -> None:
    """When it was told this, in whatever message."""
    await until_soon(lambda: words in str(heard(program)), f"the program was never told {words}")


def alive(program: Path) -> list[int]:
    """Those of its processes that run."""
    return [line["pid"] for line in heard(program) if "pid" in line and _runs(line["pid"])]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
