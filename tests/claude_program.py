"""A stand-in for the `claude` program: it tells its version, and else writes down how it was started.

What the real one does is asked in `tests/real/claude`.
"""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import json, os, sys
if sys.argv[2:] == ["--version"]:
    print(open(sys.argv[1] + ".version").read())
    sys.exit()
settings = sys.argv[sys.argv.index("--settings") + 1]
told = {"arguments": sys.argv[2:], "environment": dict(os.environ), "settings": json.load(open(settings))}
told["mode"] = os.stat(os.path.dirname(settings)).st_mode & 0o777
json.dump(told, open(sys.argv[1] + ".told", "w"))
for request in json.loads(os.environ.get("ASK", "[]")):
    import urllib.request
    url = os.environ["ANTHROPIC_BASE_URL"] + request["path"]
    asked = urllib.request.Request(url, headers={"authorization": "Bearer " + request["key"]})
    try:
        print(urllib.request.urlopen(asked, timeout=60).status)
    except urllib.error.HTTPError as error:
        print(error.code)
sys.exit(int(os.environ.get("CODE", "0")))
"""


def install(folder: Path, version: str = "2.1.325 (Claude Code)") -> Path:
    folder.mkdir(exist_ok=True)
    script = folder / "claude.py"
    script.write_text(PROGRAM)
    program = folder / "claude"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "{program}" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    Path(f"{program}.version").write_text(version)
    return program


def told(program: Path) -> dict[str, Any]:
    """How it was started."""
    noted: dict[str, Any] = json.loads(Path(f"{program}.told").read_text())
    return noted
