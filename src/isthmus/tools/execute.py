"""One call carried out, to exactly one result: whatever the tool does, and however long it takes.

In: a checked call. Out: a `ToolResult`. Plain functions run in a thread of their own with the caller's context
variables. After its deadline a tool is cancelled and given a moment to clean up; one that does not stop even then is
left behind and reported: nobody waits for it.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from isthmus.log import tell
from isthmus.tools.calls import ToolCall
from isthmus.tools.context import StopRun, ToolContext, ToolFailed
from isthmus.tools.definition import Tool
from isthmus.tools.results import ToolResult, fail, succeed, words_of

log = logging.getLogger("isthmus.tools")


class ToolExited(Exception):
    """A tool wanted to end the process (`sys.exit`): it ended its own call."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that found its tool, with arguments that fit."""

    call: ToolCall
    tool: Tool[..., Any]
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rules:
    """How long a tool may take and how much it may say, where it has no rules of its own."""

    timeout: float | None = None
    grace: float = 1.0
    max_result_chars: int = 100_000


async def execute_call(
    prepared: Prepared, context: ToolContext[Any], rules: Rules, settled: Callable[[ToolResult], object] | None = None
) -> ToolResult:
    """Run the tool. Only the cancellation of whoever waits comes out as an exception.

    `settled` hears of the result at once: what was done stays done, even if nobody waits for it any more.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    work = asyncio.create_task(_invoke(prepared, context))
    timeout = prepared.tool.timeout if prepared.tool.timeout is not None else rules.timeout
    try:
        await asyncio.wait({work}, timeout=timeout)
    except asyncio.CancelledError:
        if work.done() and not work.cancelled() and settled is not None:
            settled(replace(_settle(work, prepared, rules), duration=loop.time() - started))
        await _stop(work, prepared, context, rules.grace)
        raise
    if work.done():
        result = _settle(work, prepared, rules)
    else:
        stopped = await _stop(work, prepared, context, rules.grace)
        rest = "" if stopped else "; it did not stop when it was told to, and may still be at work"
        words = f"`{prepared.call.name}` did not finish within {timeout:g} s{rest}"
        result = fail(prepared.call, "timeout", "timeout", words)
    result = replace(result, duration=loop.time() - started)
    if settled is not None:
        settled(result)
    return result


async def _invoke(prepared: Prepared, context: ToolContext[Any]) -> Any:
    function = prepared.tool.function
    assert function is not None
    args, kwargs = _bind(prepared, context)
    try:
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        value = await _in_thread(lambda: function(*args, **kwargs), prepared.call.name)
        return await value if inspect.isawaitable(value) else value
    except SystemExit as error:
        # A task that ends with this one takes the whole loop along: one tool must not end everybody's process.
        raise ToolExited(error.code) from error


def _bind(prepared: Prepared, context: ToolContext[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    tool = prepared.tool
    if tool.whole:
        given = dict(prepared.arguments)
        return ((context, given) if tool.context is not None else (given,)), {}
    named = dict(prepared.arguments)
    if tool.context is not None:
        named[tool.context] = context
    return (), named


async def _in_thread(function: Callable[[], Any], name: str) -> Any:
    """A daemon thread, not the loop's pool: a tool that never returns must not keep the program from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    variables = contextvars.copy_context()

    def deliver(value: Any, error: BaseException | None) -> None:
        if not future.done():
            future.set_result(value) if error is None else future.set_exception(error)

    def work() -> None:
        value: Any = None
        failure: BaseException | None = None
        try:
            value = variables.run(function)
        except StopIteration as error:  # a future refuses this one
            failure = RuntimeError(f"the tool raised StopIteration: {words_of(error)}")
        except KeyboardInterrupt as error:  # no key was pressed: those of a terminal come to the main thread
            failure = ToolExited("KeyboardInterrupt")
            failure.__cause__ = error
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the loop is gone: nobody waits
            loop.call_soon_threadsafe(deliver, value, failure)

    threading.Thread(target=work, name=f"isthmus-tool-{name}", daemon=True).start()
    return await future


async def _stop(work: asyncio.Task[Any], prepared: Prepared, context: ToolContext[Any], grace: float) -> bool:
    """Tell it to stop and wait a moment; `False` when something of it may still run."""
    if work.done():
        return True
    context.cancelled.set()
    work.cancel()
    await asyncio.wait({work}, timeout=grace)
    work.add_done_callback(_swallow)
    stopped = work.done() and inspect.iscoroutinefunction(prepared.tool.function)
    if not stopped:
        tell(log, "warning", "tool.abandoned", name=prepared.call.name, call=prepared.call.id)
    return stopped


def _swallow(work: asyncio.Task[Any]) -> None:
    if not work.cancelled() and (error := work.exception()) is not None:
        tell(log, "info", "tool.failed_after_deadline", reason=words_of(error))


def _settle(work: asyncio.Task[Any], prepared: Prepared, rules: Rules) -> ToolResult:
    call, tool = prepared.call, prepared.tool
    limit = tool.max_result_chars if tool.max_result_chars is not None else rules.max_result_chars
    if work.cancelled():
        return fail(call, "cancelled", "cancelled", f"`{call.name}` was cancelled")
    match work.exception():
        case None:
            return succeed(call, work.result(), limit=limit)
        case StopRun(value=value):
            return succeed(call, value, limit=limit, ends_run=True)
        case ToolFailed() as error:
            return fail(call, "error", "tool_failed", words_of(error), error)
        case KeyboardInterrupt() as error:  # on the loop's own thread: somebody wants the program to end
            raise error
        case error:
            tell(log, "warning", "tool.raised", name=call.name, call=call.id, trace=error)
            return fail(call, "error", "tool_raised", _words(call, tool, error), error)


def _words(call: ToolCall, tool: Tool[..., Any], error: BaseException) -> str:
    if callable(tool.on_error) and isinstance(error, Exception):
        try:
            return str(tool.on_error(error))
        except Exception as problem:
            tell(log, "warning", "tool.on_error.raised", name=call.name, call=call.id, trace=problem)
            return f"`{call.name}` failed"
    if tool.on_error != "detail":
        return f"`{call.name}` failed"
    return f"`{call.name}` failed: {type(error).__name__}: {words_of(error)}"
