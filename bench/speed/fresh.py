"""One part of the guard in a process of its own, with JSON in and JSON out.

Its environment is made anew: a fixed hash seed, no variable and no `.pth` file by which coverage, a debugger or a
development mode could come along, no cache that something else has warmed. What it counts depends on the code alone.
"""

from __future__ import annotations

import importlib.util
import json
import os
import site
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
_KEPT: Final = ("PATH", "HOME", "LANG", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")
_PATIENCE: Final = 100.0


def run_fresh(part: str, *arguments: str, given: object = None) -> Any:
    """What `bench/speed/<part>.py` prints, read as JSON; raises with its last words if it fails."""
    found = importlib.util.find_spec("isthmus")
    assert found is not None
    assert found.origin is not None
    places = [str(Path(found.origin).parents[1]), str(ROOT), *site.getsitepackages()]
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(places)}
    ended = subprocess.run(
        [sys.executable, "-S", "-P", str(Path(__file__).with_name(f"{part}.py")), *arguments],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        timeout=_PATIENCE,
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(f"`bench/speed/{part}.py` failed:\n{ended.stderr[-4000:]}")
    return json.loads(ended.stdout)
