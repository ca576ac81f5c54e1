"""A tool for tests that does nothing surprising, calls to it, and a tracker of what was really executed.

In: nothing, or a tool. Out: tools, calls and verdicts: the same on every run, except for ids, which never repeat.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from isthmus.protocol.json import JsonObject
from isthmus.tools.calls import ToolCall
from isthmus.tools.context import ToolContext
from isthmus.tools.definition import Tool

ECHO: Final = "e2e_echo_tool"
_numbers: Final = itertools.count(1)


def create_test_tool() -> Tool[..., Any]:
    """An echo: one string `message` in, `{"echoed", "timestamp", "testSuccess"}` out."""
    return Tool.from_schema(
        ECHO,
        "Echo tool for end-to-end tests: returns the message that it was given.",
        {
            "type": "object",
            "properties": {"message": {"type": "string", "description": "Message to echo back"}},
            "required": ["message"],
        },
        test_tool_handler,
        hints={"test_only": True},
    )


async def test_tool_handler(params: Mapping[str, Any]) -> JsonObject:
    """What the echo tool does; refuses a `message` that is missing or no string, ignores everything else."""
    message = params.get("message")
    if not isinstance(message, str):
        raise ValueError("`message` must be a string")
    return {"echoed": message, "timestamp": datetime.now(UTC).isoformat(), "testSuccess": True}


test_tool_handler.__test__ = False  # type: ignore[attr-defined]  # its name is that of a test, it is none
echo_handler = test_tool_handler
"""The same under a name that no test collector picks up: import this one into test modules."""


def validate_tool_execution(result: object) -> bool:
    """Whether this is a successful answer of the echo tool."""
    if not isinstance(result, Mapping):
        return False
    return (
        result.get("testSuccess") is True
        and isinstance(result.get("echoed"), str)
        and isinstance(result.get("timestamp"), str)
    )


def create_tool_call(message: str, *, name: str = ECHO) -> ToolCall:
    """A call to the echo tool, with an id of its own."""
    now = datetime.now(UTC).isoformat()
    return ToolCall(
        f"test_call_{next(_numbers)}", name, {"message": message}, extra={"timestamp": now}, provider="test"
    )


@dataclass(slots=True)
class Execution:
    """One time that a tool really ran."""

    name: str
    call_id: str | None
    arguments: Mapping[str, Any]
    started: float
    finished: float | None = None
    value: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class ExecutionTracker:
    """Wrap tools in it and ask afterwards what was executed, how often, and what ran at the same time."""

    executions: list[Execution] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def track(self, tool: Tool[..., Any]) -> Tool[..., Any]:
        """The same tool, watched."""
        function = tool.function
        if function is None:
            return tool
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def watched(*args: Any, **kwargs: Any) -> Any:
                with self._watch(tool, args, kwargs) as done:
                    return done(await function(*args, **kwargs))

        else:

            @functools.wraps(function)
            def watched(*args: Any, **kwargs: Any) -> Any:
                with self._watch(tool, args, kwargs) as done:
                    return done(function(*args, **kwargs))

        return replace(tool, function=watched)

    def count(self, name: str | None = None) -> int:
        return sum(1 for one in self.executions if name is None or one.name == name)

    def most_at_once(self) -> int:
        """How many executions overlapped at the busiest moment."""
        edges: list[tuple[float, int]] = []
        for one in self.executions:
            edges += [(one.started, 1), (one.finished if one.finished is not None else float("inf"), -1)]
        running = most = 0
        for _, step in sorted(edges):
            running += step
            most = max(most, running)
        return most

    def _watch(self, tool: Tool[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Watch:
        given = [one for one in (*args, *kwargs.values()) if isinstance(one, ToolContext)]
        whole = next((one for one in args if isinstance(one, Mapping)), None)
        named = {name: one for name, one in kwargs.items() if not isinstance(one, ToolContext)}
        call_id = given[0].call.id if given else None
        execution = Execution(tool.name, call_id, dict(whole) if whole is not None else named, time.monotonic())
        with self._lock:
            self.executions.append(execution)
        return _Watch(execution)


class _Watch:
    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    def __enter__(self) -> Callable[[Any], Any]:
        def done(value: Any) -> Any:
            self._execution.value = value
            return value

        return done

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._execution.finished = time.monotonic()
        self._execution.error = error
