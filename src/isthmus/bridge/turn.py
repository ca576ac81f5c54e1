"""One turn, conducted without IO: facts in, commands out.

    Send ──▶ (upstream accepted) ──▶ feed* ──▶ (upstream ended) ──▶ Check* ──▶ Done
      ▲                              │   ▲                             │
      │                              Check                             │
      └───── the contract is not kept, budget left; tools were searched and found; or the provider only paused

The shell carries out what it is given, in order. `Check` is work that may take long, done elsewhere: give its result to
`checked`, then ask again where it came from (`feed` with nothing, or `end`). The streamed and the whole answer take the
same way; only the decoder's method differs.

A response is *idle*, then *running*, then *ended*; nothing else exists and nothing goes back (`TRANSITIONS`).
While it runs, one `Reply` takes the deltas of one upstream answer. What outlives an attempt is here: the output as it
was told, the notices, the call ids that are taken, and the tokens that were spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from isthmus.bridge.assemble.calls import Calls, Hosted
from isthmus.bridge.assemble.output import Frame, Output, Unheard, end_type, tell_compaction
from isthmus.bridge.assemble.reply import Reply
from isthmus.bridge.assemble.speech import Seal, VendorState
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
from isthmus.bridge.finish import Outcome
from isthmus.bridge.jobs import CheckAnswer, Result, run_job
from isthmus.bridge.plan import ask_again, go_on
from isthmus.bridge.tools.examine import Examined, ExamineInput
from isthmus.bridge.types.plan import Compaction, Plan
from isthmus.errors import FAILURES, IsthmusError, OutputInvalid, UpstreamFailed
from isthmus.protocol.events import Event
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import FinishedResponse, Response, ResponseStatus

MAX_PAUSES: Final = 5
"""How often a provider may pause within one response; after that the answer is `incomplete`."""

Phase = Literal["idle", "running", "ended"]

TRANSITIONS: Final[dict[tuple[Phase, str], Phase]] = {
    ("idle", "start"): "running",
    ("running", "feed"): "running",
    ("running", "end"): "ended",
}


@dataclass(frozen=True, slots=True)
class Send:
    """Call the upstream with this body and feed its answer back."""

    body: JsonObject
    why: Literal["first", "repair", "search", "compaction", "pause"] = "first"
    """What it is asked for: once more, within the same answer."""


@dataclass(frozen=True, slots=True)
class Check:
    """Do this work where it can block nobody, and give its result to `checked`."""

    job: CheckAnswer | ExamineInput


@dataclass(frozen=True, slots=True)
class Done:
    """Save the response, then send these events: the last one is terminal."""

    response: FinishedResponse
    events: list[Event]
    failure: IsthmusError | None = None

    def unkept(self, code: str, message: str) -> Done:
        """The same for a response that could not be saved: the client must not believe that it was."""
        response: FinishedResponse = {**self.response, "status": "failed", "error": {"code": code, "message": message}}
        response["completed_at"] = response["incomplete_details"] = None
        return self.replaced(response)

    def replaced(self, response: FinishedResponse) -> Done:
        """The same with another end."""
        number = self.events[-1]["sequence_number"]
        last: Event = {"type": end_type(response["status"]), "sequence_number": number, "response": response}
        return Done(response, [*self.events[:-1], last], self.failure)


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
        self._searches = self._attempt = self._pauses = 0
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
    def broken(self) -> bool:
        """The upstream reported an error inside its answer, or we have enough: there is nothing more to wait for."""
        return self._reply.failure is not None or self._reply.steered

    @property
    def told(self) -> int:
        return self._output.sequence

    def steer(self) -> bool:
        """End with the item that is open. False: there is none, so that it can be stopped at once (`steer_out`)."""
        self._reply.steering = True
        return not self._reply.at_rest

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

    def begin(self, now: int) -> Send | Done:
        """What to ask the upstream; nothing, where the request is only to be kept for the one that continues it."""
        if self._plan.generates:
            return Send(self._plan.body, "first" if self._plan.compaction is None else "compaction")
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
        """The events of these deltas, up to the first that has to wait for a `pending` check."""
        if self._phase != "running":
            self._move("feed")
        self._reply.take(deltas)
        output = self._output
        events, output.events = output.events, []
        return events

    @property
    def pending(self) -> Check | None:
        """To be looked at after each `feed`: what nothing goes on without. Once it is `checked`, feed nothing."""
        job = self._reply.calls.pending
        return None if job is None else Check(job)

    def checked(self, result: Result) -> None:
        match result:
            case Examined():
                self._reply.calls.take_verdict(result)
            case ContractCheck():
                self._check = result
            case _:
                raise AssertionError(f"no check asks for {result!r}")

    def end(self, now: int) -> Done | Send | Check:
        """The upstream's answer is over: settle the contract, then close, fail, or ask again."""
        reply, contract = self._reply, self._plan.contract
        if reply.steered:
            return self.steer_out(now)
        reply.last_examination()
        if (check := self.pending) is not None:
            return check
        if self._plan.compaction is not None:
            return self._compact(self._plan.compaction, now)
        if reply.paused is not None and reply.failure is None and self._pauses < MAX_PAUSES:
            return self._go_on(reply.paused)
        outcome, after = reply.outcome, self._plan.after_search
        if after is not None and reply.calls.only_search and outcome.status == "completed":
            return self._search(after)
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

    def _search(self, after: Callable[[Sequence[Mapping[str, Any]], int], Plan]) -> Send:
        """The model looked for tools, and gets those that were found: what it said belongs to what it is asked next."""
        self._searches += 1
        self._reply.close(self._reply.outcome)
        self._plan = after(self._output.items, self._searches)
        self._said, self._unfinished = [], []
        return self._send(self._plan.body, "search")

    def _compact(self, compaction: Compaction, now: int) -> Done | Send:
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
            return self._send(self._plan.body, "first")
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

    def _send(self, body: JsonObject, why: Literal["first", "repair", "search", "pause"]) -> Send:
        """The model is asked once more, by the plan as it is now; a new `Reply` takes the answer."""
        self._used_before = self._used
        steering = self._reply.steering
        self._reply = self._new_reply()
        self._reply.steering = steering
        return Send(body, why)

    def fail(self, failure: IsthmusError, now: int) -> Done:
        """The upstream broke off, timed out or was shut down: exactly one terminal event."""
        meaning, code, final = FAILURES.get(failure.code), failure.code, self._plan.client.final_code
        if final and meaning is not None and meaning.codex == "as a refusal":
            code = final
        return self._close(Outcome("failed", None, code, _with_wait(failure)), now, failure=failure)

    def cancel(self, now: int) -> Done:
        """The client left or cancelled: the response keeps what it had."""
        return self._close(Outcome("failed"), now, cancelled=True)

    def _close(self, outcome: Outcome, now: int, failure: IsthmusError | None = None, cancelled: bool = False) -> Done:
        """Everything closes; the last event is the terminal one."""
        output = self._output
        if not self.started:
            self._start()  # it ends before it began: its life is whole all the same
        told = output.sequence
        outcome = self._reply.close(outcome)
        if outcome.status == "failed" and self._plan.client.leaves_cut_items_open:
            output.unsay(told)
        return self._done(outcome, now, failure, cancelled)

    def _done(self, outcome: Outcome, now: int, failure: IsthmusError | None = None, cancelled: bool = False) -> Done:
        output = self._output
        self._move("end")
        status: ResponseStatus = "cancelled" if cancelled else outcome.status
        completed_at = now if status == "completed" else None
        response = self._frame.response(status, output.items, self._used, completed_at, outcome)
        finished = self._frame.finished(response, self._notices, self._reply.stop)
        output.end(status, finished)
        return Done(finished, output.take(), failure)

    @property
    def _used(self) -> Usage | None:
        before, now = self._used_before, self._reply.usage
        return before + now if before is not None and now is not None else before or now

    def _new_reply(self) -> Reply:
        plan, contract = self._plan, self._plan.contract
        output = self._output if plan.compaction is None else Unheard(self._frame.response_id)
        return Reply(
            output,
            VendorState(plan.target.provider, self._seal, plan.seals_reasoning),
            self._notices,
            Hosted(output),
            Calls(plan.tools, output, self._taken, self._notices, _plain_ids=plan.client.plain_call_ids),
            # Whoever reads the answer in one piece has not seen it yet: it may be cleaned where a stream may not.
            contract.held or (contract.requires_valid_json and not plan.stream),
            plan.reasoning_as == "summary",
            None if plan.reply.tells_length else plan.output_limit,
        )

    def _start(self) -> None:
        self._move("start")
        response = self._frame.response("in_progress")
        self._output.tell("response.created", response)
        self._output.tell("response.in_progress", response)

    def _move(self, action: str) -> None:
        following = TRANSITIONS.get((self._phase, action))
        if following is None:
            raise RuntimeError(f"the response is {self._phase}: it cannot {action}")
        self._phase = following


