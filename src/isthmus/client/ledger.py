"""The books of one run: its messages, results, usage and counters. Whatever ends the run, they balance.

In: replies and results as they come. Out: which calls may run, which limit is met, and the `RunResult`. No awaiting
here: a cancelled run closes its books in one step.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.client.asked import Asked
from isthmus.client.limits import StopReason
from isthmus.client.repair import UNANSWERED
from isthmus.client.result import ChatResult, RunResult
from isthmus.client.usage import Usage
from isthmus.tools.calls import ToolCall, canonical_json
from isthmus.tools.messages import Message, ToolResultPart
from isthmus.tools.results import ToolResult, fail


class Ledger:
    def __init__(self, asked: Asked, messages: list[Message], before: RunResult[Any] | None = None) -> None:
        self._asked = asked
        self.messages = messages
        self.output: Any = None
        self.stop: StopReason | None = None
        self.replies: list[ChatResult] = []
        self.results: list[ToolResult] = []
        self.pending: list[ToolCall] = []
        self._given = len(messages)
        self._open: tuple[int, Mapping[str, int]] | None = None
        """Where the last message with calls stands, and the place of each call in it: looked up once."""
        self._usage = Usage()
        self._turns = 0
        self._carried_out = 0
        self._failed_turns = 0
        self._streaks: dict[str, int] = {}
        self._output_retries = asked.output_retries
        if before is not None:
            self._continue(before)

    def _continue(self, before: RunResult[Any]) -> None:
        """A run that paused goes on: what it took so far counts on."""
        self._given = len(before.messages) - len(before.new_messages)
        self._usage = before.usage
        self._turns = before.turns
        self.results = list(before.tool_results)
        self._carried_out = len(self.results)

    # ── replies ────────────────────────────────────────────────────────────────────────────────────

    def take_reply(self, reply: ChatResult) -> None:
        self.replies.append(reply)
        self.messages.append(reply.message)
        self._open = None
        self._usage = self._usage.plus(reply.usage)
        self._turns += 1

    def limit_met(self) -> StopReason | None:
        """Asked before every model call."""
        limits = self._asked.limits
        if self._turns >= limits.max_turns:
            return "max_turns"
        if limits.max_tokens is not None and self._usage.total_tokens >= limits.max_tokens:
            return "budget"
        if limits.max_cost is not None and (self._usage.cost or 0.0) >= limits.max_cost:
            return "budget"
        return None

    def output_retries_left(self) -> bool:
        self._output_retries -= 1
        return self._output_retries >= 0

    # ── calls ──────────────────────────────────────────────────────────────────────────────────────

    def admit(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """The calls that may be carried out: within the budget, and not the same one for ever."""
        limits = self._asked.limits
        keys = {call.id: f"{call.name}\0{canonical_json(call.arguments) or call.raw_arguments}" for call in calls}
        self._streaks = {key: self._streaks.get(key, 0) + 1 for key in dict.fromkeys(keys.values())}
        may = [call for call in calls if self._streaks[keys[call.id]] <= limits.max_repeated_calls]
        if len(may) < len(calls):
            self.stop = "repeated_calls"
        if limits.max_tool_calls is not None:
            left = max(limits.max_tool_calls - self._carried_out, 0)
            if left < len(may):
                self.stop = self.stop or "max_tool_calls"
                may = may[:left]
        self._carried_out += len(may)
        return may

    def answer(self, result: ToolResult) -> ToolResult:
        self.results.append(result)
        self._put(result.part())
        return result

    def close_turn(self) -> None:
        """All calls of this turn are dealt with: judge them together."""
        # Those of the whole message: some may have been answered before a pause.
        _, order = self._last_calls() or (0, {})
        mine = sorted((one for one in self.results if one.call_id in order), key=lambda one: order[one.call_id])
        self.results = [*(one for one in self.results if one.call_id not in order), *mine]
        ended = next((result for result in mine if result.ends_run), None)
        if ended is not None:
            self.output, self.stop = ended.value, "completed"
        elif self.pending:
            self.stop = "approval_required"
        elif self.stop is None and mine:
            self._failed_turns = self._failed_turns + 1 if not any(result.ok for result in mine) else 0
            if self._failed_turns >= self._asked.limits.max_consecutive_errors:
                self.stop = "tool_errors"

    def result(self) -> RunResult[Any]:
        self._close_open_calls()
        last = next((one for one in reversed(self.messages) if one.role == "assistant"), Message("assistant"))
        return RunResult(
            output=self.output,
            message=last,
            messages=tuple(self.messages),
            new_messages=tuple(self.messages[self._given :]),
            tool_results=tuple(self.results),
            usage=self._usage,
            stop_reason=self.stop or "failed",
            turns=self._turns,
            pending=tuple(self.pending),
            diagnostics=tuple(said for reply in self.replies for said in reply.diagnostics),
            asked=self._asked,
        )

    def _close_open_calls(self) -> None:
        """Calls that nobody will carry out any more count as cancelled; those that wait for a person stay open."""
        if self.stop != "approval_required":
            self.pending = []
        waiting = {call.id for call in self.pending}
        last = self._last_calls()
        if last is None:
            return
        at = last[0]
        answered = {part.call_id for part in self._answers(at)}
        for call in self.messages[at].tool_calls:
            if call.id not in answered and call.id not in waiting:
                self.answer(fail(call, "cancelled", "cancelled", UNANSWERED))

    def _put(self, part: ToolResultPart) -> None:
        """Into the tool message behind the last calls, in call order."""
        last = self._last_calls()
        assert last is not None
        at, order = last
        known = self._answers(at)
        place = bisect(known, order[part.call_id], key=lambda one: order[one.call_id])
        parts = (*known[:place], part, *known[place:])
        self.messages[at + 1 : at + 2 if known else at + 1] = [Message("tool", parts)]

    def _last_calls(self) -> tuple[int, Mapping[str, int]] | None:
        if self._open is None:
            for at in reversed(range(len(self.messages))):
                if calls := self.messages[at].tool_calls:
                    self._open = at, {call.id: place for place, call in enumerate(calls)}
                    break
        return self._open

    def _answers(self, at: int) -> tuple[ToolResultPart, ...]:
        return self.messages[at + 1].tool_results if at + 1 < len(self.messages) else ()
