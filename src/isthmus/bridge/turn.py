"""One turn, conducted without IO: facts in, commands out.

    Send ──▶ (upstream accepted) ──▶ feed* ──▶ (upstream ended) ──▶ Check* ──▶ RunTool? ──▶ Done
      ▲                              │   ▲                             │          │
      │                              Check                             │          │
      └───── the contract is not kept, budget left; tools were found, or ran here; or the provider only paused

The shell carries out what it is given, in order. `Check` is work that may take long, done elsewhere: give its result to
`checked`, then ask again where it came from (`feed` with nothing, or `end`). `RunTool` are calls that run here: tell
`began` and `ran` of each, then ask `end` again. The streamed and the whole answer take the same way; only the decoder's
method differs.

A response is *idle*, then *running*, then *ended*; nothing else exists and nothing goes back (`TRANSITIONS`).
While it runs, one `Reply` takes the deltas of one upstream answer. What outlives an attempt is here: the output as it
was told, the notices, the call ids that are taken, and the tokens that were spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from isthmus.bridge.assemble.output import Frame, Output, tell_compaction
from isthmus.bridge.assemble.reply import Reply
from isthmus.bridge.assemble.rounds import Rounds
from isthmus.bridge.assemble.speech import Seal
from isthmus.bridge.commands import Check as Check
from isthmus.bridge.commands import Done as Done
from isthmus.bridge.commands import RunTool as RunTool
from isthmus.bridge.commands import Send as Send
from isthmus.bridge.commands import Why
from isthmus.bridge.contract.check import (
    ContractCheck,
    applies_to,
    contract_failure,
    repair_request,
    validate_output_contract,
)
from isthmus.bridge.deltas import Delta, Usage
from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.envelope import Sealed
from isthmus.bridge.finish import Outcome, words_of
from isthmus.bridge.jobs import CheckAnswer, Result
from isthmus.bridge.plan import ask_again, go_on
from isthmus.bridge.tools.examine import Examined
from isthmus.bridge.types.managed import Ran
from isthmus.bridge.types.plan import Compaction, Plan
from isthmus.errors import FAILURES, IsthmusError, UpstreamFailed
from isthmus.protocol.events import Event
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import Response, ResponseStatus

_LEAST_TOKENS: Final = 16
"""With fewer than these left of `max_output_tokens`, the model is not asked again: no provider takes less."""
MAX_PAUSES: Final = 5
"""How often a provider may pause within one response; after that the answer is `incomplete`."""

Phase = Literal["idle", "running", "ended"]

TRANSITIONS: Final[dict[tuple[Phase, str], Phase]] = {
    ("idle", "start"): "running",
    ("running", "feed"): "running",
    ("running", "end"): "ended",
}


class Turn:
    def __init__(self, plan: Plan, *, response_id: str, now: int, seal: Seal | None = None) -> None:
        self._plan, self._seal = plan, seal
        self._frame = Frame(plan, response_id, now)
        self._output = Output(response_id, specified=plan.client.specified)
        self._phase: Phase = "idle"
        self._notices: list[CompatibilityDiagnostic] = []
        self._taken = set(plan.taken_call_ids)
        self._used_before: Usage | None = None
        self._check: ContractCheck | None = None
        self._rounds = Rounds(plan, self._output, seal)
        self._managed = self._rounds.managed
        self._attempt = self._pauses = 0
        self._over: Outcome | None = None
        """How the reply ended whose calls run here."""
        self._unfinished: list[Any] = []
        """What the provider said before its pauses, to be sent back."""
        self._said: list[tuple[str, str]] = []
        """Answers that would not do, each with the words that ask for another."""
        self.settled: list[ContractCheck] = []
        """What became of each answer that was held against its format."""
        self._reply = self._new_reply()

    @property
    def plan(self) -> Plan:
        """The plan of what was sent last: a search for tools makes a new one."""
        return self._plan

    @property
    def started(self) -> bool:
        return self._phase != "idle"

    @property
    def ended(self) -> bool:
        return self._phase == "ended"

    @property
    def told(self) -> int:
        return self._output.sequence

    @property
    def heard(self) -> Usage | None:
        """What the answer that is being told has used, if its provider has said so."""
        return self._reply.usage

    @property
    def said(self) -> str:
        """The text of that answer, as far as it has come."""
        return self._reply.text

    def renumber(self, told: int) -> None:
        """So many events were told in all, whoever numbered them: what follows the end is numbered on from there."""
        self._output.sequence = told

    def steer(self) -> bool:
        """End with the item that is open. False: there is none, so that it can be stopped at once (`steer_out`), and so
        can tools that run here."""
        self._reply.steering = True
        return self._over is None and not self._reply.at_rest

    def steer_out(self, now: int) -> Done:
        return self._close(Outcome("incomplete", "steered"), now)

    def tell_steering(self, kind: str, **fields: Any) -> Event:
        """What becomes of the user's words, numbered on; also behind the end."""
        self._output.say(kind, **fields)
        return self._output.events.pop()

    def note(self, diagnostic: CompatibilityDiagnostic) -> None:
        """Something that happened to this turn, or around it, and that its reader should know."""
        self._notices.append(diagnostic)

    def queued(self) -> Response:
        return self._frame.response("queued")

    def begin(self, now: int) -> Send | RunTool | Done:
        """What to ask the upstream; nothing, where the request is only to be kept for the one that continues it. What
        the user has approved is carried out first."""
        if self._plan.generates:
            first: Why = "first" if self._plan.compaction is None else "compaction"
            return self._approved() or Send(self._plan.body, first)
        self._start()
        self._used_before = Usage(0, 0, 0)
        return self._done(Outcome("completed"), now)

    def accepted(self) -> list[Event]:
        """The upstream took the request: `created` and `in_progress` go out at once."""
        if not self.started:
            self._start()
        return self._output.take()

    def heartbeat(self) -> Event:
        """A sign of life that counts: clients' idle timers ignore SSE comments."""
        self._output.tell("response.in_progress", self._frame.response("in_progress"))
        return self._output.events.pop()

    def feed(self, deltas: Iterable[Delta]) -> list[Event]:
        """The events of these deltas, up to the first that has to wait for a check (`halt`)."""
        if self._phase != "running":
            self._move("feed")
        self._reply.take(deltas)
        output = self._output
        events, output.events = output.events, []
        return events

    @property
    def halt(self) -> Check | Literal["broken"] | None:
        """To be looked at after each `feed`: a check that nothing goes on without (once it is `checked`, feed nothing);
        or the upstream reported an error inside its answer, or we have enough, and there is no more to wait for."""
        reply = self._reply
        if (job := reply.calls.pending) is not None:
            return Check(job)
        return None if reply.failure is None and not reply.steered else "broken"

    def checked(self, result: Result) -> None:
        match result:
            case Examined():
                self._reply.calls.take_verdict(result)
            case ContractCheck():
                self._check = result
            case _:
                raise AssertionError(f"no check asks for {result!r}")

    # ── tools that run here ────────────────────────────────────────────────────────────────────────

    def began(self, id: str) -> list[Event]:
        """A call is being carried out."""
        self._managed.began(id)
        return self._output.take()

    def progress(self, id: str, word: str, fields: JsonObject) -> list[Event]:
        self._managed.step(id, word, fields)
        return self._output.take()

    def ran(self, id: str, ran: Ran) -> list[Event]:
        """What came of a call. When all have ended, `end` says what comes next."""
        self._managed.ran(id, ran)
        return self._output.take()

    def _approved(self) -> RunTool | None:
        if not self._plan.approved:
            return None
        if not self.started:
            self._start()
        self._over = Outcome("completed")
        return RunTool(self._rounds.approve(self._plan))

    def _run_tools(self, now: int) -> Done | Send | RunTool:
        """The reply is over, and what it called is carried out; the client's own calls wait for the client."""
        steering = self._reply.steering
        self._over = self._reply.close(self._reply.outcome)
        if steering and self._reply.calls.only_here:
            return self.steer_out(now)
        if steering or self._over.status != "completed":
            return self._close(self._over, now)
        waiting = self._managed.take_waiting()
        return RunTool(waiting) if waiting else self._after_tools(now)

    def _after_tools(self, now: int) -> Done | Send:
        """Everything that was called here has its result: the model gets them, unless others are to answer as well."""
        calls, over, used = self._reply.calls, self._over or Outcome("completed"), self._used
        unasked = self._rounds.spent and calls.runs  # what it was asked with did not offer them
        if unasked or (calls and not calls.only_here):
            if self._managed.take_beside():  # nobody tells the model
                words = "the model called tools of the server more often than it may; further calls are left out"
                self._notices.append(notice("bridge.tool.call_suppressed", "output", words))
            return self._done(over, now)
        limit = self._frame.plan.echo["max_output_tokens"]
        most = None if limit is None or used is None else limit - used.output_tokens
        if most is not None and most < _LEAST_TOKENS:
            return self._done(Outcome("incomplete", "max_output_tokens"), now)
        self._plan = self._rounds.go_on(self._plan, calls, most)
        self._said, self._unfinished = [], []
        return self._send(self._plan.body, "tool" if calls.runs else "search")

    def end(self, now: int) -> Done | Send | Check | RunTool:
        """The upstream's answer is over: settle the contract, then close, fail, or ask again."""
        if self._over is not None:
            return self._after_tools(now)
        reply, contract = self._reply, self._plan.contract
        if reply.steered:
            return self.steer_out(now)
        reply.last_examination()
        if isinstance(check := self.halt, Check):
            return check
        if self._plan.compaction is not None:
            return self._compact(self._plan.compaction, now)
        if reply.paused is not None and reply.failure is None and self._pauses < MAX_PAUSES:
            return self._go_on(reply.paused)
        outcome = reply.outcome
        finds = reply.calls.only_here and bool(self._plan.tools.deferred)
        if outcome.status == "completed" and (reply.calls.runs or finds):
            return self._run_tools(now)
        if not applies_to(contract, outcome.status, bool(reply.calls), reply.refused):
            return self._close(outcome, now)
        checked, self._check = self._check, None
        if checked is None and contract.canonical:
            return Check(CheckAnswer(contract.canonical.decode(), contract.max_regex, reply.text))
        # Without a schema there is nothing that could take long.
        return self._settle(checked or validate_output_contract(contract, reply.text), now)

    def _settle(self, check: ContractCheck, now: int) -> Done | Send:
        contract, target, attempt = self._plan.contract, self._plan.target, self._attempt
        self.settled.append(check)
        if check.valid and check.cleaned and self._reply.holds:
            self._notice("output_cleaned", "output", "text around the requested JSON was removed")
            self._reply.replace_text(check.text)
        elif check.valid and check.cleaned:
            words = "the requested JSON stands among other text, which was told as it came"
            self._notice("output_unclean", "output", words)
        elif check.unchecked:
            self._notice("output_unchecked", "text.format", check.unchecked)
        elif not check.valid:
            self._notice("invalid_output_format", "text.format", "; ".join(check.errors), attempt=attempt)
        if check.valid or not contract.requires_valid_json:
            return self._close(self._reply.outcome, now)
        if contract.held and not check.unchecked and attempt < self._plan.repair_budget:
            return self._ask_again(repair_request(contract, check))
        if contract.held and not check.unchecked:
            self._reply.withhold_text()
        facts = {"provider": target.provider, "model": target.model, "response_id": self._frame.response_id}
        return self.fail(contract_failure(contract, check, **facts), now)

    def _notice(self, code: str, path: str, words: str, **facts: Any) -> None:
        self._notices.append(notice(f"bridge.response.{code}", path, words, **facts))

    def _ask_again(self, words: str) -> Send:
        self._attempt += 1
        self._unfinished = []
        self._said.append((self._reply.text, words))
        self._reply.abandon()
        return self._send(ask_again(self._plan, self._said), "repair")

    def _compact(self, compaction: Compaction, now: int) -> Done | Send | RunTool:
        """What the model wrote is a summary: it is sealed, and the answer may follow."""
        text, plan = self._reply.text.strip(), self._plan
        outcome = self._reply.close(self._reply.outcome)
        if outcome.status == "failed":
            return self._close(outcome, now)
        item: JsonObject | None = None
        if outcome.status == "completed" and text and self._seal is not None:
            sealed = self._seal(Sealed(plan.target.provider, text), "compaction")
            item = {**tell_compaction(self._output, sealed)}
        if compaction.then is not None:
            if item is None:
                words = "the model wrote no whole summary of the conversation; it goes on as it is"
                self._notice("compaction_failed", "context_management", words)
            self._plan = compaction.then(item)
            self._frame = replace(self._frame, plan=self._plan)
            self._rounds.list_tools(self._plan)  # a summary needs none
            send = self._send(self._plan.body, "first")
            return self._approved() or send
        if item is not None:
            return self._close(outcome, now)
        words = "the model wrote no whole summary of the conversation"
        return self.fail(UpstreamFailed(words, metadata={"provider": plan.target.provider}), now)

    def _go_on(self, content: Sequence[Any]) -> Send:
        """The provider paused: it gets its turn back, and what it says now follows what was told."""
        self._pauses += 1
        self._unfinished += content
        self._reply.abandon()
        return self._send(go_on(self._plan, self._unfinished), "pause")

    def _send(self, body: JsonObject, why: Why) -> Send:
        """The model is asked once more, by the plan as it is now; a new `Reply` takes the answer."""
        self._used_before = self._used
        steering = self._reply.steering
        self._reply = self._new_reply()
        self._reply.steering = steering
        self._over = None
        return Send(body, why)

    def fail(self, failure: IsthmusError, now: int) -> Done:
        """The upstream broke off, timed out or was shut down: exactly one terminal event."""
        meaning, code, final = FAILURES.get(failure.code), failure.code, self._plan.client.final_code
        if final and meaning is not None and meaning.codex == "as a refusal":
            code = final
        return self._close(Outcome("failed", None, code, words_of(failure)), now, failure=failure)

    def cancel(self, now: int) -> Done:
        """The client left or cancelled: the response keeps what it had."""
        return self._close(Outcome("failed"), now, cancelled=True)

    def _close(self, outcome: Outcome, now: int, failure: IsthmusError | None = None, cancelled: bool = False) -> Done:
        """Everything closes; the last event is the terminal one."""
        output = self._output
        if not self.started:
            self._start()  # it ends before it began: its life is whole all the same
        told = output.sequence
        if self._over is None:
            outcome = self._reply.close(outcome)
        self._managed.fail_all()
        if outcome.status == "failed" and self._plan.client.leaves_cut_items_open:
            output.unsay(told)
        return self._done(outcome, now, failure, cancelled)

    def _done(self, outcome: Outcome, now: int, failure: IsthmusError | None = None, cancelled: bool = False) -> Done:
        output = self._output
        self._move("end")
        status: ResponseStatus = "cancelled" if cancelled else outcome.status
        completed_at = now if status == "completed" else None
        response = self._frame.response(status, output.items, self._used, completed_at, outcome, self._managed.usage)
        finished = self._frame.finished(response, self._notices, self._reply.stop)
        output.end(status, finished)
        return Done(finished, output.take(), failure)

    @property
    def _used(self) -> Usage | None:
        before, now = self._used_before, self._reply.usage
        return before + now if before is not None and now is not None else before or now

    def _new_reply(self) -> Reply:
        return self._rounds.new_reply(self._plan, self._notices, self._taken)

    def _start(self) -> None:
        self._move("start")
        response = self._frame.response("in_progress")
        self._output.tell("response.created", response)
        self._output.tell("response.in_progress", response)
        self._rounds.list_tools(self._plan)

    def _move(self, action: str) -> None:
        following = TRANSITIONS.get((self._phase, action))
        if following is None:
            raise RuntimeError(f"the response is {self._phase}: it cannot {action}")
        self._phase = following
