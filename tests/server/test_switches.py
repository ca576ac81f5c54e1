"""What one worker was told to switch, all others obey, and none of them tells it again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from isthmus.observe.traces.tracer import Tracer
from isthmus.server.ended import Ended
from isthmus.server.switches import share_switches


class Line:
    """Every worker's end of it, without the line."""

    def __init__(self, all: list[Line]) -> None:
        self._all = all
        all.append(self)
        self._on: dict[str, Callable[[bytes], None]] = {}
        self.told = 0

    def on(self, topic: str, do: Callable[[bytes], None]) -> None:
        self._on[topic] = do

    def switch(self, topic: str, value: bytes) -> None:
        self.told += 1
        for each in self._all:
            if each is not self:
                each._on[topic](value)


def workers(count: int) -> list[tuple[Line, Tracer, Ended]]:
    lines: list[Line] = []
    nobody: Any = None
    made = [(Line(lines), Tracer(nobody), Ended()) for _ in range(count)]
    for line, tracer, ended in made:
        share_switches(line, tracer, ended)  # type: ignore[arg-type]
    return made


def test_full_capture_is_switched_on_and_off_for_all() -> None:
    made = workers(3)
    (line, first, _), *others = made
    first._recorder = Recorder()  # type: ignore[assignment]
    first.capture_all(60, owner="team")
    assert [tracer.wants_all("team", "", 1) for _, tracer, _ in made] == [True] * 3
    assert [tracer.wants_all("another", "", 1) for _, tracer, _ in made] == [False] * 3
    assert abs(others[0][1]._full_until - time.time() - 60) < 30
    first.capture_all(0)
    assert [tracer.wants_all("team", "", 1) for _, tracer, _ in made] == [False] * 3
    assert [each.told for each, _, _ in made] == [2, 0, 0]
    assert line.told == 2


def test_a_session_that_was_ended_at_one_is_over_at_all() -> None:
    made = workers(2)
    made[0][2].add("word")
    assert "word" in made[1][2]
    assert made[1][0].told == 0


def test_without_traces_there_is_only_the_page() -> None:
    lines: list[Line] = []
    share_switches(Line(lines), None, Ended())  # type: ignore[arg-type]
    assert set(lines[0]._on) == {"ended"}


class Recorder:
    kept = lost = delayed = 0

    class cleaner:
        withheld = 0
