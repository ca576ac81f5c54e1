"""Where and when a run was made, and how quiet the machine was: how much of it others used meanwhile."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from bench.speed.baseline import processor

ROOT: Final = Path(__file__).parents[2]
_TICK: Final = os.sysconf("SC_CLK_TCK")
QUIET: Final = 0.05
"""Share of the machine that others may use in a run whose figures are meant to be read."""


class Watch:
    """From its making on."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy = _busy()

    def told(self, note: str = "") -> dict[str, Any]:
        """When everything that was started has ended."""
        seconds = time.monotonic() - self._began
        own = resource.getrusage(resource.RUSAGE_SELF)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
        whole = seconds * (os.cpu_count() or 1)
        return {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "seconds": round(seconds),
            "commit": _git("rev-parse", "--short=12", "HEAD"),
            "changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
            "processor": processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(),
            "packages": {name: version(name) for name in ("uvicorn", "uvloop", "httptools", "aiohttp", "msgspec")},
            "others": round(max(0.0, (_busy() - self._busy - used) / whole), 3),
            "note": note,
        }


def _busy() -> float:
    """CPU seconds that all processes of this machine, and of the machine below it, have used."""
    fields = [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _, _, interrupts, soft, stolen = fields[:8]
    return (user + nice + system + interrupts + soft + stolen) / _TICK


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
