"""The tools of one request: finds the tool of a call, checks its arguments, asks for approval, runs what may run.

In: calls. Out: one result per call, in call order; calls that wait for somebody are given back as pending. Calls run
side by side, except those of `exclusive` tools, which run alone and in their place.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from isthmus.bridge.resolve import nearest_name
from isthmus.tools.calls import ToolCall
from isthmus.tools.context import Approval, Approve, Deny, Provide, ToolContext
from isthmus.tools.definition import Tool, ToolLike, as_tools
from isthmus.tools.execute import Prepared, Rules, execute_call
from isthmus.tools.messages import Message
from isthmus.tools.results import ToolResult, fail, succeed, words_of
from isthmus.tools.signature import InvalidArguments

MAX_CALLS: Final = 128
"""A model that asks for thousands at once is not at work, it is broken (or was told to by somebody)."""

Ask = Callable[[ToolCall], Approval | Awaitable[Approval]]
"""Asked on the spot about calls that need approval."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What calls are carried out with."""

    deps: Any = None
    messages: tuple[Message, ...] = ()
    rules: Rules = field(default_factory=Rules)
    concurrency: int = 8
    max_calls: int = MAX_CALLS
    """Calls of one reply that are carried out."""
    approvals: Mapping[str, Approval] = field(default_factory=dict)
    """Decisions that were already made, by call id."""
    ask: Ask | None = None
    settled: Callable[[ToolResult], object] | None = None
    """Hears of every result at the moment it is there, before any reader does."""

    def context(self, call: ToolCall) -> ToolContext[Any]:
        return ToolContext(call, self.deps, self.messages)


@dataclass(frozen=True, slots=True)
class Started:
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Pending:
    """The call waits for an approval, or for whoever carries it out."""

    call: ToolCall


class ToolSet:
    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        self._tools = {one.name: one for one in as_tools(tools)}

    def __iter__(self) -> Iterator[Tool[..., Any]]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def get(self, name: str) -> Tool[..., Any] | None:
        return self._tools.get(name)

    def declarations(self) -> list[dict[str, Any]]:
        return [one.declaration() for one in self._tools.values()]

    async def execute(self, call: ToolCall, environment: Environment | None = None) -> ToolResult:
        """Carry out one call; never raises for what the model or the tool did wrong."""
        (result,) = await self.execute_all([call], environment)
        return result

    async def execute_all(self, calls: Sequence[ToolCall], environment: Environment | None = None) -> list[ToolResult]:
        """Results in call order. A call that would have to wait for somebody is denied: nobody is there to ask."""
        results: dict[int, ToolResult] = {}
        async with aclosing(self.run(calls, environment or Environment())) as steps:
            async for index, step in steps:
                if isinstance(step, ToolResult):
                    results[index] = step
                elif isinstance(step, Pending):
                    words = f"`{step.call.name}` needs an approval, and nobody gave one"
                    results[index] = fail(step.call, "denied", "approval_required", words)
        return [results[index] for index in range(len(calls))]

    async def run(
        self, calls: Sequence[ToolCall], environment: Environment
    ) -> AsyncGenerator[tuple[int, Started | Pending | ToolResult], None]:
        """Carry out calls and tell what happens as it happens, each step with the index of its call."""
        ready: list[tuple[int, Prepared]] = []
        for index, call in enumerate(calls):
            if index < environment.max_calls:
                step = await self._prepare(call, environment)
            else:
                step = _beyond(call, environment.max_calls)
            if isinstance(step, Prepared):
                ready.append((index, step))
            else:
                if isinstance(step, ToolResult) and environment.settled is not None:
                    environment.settled(step)
                yield index, step
        for group in _groups(ready):
            async with aclosing(_run_group(group, environment)) as steps:
                async for told in steps:
                    yield told

    async def _prepare(self, call: ToolCall, environment: Environment) -> Prepared | Pending | ToolResult:
        found = self._look_up(call)
        if isinstance(found, ToolResult):
            return found
        try:
            decision = await _decide(found, environment)
        except Exception as error:
            return fail(call, "denied", "approval_failed", f"whether `{call.name}` may run cannot be told", error)
        match decision:
            case None:
                return Pending(call)
            case Deny(reason):
                words = f"the call to `{call.name}` was denied" + (f": {reason}" if reason else "")
                return fail(call, "denied", "denied", words)
            case Provide(value):
                return succeed(call, value, limit=environment.rules.max_result_chars)
            case _:
                return found

    def _look_up(self, call: ToolCall) -> Prepared | ToolResult:
        if call.error is not None:
            words = f"{call.error.message}; call `{call.name}` again with one JSON object as its arguments"
            return fail(call, "invalid_arguments", call.error.code, words)
        tool = self._tools.get(call.name)
        if tool is None:
            return fail(call, "not_found", "tool_not_found", self._unknown(call.name))
        try:
            return Prepared(call, tool, tool.read(call.arguments or {}))
        except InvalidArguments as error:
            words = f"the arguments do not fit `{call.name}`: {words_of(error)}"
            return fail(call, "invalid_arguments", "invalid_arguments", words, error)
        except Exception as error:  # a validator of the user's own may raise anything
            words = f"the arguments of `{call.name}` could not be read: {words_of(error)}"
            return fail(call, "invalid_arguments", "invalid_arguments", words, error)

    def _unknown(self, name: str) -> str:
        if not self._tools:
            return f"there is no tool `{name}`, and no other one"
        near = nearest_name(name, self._tools)
        hint = f"; did you mean `{near}`?" if near else ""
        return f"there is no tool `{name}`; available: {', '.join(self._tools)}{hint}"


