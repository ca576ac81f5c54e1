"""What the system says of this process, under the names that every Prometheus client uses. What it does not say is
left out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from isthmus.observe.metrics.meters import Labels

_PROC: Final = Path("/proc/self")


def process_probe() -> Iterator[tuple[str, Labels, float]]:
    yield "process_cpu_seconds_total", (), time.process_time()
    if (started := _started_at()) is not None:
        yield "process_start_time_seconds", (), started
    with suppress(OSError, ValueError):
        size, resident = (int(pages) for pages in (_PROC / "statm").read_bytes().split()[:2])
        page = os.sysconf("SC_PAGESIZE")
        yield "process_virtual_memory_bytes", (), size * page
        yield "process_resident_memory_bytes", (), resident * page
    with suppress(OSError):
        yield "process_open_fds", (), _open_files()
    with suppress(ImportError, OSError, ValueError):
        import resource

        yield "process_max_fds", (), resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _open_files() -> int:
    """Linux tells the number as the size of the folder, since 6.2; before that they have to be counted."""
    return (_PROC / "fd").stat().st_size or len(os.listdir(_PROC / "fd"))


@cache
def _started_at() -> float | None:
    try:
        ticks = int((_PROC / "stat").read_bytes().rpartition(b")")[2].split()[19])
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        booted = next(float(line.split()[1]) for line in lines if line.startswith("btime "))
    except (OSError, IndexError, ValueError, StopIteration):
        return None
    return booted + ticks / os.sysconf("SC_CLK_TCK")
