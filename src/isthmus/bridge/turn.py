"""One turn, conducted without IO: facts in, commands out.

    Send ──▶ (upstream accepted) ──▶ feed* ──▶ (upstream ended) ──▶ Check* ──▶ Done
      ▲                              │   ▲                             │
      │                              Check                             │
      └───── the contract is not kept, budget left; or tools were searched and found

The shell calls the upstream when told to `Send`, feeds what comes back, and carries out what it is
given, in order. `Check` is work that may take long, done elsewhere: give its result to `checked`, then ask again
where it came from (`feed` with nothing, or `end`). `Done` means: save the response, then send its events. The streamed
and the whole answer take the same way; only the decoder's method differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from isthmus.bridge.assemble.assembler import Assembler, Ending
from isthmus.bridge.assemble.frame import Frame
from isthmus.bridge.assemble.vendor import Seal
from isthmus.bridge.contract.check import (
    ContractCheck,
    applies_to,
    contract_failure,
    repair_request,
    validate_output_contract,
)
from isthmus.bridge.deltas import Delta
from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.jobs import CheckAnswer, Result, run_job
from isthmus.bridge.plan import ask_again
from isthmus.bridge.tools.examine import Examined, ExamineInput
from isthmus.bridge.types.plan import Plan
from isthmus.errors import OutputInvalid, UpstreamFailed
from isthmus.protocol.events import Event
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import FinishedResponse, Response


@dataclass(frozen=True, slots=True)
class Send:
    """Call the upstream with this body and feed its answer back."""

    body: JsonObject
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """Do this work where it can block nobody, and give its result to `checked`."""

    job: CheckAnswer | ExamineInput


@dataclass(frozen=True, slots=True)
class Done:
    """Save the response, then send these events: the last one is terminal."""

    response: FinishedResponse
    events: list[Event]
    failure: UpstreamFailed | None = None

    def unkept(self, code: str, message: str) -> Done:
        """The same for a response that could not be saved: the client must not believe that it was."""
        response: FinishedResponse = {
            **self.response,
            "status": "failed",
            "completed_at": None,
            "incomplete_details": None,
            "error": {"code": code, "message": message},
        }
        number = self.events[-1]["sequence_number"]
        last: Event = {"type": "response.failed", "sequence_number": number, "response": response}
        return Done(response, [*self.events[:-1], last], self.failure)


class Turn:
    """The conductor of one response."""

    __slots__ = ("_assembler", "_attempt", "_check", "_plan", "_response_id", "_said", "_searches")

    def __init__(
        self,
        plan: Plan,
        *,
        response_id: str,
        now: int,
        seal: Seal | None = None,
        reasoning_as: Literal["text", "summary"] | None = None,
    ) -> None:
        self._plan = plan
        self._response_id = response_id
        self._attempt = 0
        self._searches = 0
        self._check: ContractCheck | None = None
        self._said: list[tuple[str, str]] = []
        frame = Frame(
            response_id=response_id,
            created_at=now,
            model=plan.target.model,
            provider=plan.target.provider,
            alias=plan.target.alias,
            echo=plan.echo,
        )
        self._assembler = Assembler(
            frame,
            plan.tools,
            diagnostics=plan.diagnostics,
            # Whoever reads the answer in one piece has not seen it yet: it may be cleaned where a stream may not.
            hold=plan.contract.held or (plan.contract.requires_valid_json and not plan.stream),
            taken_call_ids=plan.taken_call_ids,
            seal=seal,
            seals_text=plan.seals_reasoning,
            reasoning_as=reasoning_as or plan.reasoning_as,
            client=plan.client,
        )

    @property
    def plan(self) -> Plan:
        """The plan of what was sent last: a search for tools makes a new one."""
        return self._plan

    @property
    def started(self) -> bool:
        return self._assembler.phase != "idle"

    @property
    def ended(self) -> bool:
        return self._assembler.phase == "ended"

    @property
    def broken(self) -> bool:
        """The upstream reported an error inside its answer: there is nothing more to wait for."""
        return self._assembler.reply.failure is not None

    def note(self, diagnostic: CompatibilityDiagnostic) -> None:
        """Something that happened around this turn and that its reader should know."""
        self._assembler.note(diagnostic)

    def queued(self) -> Response:
        """The response object of a turn that has not begun."""
        return self._assembler.snapshot("queued")

    def begin(self) -> Send:
        return Send(self._plan.body)

    def accepted(self) -> list[Event]:
        """The upstream took the request: `created` and `in_progress` go out at once."""
        return self._assembler.feed(()) if self.started else self._assembler.start()

    def heartbeat(self) -> Event:
        return self._assembler.heartbeat()

    def feed(self, deltas: Iterable[Delta]) -> list[Event]:
        """The events of these deltas, up to the first that has to wait for a `pending` check."""
        return self._assembler.feed(deltas)

    @property
    def pending(self) -> Check | None:
        """To be looked at after each `feed`: what nothing goes on without. Once it is `checked`, feed nothing."""
        job = self._assembler.pending
        return None if job is None else Check(job)

    def checked(self, result: Result) -> None:
        """The result of a check."""
        match result:
            case Examined():
                self._assembler.examined(result)
            case ContractCheck():
                self._check = result
            case _:
                raise AssertionError(f"no check asks for {result!r}")

    def end(self, now: int) -> Done | Send | Check:
        """The upstream's answer is over: settle the contract, then close, fail, or ask again."""
        assembler, contract = self._assembler, self._plan.contract
        job = assembler.last_examination()
        if job is not None:
            return Check(job)
        reply = assembler.reply
        if reply.calls.only_search and self._plan.after_search is not None and reply.outcome.status == "completed":
            return self._search(self._plan.after_search)
        if not applies_to(contract, reply.outcome.status, bool(reply.calls), reply.refused):
            return self._done(assembler.end(now))
        check, self._check = self._check, None
        if check is None and contract.canonical:
            return Check(CheckAnswer(contract.canonical.decode(), contract.max_regex, reply.text))
        # Without a schema there is nothing that could take long.
        return self._settle(check or validate_output_contract(contract, reply.text), now)

    def _search(self, after: Callable[[Sequence[Mapping[str, Any]], int], Plan]) -> Send:
        """The model looked for tools, and gets those that were found."""
        self._searches += 1
        self._plan = after(self._assembler.searched(), self._searches)
        self._said = []
        self._assembler.go_on(self._plan.tools)
        return Send(self._plan.body, self._attempt)

    def _settle(self, check: ContractCheck, now: int) -> Done | Send:
        assembler, contract, target = self._assembler, self._plan.contract, self._plan.target
        facts = {"provider": target.provider, "model": target.model, "response_id": self._response_id}
        if check.valid and not check.cleaned:
            return self._done(assembler.end(now))
        if check.valid and not assembler.reply.holds:
            words = "the requested JSON stands among other text, which was told as it came"
            assembler.note(notice("bridge.response.output_unclean", "output", words))
            return self._done(assembler.end(now))
        if check.valid:
            words = "text around the requested JSON was removed"
            assembler.note(notice("bridge.response.output_cleaned", "output", words))
            return self._done(assembler.end(now, text=check.text))
        if check.unchecked:
            assembler.note(notice("bridge.response.output_unchecked", "text.format", check.unchecked))
            if not contract.requires_valid_json:
                return self._done(assembler.end(now))
            unchecked = contract_failure(contract, check, **facts)
            return self._done(assembler.fail(unchecked.message, unchecked.code, now), unchecked)
        words = "; ".join(check.errors)
        assembler.note(notice("bridge.response.invalid_output_format", "text.format", words, attempt=self._attempt))
        if not contract.requires_valid_json:
            return self._done(assembler.end(now))
        if contract.held and self._attempt < self._plan.repair_budget:
            self._attempt += 1
            self._said.append((assembler.reply.text, repair_request(contract, check)))
            assembler.again()
            return Send(ask_again(self._plan, self._said), self._attempt)
        failure = contract_failure(contract, check, **facts)
        return self._done(assembler.fail(failure.message, failure.code, now), failure)

    def fail(self, failure: UpstreamFailed, now: int) -> Done:
        """The upstream broke off, timed out or was shut down: exactly one terminal event."""
        return self._done(self._assembler.fail(_with_wait(failure), failure.code, now), failure)

    def cancel(self, now: int) -> Done:
        """The client left or cancelled: the response keeps what it had."""
        return self._done(self._assembler.cancel(now))

    @staticmethod
    def _done(ending: Ending, failure: UpstreamFailed | None = None) -> Done:
        return Done(ending.response, ending.events, failure)


def _with_wait(failure: UpstreamFailed) -> str:
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