def _beyond(call: ToolCall, most: int) -> ToolResult:
    words = f"only {most} calls of one reply are carried out, and this one came after them; ask for it again"
    return fail(call, "skipped", "max_calls_per_reply", words)


async def _decide(prepared: Prepared, environment: Environment) -> Approve | Deny | Provide | None:
    """What becomes of a call: `None` means that somebody must be waited for."""
    call, tool = prepared.call, prepared.tool
    given = environment.approvals.get(call.id)
    if given is None:
        needs = tool.needs_approval
        if callable(needs):
            asked = needs(environment.context(call), prepared.arguments)
            needs = await asked if inspect.isawaitable(asked) else asked
        if needs and environment.ask is not None:
            answer = environment.ask(call)
            given = await answer if inspect.isawaitable(answer) else answer
        elif not needs:
            given = Approve()
    if given is True:
        given = Approve()
    elif given is False:
        given = Deny()
    if isinstance(given, Approve) and tool.function is None:
        return None
    return given


def _groups(ready: Sequence[tuple[int, Prepared]]) -> list[list[tuple[int, Prepared]]]:
    """Runs of calls that may go side by side; an exclusive one is a run of its own."""
    groups: list[list[tuple[int, Prepared]]] = []
    shared = False
    for index, prepared in ready:
        if prepared.tool.exclusive or not shared:
            groups.append([])
        groups[-1].append((index, prepared))
        shared = not prepared.tool.exclusive
    return groups


async def _run_group(
    group: Sequence[tuple[int, Prepared]], environment: Environment
) -> AsyncGenerator[tuple[int, Started | ToolResult], None]:
    news: asyncio.Queue[tuple[int, Started | ToolResult | BaseException]] = asyncio.Queue()
    gate = asyncio.Semaphore(max(environment.concurrency, 1))

    async def carry_out(index: int, prepared: Prepared) -> None:
        try:
            async with gate:
                news.put_nowait((index, Started(prepared.call)))
                context = environment.context(prepared.call)
                news.put_nowait((index, await execute_call(prepared, context, environment.rules, environment.settled)))
        except BaseException as error:
            news.put_nowait((index, error))
            raise

    tasks = [asyncio.create_task(carry_out(index, prepared)) for index, prepared in group]
    try:
        left = len(tasks)
        while left:
            index, told = await news.get()
            if isinstance(told, BaseException):
                raise told
            left -= isinstance(told, ToolResult)
            yield index, told
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
