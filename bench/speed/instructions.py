"""How many bytecode instructions an action executes: exact, whatever else the machine does.

The interpreter reports every instruction: to a trace function on Python 3.11, to `sys.monitoring` from 3.12 on, where
trace functions were seen to miss many (3.13.5).
"""

from __future__ import annotations

import sys  # and nothing else: whoever measures an import must not have loaded anything

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

_TOOL = 4
"""One of the two numbers of `sys.monitoring` that are meant for nobody in particular."""


_threads: list[Callable[..., Any]] = []


def in_threads(frame: FrameType, event: str, argument: Any) -> Any:
    """For `threading.settrace`, before threads are started whose work is to be counted as well, whenever one counts."""
    return _threads[-1](frame, event, argument) if _threads else None


def count_instructions(
    action: Callable[[], object], *, loading_only: bool = False, without: Callable[[str], bool] | None = None
) -> int:
    """`loading_only` counts what runs while a module is loaded, without the import machinery itself; `without` says of
    a file whether its code is left out."""
    counter = _Loading() if loading_only else _Everything() if without is None else _Some(without)
    watch = _monitor if hasattr(sys, "monitoring") else _trace
    watch(action, counter)
    return counter.counted


class _Everything:
    """Counts every instruction."""

    def __init__(self) -> None:
        self.counted = 0
        self.counting = True

    def skips(self, code: CodeType) -> bool:
        return False

    def begins(self, code: CodeType) -> None: ...

    def ends(self, code: CodeType) -> None: ...


class _Some(_Everything):
    """Counts every instruction but those of some files."""

    def __init__(self, without: Callable[[str], bool]) -> None:
        super().__init__()
        self._without = without
        self._known: dict[str, bool] = {}

    def skips(self, code: CodeType) -> bool:
        file = code.co_filename
        if file not in self._known:
            self._known[file] = self._without(file)
        return self._known[file]


class _Loading(_Everything):
    """Counts while the body of a module runs, with all that it calls."""

    def __init__(self) -> None:
        super().__init__()
        self.counting = False
        self._modules = 0

    def skips(self, code: CodeType) -> bool:
        return code.co_filename.startswith("<frozen importlib")

    def begins(self, code: CodeType) -> None:
        self._step(code, 1)

    def ends(self, code: CodeType) -> None:
        self._step(code, -1)

    def _step(self, code: CodeType, by: int) -> None:
        if code.co_name == "<module>" and not code.co_filename.startswith("<"):
            self._modules += by
            self.counting = self._modules > 0


def _trace(action: Callable[[], object], counter: _Everything) -> None:
    counted = 0  # not in the counter: this runs millions of times

    def step(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal counted
        if event == "opcode":
            counted += 1
        elif event == "return":  # also when it raises
            counter.ends(frame.f_code)

    def enter(frame: FrameType, event: str, argument: Any) -> Callable[..., None] | None:
        code = frame.f_code
        if counter.skips(code):
            return None
        counter.begins(code)
        if not counter.counting:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    before = sys.gettrace()
    _threads.append(enter)
    sys.settrace(enter)
    try:
        action()
    finally:
        sys.settrace(before)
        _threads.remove(enter)
        counter.counted = counted


def _monitor(action: Callable[[], object], counter: _Everything) -> None:
    monitoring = sys.monitoring
    events = monitoring.events

    def step(code: CodeType, offset: int) -> object:
        if counter.skips(code):
            return monitoring.DISABLE
        if counter.counting:
            counter.counted += 1
        return None

    def begin(code: CodeType, offset: int) -> None:
        counter.begins(code)

    def end(code: CodeType, offset: int, result: object) -> None:
        counter.ends(code)

    monitoring.use_tool_id(_TOOL, "isthmus speed guard")
    watched = {
        events.INSTRUCTION: step,
        events.PY_START: begin,
        events.PY_RETURN: end,
        events.PY_UNWIND: end,
    }
    for event, callback in watched.items():
        monitoring.register_callback(_TOOL, event, callback)
    monitoring.set_events(_TOOL, sum(watched))
    try:
        action()
    finally:
        monitoring.set_events(_TOOL, 0)
        monitoring.free_tool_id(_TOOL)
        monitoring.restart_events()
