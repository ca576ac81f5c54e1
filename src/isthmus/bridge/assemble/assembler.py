"""Deltas → Responses events and the final object: the one machine behind streamed and whole answers.

A response is *idle*, then *running*, then *ended*; nothing else exists and nothing goes back:

    phase      start     feed      end, fail
    ────────   ───────   ───────   ─────────
    idle       running   error     error
    running    error     running   ended
    ended      error     error     error

While it runs, one `Reply` (see `reply`) takes the deltas of one upstream answer; `again` begins the next one. What
outlives an attempt is here: the output as it was told, the notices, the call ids that are taken, and the tokens that
were spent. A whole reply goes through the same machine: its decoder gives the deltas in an order of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from isthmus.bridge.assemble.frame import Frame
from isthmus.bridge.assemble.output import Output
from isthmus.bridge.assemble.reply import Reply
from isthmus.bridge.assemble.vendor import Seal, VendorState
from isthmus.bridge.deltas import Delta, Usage
from isthmus.bridge.diagnostics import CompatibilityDiagnostic
from isthmus.bridge.finish import Outcome
from isthmus.bridge.tools.examine import Examined, ExamineInput
from isthmus.bridge.types.plan import ANY_CLIENT, ClientProfile
from isthmus.bridge.types.tools import ToolPlan
from isthmus.errors import FAILURES
from isthmus.protocol.events import Event
from isthmus.protocol.items import OutputItem
from isthmus.protocol.response import FinishedResponse, Response, ResponseStatus

AssemblerPhase = Literal["idle", "running", "ended"]

TRANSITIONS: Final[dict[tuple[AssemblerPhase, str], AssemblerPhase]] = {
    ("idle", "start"): "running",
    ("running", "feed"): "running",
    ("running", "end"): "ended",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The response as it is stored and sent, and the events that close the stream (terminal one last)."""

    response: FinishedResponse
    events: list[Event]


