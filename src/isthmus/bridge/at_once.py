"""A turn conducted on the spot, by whoever serves nobody else meanwhile: checks are done here, nothing is awaited."""

from __future__ import annotations

from collections.abc import Iterable

from isthmus.bridge.commands import Check, Done, RunTool, Send
from isthmus.bridge.deltas import Delta
from isthmus.bridge.jobs import run_job
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.plan import Plan
from isthmus.errors import OutputInvalid
from isthmus.protocol.events import Event
from isthmus.protocol.response import FinishedResponse


def feed_here(turn: Turn, deltas: Iterable[Delta]) -> list[Event]:
    """`feed`, with every check done."""
    events = turn.feed(deltas)
    while isinstance(check := turn.halt, Check):
        turn.checked(run_job(check.job))
        events += turn.feed(())
    return events


def end_here(turn: Turn, now: int) -> Done | Send | RunTool:
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
    if not isinstance(done, Done):
        # Nobody here can ask the model again: the contract is broken, and the caller learns how.
        raise OutputInvalid(
            "the model's answer does not match the requested JSON format",
            metadata={"provider": plan.target.provider, "model": plan.target.model, "response_id": response_id},
        )
    if done.failure is not None:
        raise done.failure
    return done.response
