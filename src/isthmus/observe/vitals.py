"""How late the loop is, where it is stuck, and how much memory the process takes: measured a few times a second.

A timer on the loop says when it had its last turn, and how late that was. A thread beside it looks at that: when the
loop has not had a turn for long, it tells the log where the loop's thread stands, because the loop itself cannot. The
same thread reads the memory and has the allocator give back what a storm left. Nothing here is done for a request.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Final

from isthmus.log import tell
from isthmus.observe.memory import give_back, resident

log = logging.getLogger("isthmus.vitals")

TICK: Final = 0.1
"""Seconds between two turns of the timer."""
_MINUTE: Final = 60.0
"""Seconds for which the worst delay is remembered, and between two words about slowness."""
_FRAMES: Final = 30
"""Most frames of a stack that are told, the innermost."""
_LEFT_BEHIND: Final = 32_000_000
"""Bytes above the least that was seen, from which on it is worth giving memory back."""
_PAUSE: Final = 3.0
"""Seconds between two attempts to; each one that was in vain doubles it, until memory grows again."""
_LONGEST_PAUSE: Final = 60.0


class Vitals:
    def __init__(
        self,
        *,
        slow: float = 0.5,
        stuck: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        memory: Callable[[], int | None] = resident,
        trim: Callable[[], bool] = give_back,
        measured: Callable[[float], None] = lambda lag: None,
    ) -> None:
        """`measured` hears every delay, on the loop."""
        self.lag = 0.0
        """Seconds that the loop's last turn was late."""
        self.memory = memory() or 0
        """Bytes of the process, as of a moment ago; 0: nobody says."""
        self._slow, self._stuck = slow, stuck
        self._clock, self._measure, self._trim = clock, memory, trim
        self._measured = measured
        self._worst: list[tuple[float, float]] = []
        self._turn = clock()
        self._told_slow = -_MINUTE
        self._told_stuck = 0.0
        self._least = self.memory
        self._tried = -_PAUSE
        self._pause = _PAUSE
        self._thread = 0
        self._timer: asyncio.TimerHandle | None = None
        self._over = threading.Event()

    @property
    def worst_lag(self) -> float:
        """The longest delay within the last minute, the one that goes on included."""
        now = self._clock()
        going_on = now - self._turn - TICK
        return max([0.0, going_on, *(lag for at, lag in self._worst if now - at < _MINUTE)])

    def start(self) -> None:
        """From inside the loop."""
        self._thread = threading.get_ident()
        self._turn = self._clock()
        self._again()
        threading.Thread(target=self._watch, name="isthmus-vitals", daemon=True).start()

    def stop(self) -> None:
        self._over.set()
        if self._timer is not None:
            self._timer.cancel()

    # ── on the loop ────────────────────────────────────────────────────────────────────────────────

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK, self.tick)

    def tick(self) -> None:
        now = self._clock()
        self.lag = max(now - self._turn - TICK, 0.0)
        self._turn = now
        self._measured(self.lag)
        if self.lag > TICK:
            self._note(now)
        if not self._over.is_set():
            self._again()

    def _note(self, now: float) -> None:
        # What was worse, and is as fresh, hides the rest: a few entries at most.
        self._worst = [(at, lag) for at, lag in self._worst if now - at < _MINUTE and lag > self.lag]
        self._worst.append((now, self.lag))
        if self.lag >= self._slow and now - self._told_slow >= _MINUTE / 6:
            self._told_slow = now
            tell(log, "warning", "loop.slow", seconds=round(self.lag, 3))

    # ── beside it ──────────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        while not self._over.wait(min(self._stuck / 4, 1.0)):
            self.look()

    def look(self) -> None:
        now = self._clock()
        silent = now - self._turn - TICK
        if silent < self._stuck:
            self._told_stuck = 0.0
        elif silent >= 2 * self._told_stuck:  # again only when it has become twice as long
            self._told_stuck = silent
            tell(log, "error", "loop.stuck", seconds=round(silent, 1), at=self._stack())
        self._look_at_memory(now)

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread)
        frames = traceback.extract_stack(frame)[-_FRAMES:] if frame is not None else []
        return " < ".join(f"{each.name} ({each.filename}:{each.lineno})" for each in reversed(frames)) or "unknown"

    def _look_at_memory(self, now: float) -> None:
        before, self.memory = self.memory, self._measure() or 0
        self._least = min(self._least, self.memory)
        if self.memory > before + _LEFT_BEHIND:
            self._pause = _PAUSE
        grown = self.memory > self._least + _LEFT_BEHIND
        if grown and self.memory <= before and now - self._tried >= self._pause:
            # Again and again: in the middle of a storm nothing is free that will be a moment later.
            self._tried, held = now, self.memory
            self._trim()
            self.memory = self._measure() or 0
            in_vain = held - self.memory < _LEFT_BEHIND
            self._pause = min(self._pause * 2, _LONGEST_PAUSE) if in_vain else _PAUSE
