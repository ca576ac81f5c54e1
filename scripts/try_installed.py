"""The first minutes of somebody who has just installed Isthmus: `python try_installed.py VERSION`, with that Python.

Needs nothing but what is installed, and no source tree: it works in an empty folder. Exit code 0: all is well.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from urllib.request import ProxyHandler, Request, build_opener

SECONDS: Final = 120
FORMAT: Final = {
    "type": "json_schema",
    "name": "city",
    "strict": True,
    "schema": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    },
}


def main(version: str) -> None:
    with tempfile.TemporaryDirectory(prefix="isthmus-try-", ignore_cleanup_errors=True) as made:
        home = Path(made)
        command = [str(_program())]
        for begin in (command, [sys.executable, "-m", "isthmus"]):
            _expect(f"isthmus {version}", _run([*begin, "--version"], home))
        _expect("Hello! I am the demo model", _run([*command, "chat", "hello"], home))
        _expect("deepseek", _run([*command, "providers", "list", "--all"], home))
        _serve(command, home, version)
    print(f"isthmus {version} works on Python {sys.version.split()[0]}")


def _program() -> Path:
    """The command beside this Python: on Windows in a folder `Scripts`, and with an ending."""
    here = Path(sys.executable).parent
    for each in (here / "isthmus", here / "isthmus.exe", here / "Scripts" / "isthmus.exe"):
        if each.exists():
            return each
    sys.exit(f"there is no `isthmus` beside {sys.executable}")


def _serve(command: list[str], home: Path, version: str) -> None:
    said = home / "served.log"
    with said.open("wb") as log:
        serve = [*command, "serve", "--port", "0"]
        process = subprocess.Popen(serve, cwd=home, env=_environment(home), stdout=log, stderr=log)
    try:
        url = _address(process, said)
        _expect(f'"version":"{version}"', _ask(f"{url}/health"))
        # A schema is checked in a worker process.
        answer = _ask(f"{url}/v1/responses", {"input": "Reply with JSON", "text": {"format": FORMAT}})
        _expect('"status":"completed"', answer)
        message = {"model": "demo/demo", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
        _expect('"role":"assistant"', _ask(f"{url}/v1/messages", message))
        page = _ask(url, accept="text/html")
        _expect("<!doctype html>", page.lower())
        for asset in re.findall(r'(?:href|src)="(/[^"]+\.(?:css|js)[^"]*)"', page):
            _expect("{", _ask(url + asset))
    finally:
        process.terminate()
        process.wait(SECONDS)


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"listening on (http://\S+)", said.read_text(errors="replace")):
            return found[1]
        time.sleep(0.05)
    sys.exit(f"the gateway did not start:\n{said.read_text(errors='replace')}")


def _ask(url: str, body: Any = None, accept: str = "*/*") -> str:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"content-type": "application/json", "accept": accept})
    with build_opener(ProxyHandler({})).open(request, timeout=SECONDS) as answer:
        return str(answer.read().decode())


def _run(command: list[str], home: Path) -> str:
    ran = subprocess.run(
        command, cwd=home, env=_environment(home), capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
    )
    if ran.returncode:
        sys.exit(f"{' '.join(command)}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def _environment(home: Path) -> dict[str, str]:
    """A new user's: no keys, no configuration, no source tree."""
    left = re.compile(r"(?i)isthmus_.*|.*_(api_key|token)|pythonpath|xdg_.*")
    kept = {name: value for name, value in os.environ.items() if not left.fullmatch(name)}
    return {**kept, "HOME": str(home), "USERPROFILE": str(home), "COLUMNS": "100", "PYTHONUTF8": "1"}


def _expect(wanted: str, said: str) -> None:
    if wanted not in " ".join(said.split()):
        sys.exit(f"expected `{wanted}` in:\n{said[:4000]}")


if __name__ == "__main__":
    main(sys.argv[1])
