"""The one loop: ask the model, carry out its calls, ask again, until it answers or a limit is met.

In: what was asked, and a conversation. Out: `RunEvent`s; the last one carries the `RunResult`. Whatever happens in
between (a failure, a cancellation, a reader that leaves), every call has exactly one result, and the conversation that
is left can be continued.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from isthmus.client.ask import DeadlinePassed, ask_model
from isthmus.client.asked import Asked, build_request
from isthmus.client.events import (
    ApprovalRequired,
    HistoryRepaired,
    RunEvent,
    RunFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from isthmus.client.ledger import Ledger
from isthmus.client.limiter import Limiter
from isthmus.client.limits import StopReason
from isthmus.client.line import Route
from isthmus.client.repair import repair
from isthmus.client.result import ChatResult, RunResult
from isthmus.errors import LimitReached, OutputInvalid
from isthmus.tools.calls import ToolCall
from isthmus.tools.context import Approval
from isthmus.tools.execute import Rules
from isthmus.tools.messages import Message, TextPart, assistant, user
from isthmus.tools.results import ToolResult, fail
from isthmus.tools.toolset import Environment, Pending, Started

Hear = Callable[[RunEvent], object]

FINALIZE = "You have reached the limit of this task. Answer now with what you know, without calling any tools."
_FINAL: frozenset[StopReason] = frozenset({"max_turns", "max_tool_calls", "repeated_calls", "tool_errors", "budget"})
"""Limits after which one more answer can be asked for. After a timeout there is no time for it."""


class ToolLoop:
    """One run. Iterate `events` once; `result` is there when it has ended, in whatever way."""

    def __init__(
        self,
        asked: Asked,
        route: Route,
        messages: Sequence[Message],
        *,
        limiter: Limiter | None = None,
        approvals: Mapping[str, Approval] | None = None,
        resuming: bool = False,
        before: RunResult[Any] | None = None,
        hear: Hear | None = None,
    ) -> None:
        self._asked = asked
        self._route = route
        self._limiter = limiter
        self._approvals = approvals or {}
        self._hear = hear
        self._repaired = repair(messages, keep_open=resuming)
        self._ledger = Ledger(asked, self._repaired.messages, before)
        self._choice = asked.tool_choice
        self._deadline: float | None = None
        self.result: RunResult[Any] | None = None

    async def events(self) -> AsyncGenerator[RunEvent, None]:
        limits = self._asked.limits
        if limits.timeout is not None:
            self._deadline = asyncio.get_running_loop().time() + limits.timeout
        try:
            async with aclosing(self._steps()) as steps:
                async for event in steps:
                    yield self._tell(event)
            result = self._end()
        except (asyncio.CancelledError, GeneratorExit) as error:
            # Not a moment to wait: what is open is closed here and now, and the cancellation goes on its way.
            self._leave("cancelled", error)
            self._tell(RunFinished(self._end()))
            raise
        except LimitReached:
            raise
        except Exception as error:
            self._leave("failed", error)
            raise
        if self._asked.on_limit == "raise" and result.stop_reason in (*_FINAL, "timeout"):
            raise LimitReached(f"the run met its limit: {result.stop_reason}", code=result.stop_reason, result=result)
        yield self._tell(RunFinished(result))

    # ── the normative loop ─────────────────────────────────────────────────────────────────────────

    async def _steps(self) -> AsyncGenerator[RunEvent, None]:
        if self._repaired.notes:
            yield HistoryRepaired(self._repaired.notes)
        ledger = self._ledger
        try:
            if self._repaired.open:
                async for event in self._carry_out(self._repaired.open):
                    yield event
            while ledger.stop is None:
                if (met := ledger.limit_met()) is not None:
                    ledger.stop = met
                    break
                async for event in self._turn():
                    yield event
            if self._asked.on_limit == "finalize" and ledger.stop in _FINAL:
                async for event in self._finalize():
                    yield event
        except DeadlinePassed:
            ledger.stop = "timeout"
        except TimeoutError:
            if not self._late():
                raise
            ledger.stop = "timeout"

    async def _turn(self) -> AsyncGenerator[RunEvent, None]:
        """One answer of the model, and the calls in it."""
        said: list[str] = []
        try:
            async for event in self._ask(self._choice):
                if isinstance(event, TextDelta):
                    said.append(event.text)
                yield event
        except OutputInvalid as problem:
            # Where the provider keeps the format itself, its text was shown already: only here it can be asked again.
            self._ask_again(problem, assistant("".join(said)))
            return
        reply = self._ledger.replies[-1]
        if reply.tool_calls:
            self._choice = "auto" if self._choice != "none" else "none"  # a forced choice is honoured once
            async for event in self._carry_out(reply.tool_calls):
                yield event
        else:
            self._conclude(reply)

    async def _ask(self, choice: str) -> AsyncGenerator[RunEvent, None]:
        ledger = self._ledger
        request = build_request(self._asked, self._route.model, ledger.messages, choice)
        asking = ask_model(
            self._route, request, retry=self._asked.retry, limiter=self._limiter, deadline=self._deadline
        )
        async with aclosing(asking) as steps:
            async for step in steps:
                if isinstance(step, ChatResult):
                    ledger.take_reply(step)
                    yield TurnFinished(step)
                else:
                    yield step

    async def _carry_out(self, calls: Sequence[ToolCall]) -> AsyncGenerator[RunEvent, None]:
        ledger = self._ledger
        may = ledger.admit(calls)
        admitted = {call.id for call in may}
        for call in calls:
            if call.id not in admitted:
                yield ToolFinished(ledger.answer(_skip(call, ledger.stop)))
        environment = self._environment()
        async with aclosing(self._asked.tools.run(may, environment)) as steps:
            while (told := await self._within(anext(steps, None))) is not None:
                match told[1]:
                    case Started(call):
                        yield ToolStarted(call)
                    case Pending(call):
                        ledger.pending.append(call)
                        yield ApprovalRequired(call)
                    case ToolResult() as result:
                        yield ToolFinished(result)
        ledger.close_turn()

    async def _finalize(self) -> AsyncGenerator[RunEvent, None]:
        """The limit is met: one more answer, without tools."""
        ledger = self._ledger
        ledger.messages.append(Message("developer", (TextPart(FINALIZE),)))
        async for event in self._ask("none"):
            yield event
        reply = ledger.replies[-1]
        for call in reply.tool_calls:
            yield ToolFinished(ledger.answer(_skip(call, ledger.stop)))
        ledger.close_turn()
        if reply.finish_reason == "stop":
            self._read_output(reply)

    def _conclude(self, reply: ChatResult) -> None:
        """An answer without calls ends the run, unless it breaks a rule that only the output type knows."""
        ledger = self._ledger
        match reply.finish_reason:
            case "stop" | "tool_calls":
                problem = self._read_output(reply)
                if problem is None:
                    ledger.stop = "completed"
                else:
                    self._ask_again(problem)
            case "length" | "content_filter" | "refusal" as reason:
                ledger.stop = reason
                if self._asked.output is None:
                    ledger.output = reply.text or None

    def _ask_again(self, problem: OutputInvalid, *said: Message) -> None:
        """The next turn asks for a better answer, if there may be one."""
        if not self._ledger.output_retries_left():
            raise problem
        words = f"{problem.message}. Answer again, in the same format, with this corrected."
        self._ledger.messages += [*said, user(words)]

    def _read_output(self, reply: ChatResult) -> OutputInvalid | None:
        output = self._asked.output
        if output is None:
            self._ledger.output = reply.text
            return None
        try:
            self._ledger.output = output.read(reply.text)
        except OutputInvalid as problem:
            return problem
        return None

    # ── small things ───────────────────────────────────────────────────────────────────────────────

    def _environment(self) -> Environment:
        asked, limits = self._asked, self._asked.limits
        return Environment(
            deps=asked.deps,
            messages=tuple(self._ledger.messages),
            rules=Rules(limits.tool_timeout, limits.cleanup_grace, limits.max_result_chars),
            concurrency=limits.max_concurrency,
            max_calls=limits.max_calls_per_reply,
            approvals=self._approvals,
            ask=asked.ask,
            settled=self._ledger.answer,
        )

    async def _within(self, awaitable: Any) -> Any:
        async with asyncio.timeout_at(self._deadline):
            return await awaitable

    def _late(self) -> bool:
        return self._deadline is not None and asyncio.get_running_loop().time() >= self._deadline

    def _leave(self, reason: StopReason, error: BaseException) -> None:
        self._ledger.stop = reason
        self._end()
        error.result = self.result  # type: ignore[attr-defined]  # `partial_result` finds it there

    def _end(self) -> RunResult[Any]:
        if self.result is None:
            self.result = self._ledger.result()
        return self.result

    def _tell(self, event: RunEvent) -> RunEvent:
        if self._hear is not None:
            self._hear(event)
        return event


def _skip(call: ToolCall, why: StopReason | None) -> ToolResult:
    words = {
        "repeated_calls": "the same call was made again and again; it was not carried out",
        "max_turns": "no more calls are allowed in this task",
    }.get(why or "", "the number of calls that this task allows is used up")
    return fail(call, "skipped", why or "max_tool_calls", words)
