"""How far a long copy is, on one line that is written over; nothing where nobody looks."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self, TextIO

if TYPE_CHECKING:
    from isthmus.store.copying.copy import Step

_EVERY: Final = 0.25


class Progress:
    def __init__(
        self, *, silent: bool = False, out: TextIO | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._out = sys.stderr if out is None else out
        self._shown = not silent and self._out.isatty()
        self._now = now
        self._began = self._last = self._phase = 0.0
        self._checking = False

    def __enter__(self) -> Self:
        self._began = self._phase = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        if self._last:
            self._write("")
            self._out.write("\r")
            self._out.flush()

    def __call__(self, step: Step) -> None:
        now = self._now()
        if step.checking != self._checking:
            self._checking, self._phase = step.checking, now
        if self._shown and now - self._last >= _EVERY:
            self._last = now
            self._write(describe(step, now - self._phase))

    def _write(self, line: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._out.write(f"\r{line[:width]:<{width}}")
        self._out.flush()


def describe(step: Step, seconds: float) -> str:
    rate = step.rows / seconds if seconds > 0 else 0.0
    left = f", {_time((step.every - step.rows) / rate)} left" if rate else ""
    doing = "comparing" if step.checking else "copying"
    size = f", {step.bytes / 1e6:,.1f} MB" if not step.checking else ""
    return f"{doing} {step.table}: {step.rows:,} of {step.every:,} rows{size}, {rate:,.0f} rows/s{left}"


def _time(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02} min"
