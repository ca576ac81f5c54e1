"""The worker process: reads a job, does it, writes its result, until its input ends.

    python -m isthmus.workers.child '{"runners": {"check": "module:function"}, "memory": 512000000, "deadline": 5}'

Frames are a length of four bytes and as many bytes: in, the kind of the job, a zero and its payload; out, one byte
that says how it went, and the result. It bounds itself, too: its memory, and the time of each job, so that it ends
also when its parent was killed in the middle of one. When the parent asks (`ASKED`), it says where it stands, whatever
library is at work. Imported by nobody: it is small, so that a worker is.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

DONE: Final = 0
FAILED: Final = 1
TOO_LARGE: Final = 2
RETIRING: Final = 0x80
"""Added to the first byte: this process has grown too large and ends with this answer."""
LENGTH: Final = struct.Struct(">I")

ASKED: Final = getattr(signal, "SIGUSR1", None)
"""Asks for the stack; `None`: there is no way to (Windows)."""
BY_THE_CLOCK: Final = 10
"""The deadline is processor time, so that a busy machine refuses nobody; by the clock a job has so often that."""
_PATIENCE: Final = 2.0
"""Seconds beyond the deadline after which a job ends its process: normally the parent was faster."""

Runner = Callable[[bytes], bytes]


def main() -> None:
    options: Mapping[str, Any] = json.loads(sys.argv[1])
    source, sink = _take_pipes()
    _leave_signals_to_the_parent()
    _tell_when_asked()
    _bound_memory(options["memory"])
    # Linux counts the size of the process that started us, too: only what we grow beyond that is ours.
    large = max(options["memory"] // 2, _peak_memory())
    runners: dict[str, Runner] = {}
    _write(sink, bytes([DONE]))
    while (frame := _read_frame(source)) is not None:
        kind, _, payload = frame.partition(b"\0")
        _bound_time(options["deadline"])
        how, result = _run(kind.decode(), payload, options["runners"], runners)
        _bound_time(0)
        # Caches in libraries grow, and the next job needs room.
        retiring = _peak_memory() > large
        _write(sink, bytes([how | RETIRING if retiring else how]) + result)
        if retiring:
            return


def _run(kind: str, payload: bytes, known: Mapping[str, str], runners: dict[str, Runner]) -> tuple[int, bytes]:
    try:
        if kind not in runners:
            module, _, function = known[kind].partition(":")
            runners[kind] = getattr(import_module(module), function)
        return DONE, runners[kind](payload)
    except MemoryError:
        return TOO_LARGE, b""
    except Exception as error:  # told to the parent, which decides
        return FAILED, f"{type(error).__name__}: {error}"[:2000].encode(errors="replace")


def _take_pipes() -> tuple[int, int]:
    """Input and output for us alone: what a library prints must not stand between frames."""
    source, sink = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return source, sink


def _tell_when_asked() -> None:
    """Through the pipe that is our error output, which nothing else writes to; in C, so that no lock is in its way."""
    if ASKED is not None:
        told = os.dup(2)
        os.set_blocking(told, False)
        faulthandler.register(ASKED, file=told, all_threads=False)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _leave_signals_to_the_parent() -> None:
    """A Ctrl-C or a stop of the whole group is for the gateway, which finishes what runs and then closes our input."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def _bound_memory(most: int) -> None:
    """Where the system can; an allocation beyond it fails, and the process with it."""
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return


def _bound_time(seconds: float) -> None:
    """An alarm that nobody handles ends the process, whatever library is at work. 0: no alarm."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds + _PATIENCE if seconds else 0)
        signal.setitimer(signal.ITIMER_REAL, seconds * BY_THE_CLOCK + _PATIENCE if seconds else 0)


def _peak_memory() -> int:
    """The most bytes that it ever took; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _read_frame(source: int) -> bytes | None:
    head = _read(source, LENGTH.size)
    return _read(source, LENGTH.unpack(head)[0]) if head is not None else None


def _read(source: int, size: int) -> bytes | None:
    """Exactly so many bytes; `None` when the input ended."""
    parts: list[bytes] = []
    while size:
        part = os.read(source, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(sink: int, data: bytes) -> None:
    rest = memoryview(LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[os.write(sink, rest) :]


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(1)