class Assembler:
    __slots__ = (
        "_client",
        "_frame",
        "_hold",
        "_notices",
        "_output",
        "_phase",
        "_plan_diagnostics",
        "_reasoning_as",
        "_seal",
        "_seals_text",
        "_taken",
        "_tools",
        "_used_before",
        "reply",
    )

    def __init__(
        self,
        frame: Frame,
        tools: ToolPlan,
        *,
        diagnostics: Iterable[CompatibilityDiagnostic] = (),
        hold: bool = False,
        taken_call_ids: frozenset[str] = frozenset(),
        seal: Seal | None = None,
        seals_text: bool = True,
        reasoning_as: Literal["text", "summary"] = "text",
        client: ClientProfile = ANY_CLIENT,
    ) -> None:
        self._frame = frame
        self._tools = tools
        self._plan_diagnostics = tuple(diagnostics)
        self._hold = hold
        self._taken = set(taken_call_ids)
        self._seal = seal
        self._seals_text = seals_text
        self._reasoning_as: Literal["text", "summary"] = reasoning_as
        self._client = client
        self._phase: AssemblerPhase = "idle"
        self._output = Output(frame.response_id)
        self._notices: list[CompatibilityDiagnostic] = []
        self._used_before: Usage | None = None
        self.reply = self._new_reply()
        """The answer that is coming in."""

    @property
    def phase(self) -> AssemblerPhase:
        return self._phase

    def start(self) -> list[Event]:
        """The upstream has accepted: the client hears of its response at once."""
        self._start()
        return self._output.take()

    def heartbeat(self) -> Event:
        """A sign of life that counts: clients' idle timers ignore SSE comments."""
        self._output.tell("response.in_progress", self.snapshot("in_progress"))
        return self._output.events.pop()

    def feed(self, deltas: Iterable[Delta]) -> list[Event]:
        """The events that these deltas give, up to the first that has to wait for a `pending` examination."""
        if self._phase != "running":
            self._move("feed")
        self.reply.take(deltas)
        output = self._output
        events = output.events
        output.events = []
        return events

    @property
    def pending(self) -> ExamineInput | None:
        """What has to be examined before anything goes on."""
        return self.reply.calls.pending

    def examined(self, verdict: Examined) -> None:
        self.reply.calls.take_verdict(verdict)

    def last_examination(self) -> ExamineInput | None:
        """What has to be examined before `end`; to be asked again after each verdict, until there is nothing."""
        self.reply.last_examination()
        return self.pending

    def snapshot(self, status: ResponseStatus) -> Response:
        """The response as it stands, before its end."""
        return self._frame.response(status=status, output=())

    def note(self, diagnostic: CompatibilityDiagnostic) -> None:
        """Something was changed in the reply: it will be reported."""
        self._notices.append(diagnostic)

    def again(self) -> None:
        """The contract is not kept and the model is asked once more."""
        self.reply.abandon()
        self.go_on(self._tools)

    def searched(self) -> list[OutputItem]:
        """The reply was nothing but searches: it closes, and what it said belongs to what the model is asked next."""
        self.reply.close(self.reply.outcome)
        return self._output.items

    def go_on(self, tools: ToolPlan) -> None:
        """The model is asked again, with further tools."""
        self._used_before, self._tools = self._used, tools
        self.reply = self._new_reply()

    def end(self, now: int, *, text: str | None = None) -> Ending:
        """The upstream is done: everything closes. `text` replaces held text that was cleaned."""
        if text is not None:
            self.reply.replace_text(text)
        return self._end(self.reply.outcome, now)

    def fail(self, message: str, code: str, now: int) -> Ending:
        """The turn broke off: one terminal event says why."""
        meaning, final = FAILURES.get(code), self._client.final_code
        if final and meaning is not None and meaning.codex == "as a refusal":
            code = final
        return self._end(Outcome("failed", None, code, message), now)

    def cancel(self, now: int) -> Ending:
        """The client has left, or asked to stop: what there is so far is kept, as cancelled."""
        return self._end(Outcome("failed"), now, cancelled=True)

    def _start(self) -> None:
        self._move("start")
        response = self.snapshot("in_progress")
        self._output.tell("response.created", response)
        self._output.tell("response.in_progress", response)

    def _end(self, outcome: Outcome, now: int, *, cancelled: bool = False) -> Ending:
        if self._phase == "idle":
            self._start()  # it ends before it began: its life is whole all the same
        if outcome.status == "failed" and self._client.leaves_cut_items_open:
            with self._output.silently():
                outcome = self.reply.close(outcome)
        else:
            outcome = self.reply.close(outcome)
        self._move("end")
        return self._terminal(outcome, now, cancelled)

    def _terminal(self, outcome: Outcome, now: int, cancelled: bool) -> Ending:
        status: ResponseStatus = "cancelled" if cancelled else outcome.status
        response = self._frame.response(
            status=status,
            output=self._output.items,
            usage=self._used,
            completed_at=now if status == "completed" else None,
            outcome=outcome,
        )
        finished = self._frame.finished(response, (*self._plan_diagnostics, *self._notices))
        self._output.end(status, finished)
        return Ending(finished, self._output.take())

    @property
    def _used(self) -> Usage | None:
        """The tokens of all attempts so far."""
        before, now = self._used_before, self.reply.usage
        return before + now if before is not None and now is not None else now if before is None else before

    def _new_reply(self) -> Reply:
        return Reply(
            self._output,
            self._tools,
            VendorState(self._frame.provider, self._seal, text_too=self._seals_text),
            self._notices,
            self._taken,
            hold=self._hold,
            reasoning_as=self._reasoning_as,
        )

    def _move(self, action: str) -> None:
        following = TRANSITIONS.get((self._phase, action))
        if following is None:
            raise RuntimeError(f"the response is {self._phase}: it cannot {action}")
        self._phase = following