def _with_wait(failure: IsthmusError) -> str:
    """A stream has no `Retry-After`: Codex reads the wait from these very words."""
    if failure.code != "rate_limit_exceeded" or failure.retry_after is None or "try again in" in failure.message:
        return failure.message
    return f"{failure.message}; try again in {max(failure.retry_after, 0.1):g}s"


def feed_here(turn: Turn, deltas: Iterable[Delta]) -> list[Event]:
    """`feed`, with every check done on the spot: for callers that serve nobody else meanwhile."""
    events = turn.feed(deltas)
    while (check := turn.pending) is not None:
        turn.checked(run_job(check.job))
        events += turn.feed(())
    return events


def end_here(turn: Turn, now: int) -> Done | Send:
    """`end`, likewise."""
    while isinstance(command := turn.end(now), Check):
        turn.checked(run_job(command.job))
    return command


def reconstruct_response_object(
    plan: Plan, deltas: Iterable[Delta], *, response_id: str, created_at: int, completed_at: int
) -> FinishedResponse:
    """A whole reply as a Response object: the stream's own machine, folded.

    Raises `OutputInvalid` when the answer breaks a binding output contract.
    """
    turn = Turn(plan, response_id=response_id, now=created_at)
    turn.accepted()
    feed_here(turn, deltas)
    done = end_here(turn, completed_at)
    if isinstance(done, Send):
        # Nobody here can ask the model again: the contract is broken, and the caller learns how.
        raise OutputInvalid(
            "the model's answer does not match the requested JSON format",
            metadata={"provider": plan.target.provider, "model": plan.target.model, "response_id": response_id},
        )
    if done.failure is not None:
        raise done.failure
    return done.response
