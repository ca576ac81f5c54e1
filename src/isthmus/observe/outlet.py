"""Where the log's lines leave the process. Whatever is wrong there, nobody waits for it and nothing ends of it.

A line is written on the spot where that cannot block. Where it could (a pipe or a terminal that nobody reads), it goes
to a thread, behind those that wait already; there is room for so many bytes of them. What finds no room, or cannot be
written (a full disk, a pipe that was closed), is lost and counted, and one line says so as soon as lines are written
again: `log.lost lines=3`.
"""

from __future__ import annotations

import logging
import os
import select
import stat
import threading
from collections import deque
from contextlib import suppress
from typing import Final, TextIO

from isthmus.log import Told

MOST_WAITING: Final = 1_000_000
"""Bytes of lines that wait for whoever reads the log."""
_AT_ONCE: Final = 512
"""Bytes that a pipe takes as a whole once it takes any: POSIX promises no more."""
_LAST_WORDS: Final = 1.0
"""Seconds that lines which wait have at the end of the process."""


class Outlet(logging.Handler):
    def __init__(self, stream: TextIO | None, *, most_waiting: int = MOST_WAITING) -> None:
        """`None`: the process has no such stream; every line is lost then."""
        super().__init__()
        self.lost = 0
        """Lines that nobody will read."""
        self._told = 0
        """How many of them the log has told of."""
        self._stream = stream
        self._descriptor = _descriptor(stream)
        self._watch = None if self._descriptor is None else _watch(self._descriptor)
        self._torn = False
        """Whether the last line broke off in the middle: the next one must not go on there."""
        self._most_waiting = most_waiting
        self._waiting: deque[bytes] = deque()
        self._held = 0
        self._turn = threading.Condition()
        self._thread: threading.Thread | None = None
        """There once a line had to wait; then it alone writes until nothing waits."""
        self._writing = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self._line(record)
        except Exception:  # what cannot be put into words
            self._lose()
            return
        with self._turn:
            if self._waiting or self._writing or not self._takes(line):
                self._wait(line)
            else:
                self._put(line)

    def flush(self) -> None:
        with self._turn:
            self._turn.wait_for(lambda: not (self._waiting or self._writing), _LAST_WORDS)

    def _line(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode("utf-8", "backslashreplace")

    def _takes(self, line: bytes) -> bool:
        """Whether it can be written without a wait."""
        return self._watch is None or (len(line) <= _AT_ONCE and bool(self._watch.poll(0)))

    def _wait(self, line: bytes) -> None:
        if self._held + len(line) > self._most_waiting:
            self._lose()
            return
        self._waiting.append(line)
        self._held += len(line)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="isthmus-log", daemon=True)
            self._thread.start()
        self._turn.notify_all()

    def _work(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._waiting)
                line = self._waiting.popleft()
                self._held -= len(line)
                self._writing = True
            self._put(line)
            with self._turn:
                self._writing = False
                self._turn.notify_all()

    def _put(self, line: bytes) -> None:
        """By one thread at a time."""
        lost = self.lost
        if lost > self._told:
            facts = {"lines": lost - self._told}
            told = logging.LogRecord("isthmus.log", logging.WARNING, "", 0, Told("log.lost", facts), None, None)
            line = self._line(told) + line
        try:
            self._write(b"\n" + line if self._torn else line)
        except (OSError, ValueError):  # ValueError: the stream was closed
            self._lose()
        else:
            self._told, self._torn = lost, False

    def _write(self, data: bytes) -> None:
        if self._descriptor is None:
            if self._stream is None:
                raise OSError("there is no such stream")
            self._stream.write(data.decode())
            self._stream.flush()
            return
        written = os.write(self._descriptor, data)
        while written < len(data):
            self._torn = True
            written += os.write(self._descriptor, data[written:])

    def _lose(self) -> None:
        with self._turn:
            self.lost += 1


def lost_lines() -> int:
    """Of all outlets of our log."""
    return sum([each.lost for each in logging.getLogger("isthmus").handlers if isinstance(each, Outlet)])


def _descriptor(stream: TextIO | None) -> int | None:
    with suppress(OSError, ValueError, AttributeError):
        return stream.fileno() if stream is not None else None
    return None  # a test's, or somebody's own


def _watch(descriptor: int) -> select.poll | None:
    """What tells whether a write would block; `None`: it never does, or nobody can tell."""
    with suppress(OSError):
        if stat.S_ISREG(os.fstat(descriptor).st_mode) or not hasattr(select, "poll"):  # Windows has none
            return None
        watch = select.poll()
        watch.register(descriptor, select.POLLOUT)
        return watch
    return None
