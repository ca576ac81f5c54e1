"""How far a run is: a bar in a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

_EVERY: Final = 10.0
"""Seconds between two lines in a pipe."""


class Progress:
    def __init__(self, title: str, steps: int) -> None:
        self._title = title
        self._steps = steps
        self._done = 0
        self._told = -_EVERY
        self._bar: Bar | None = None
        if sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            # Few pictures a second: they come from the load's own core.
            self._bar = Bar(*columns, console=Console(stderr=True), refresh_per_second=2)
            self._task = self._bar.add_task(title, total=steps)

    def step(self, words: str) -> None:
        """One more is begun."""
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)
        self.say(words)

    def say(self, words: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, description=words[:60])
        elif time.monotonic() - self._told > _EVERY:
            self._told = time.monotonic()
            print(f"{self._title}: {self._done}/{self._steps} {words}", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
