"""The operator's hooks around one run: they see each body before it is sent, and the answer before it is kept and told.

In: what a run is about to do. Out: what it does. Where an answer may still become another one, its events are held
until it was looked at (`held.py`); where they were told as they came, the end can still be a refusal, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from isthmus.bridge.assemble.retell import replay_events
from isthmus.bridge.commands import Done, Send
from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityPlan, apply_allow_list, diagnose
from isthmus.bridge.limits import RequestLimits
from isthmus.bridge.parse import Request, parse_request
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.plan import Plan, Target
from isthmus.conduct.around import Recorder
from isthmus.conduct.held import Held
from isthmus.conduct.ways import Ways
from isthmus.errors import IsthmusError
from isthmus.hooks import Context, Sending
from isthmus.hooks.hooked import Changes, Hooked, Hooks
from isthmus.protocol.events import Event
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import FinishedResponse

_P = TypeVar("_P", bound=Any)


async def before_plan(
    hooks: Hooks, context: Context, request: Request, noted: Sequence[CompatibilityDecision], limits: RequestLimits
) -> tuple[Review, Request, Sequence[CompatibilityDecision]]:
    """The request that is planned, what is decided about it already, and who asks the hooks from there on. One that was
    changed is read like any other."""
    hooked = hooks.look_after(context)
    given = cast(JsonObject, {**request.body, "input": list(request.items)})

    def read(body: JsonObject) -> Request:
        return replace(parse_request(body, limits), size=request.size)

    body, decisions = await hooked.before_plan(given, read)
    return Review(hooked), request if body is None else read(body), (*noted, *decisions)


class Review:
    def __init__(self, hooked: Hooked) -> None:
        self._hooked = hooked
        self._held: Held | None = None

    def begin(self, recorder: Recorder | None) -> Recorder | None:
        """Who takes note of what is told, from now on: of what is held, nobody before it is."""
        if not self._hooked.holds:
            return recorder
        self._held = Held(recorder)
        return None

    def take(self, events: list[Event]) -> list[Event]:
        """What may be told of these now."""
        return events if self._held is None else self._held.take(events)

    def tell(self, event: Event) -> Event | None:
        """Out of turn; `None`: nothing is held, and it is told like any other."""
        return None if self._held is None else self._held.tell([event])[0]

    async def before_send(self, ways: Ways, command: Send, attempt: int) -> Send:
        body, decisions = await self._ask(ways.current.turn.plan.target, command.body, command.why, attempt)
        _tell(ways, decisions)
        return command if body is None else replace(command, body=body)

    async def foresee(self, plan: Plan) -> Plan:
        """What would be sent, by a plan that is only looked at."""
        body, decisions = await self._ask(plan.target, plan.body, "first", 1)
        return with_decisions(plan, decisions, body)

    async def _ask(self, target: Target, body: JsonObject, why: str, attempt: int) -> Changes:
        sending = Sending(target.provider, target.model, target.capabilities.dialect, why, attempt)
        changed, decisions = await self._hooked.before_send(body, sending)
        if changed is None:
            return None, decisions
        allowed, held_back = apply_allow_list(changed, target.capabilities.allow)
        return allowed, (*decisions, *held_back)

    async def after_reply(self, ways: Ways, turn: Turn, done: Done) -> Done:
        """The end that is kept and told, with all that was held."""
        held, self._held = self._held, None
        response: Any = done.response
        changed: FinishedResponse | None = None
        failure = done.failure
        if response["output"]:
            try:
                found, decisions = await self._hooked.after_reply(response)
            except IsthmusError as refused:
                failure = failure or refused
                changed = _refused(response, refused, told=held is None)
            else:
                if found is not None or decisions:
                    changed = _with_diagnostics(found or response, decisions)
                    _tell(ways, decisions, noted=False)
        end = done if changed is None else replace(done.replaced(changed), failure=failure)
        if held is None:
            return end
        if changed is None or changed["output"] == response["output"]:
            events = held.release(end.events)
        else:
            events = held.replace(replay_events(changed, specified=ways.current.plan.client.specified))
        turn.renumber(held.told)
        return replace(end, events=events)


def with_decisions(plan: _P, decisions: tuple[CompatibilityDecision, ...], body: JsonObject | None = None) -> _P:
    """A plan, whatever it is for, with what was decided since."""
    made = plan.compatibility
    changed: dict[str, Any] = {"compatibility": CompatibilityPlan((*made.decisions, *decisions), made.thinking)}
    return replace(plan, **changed if body is None else {**changed, "body": body})


def _tell(ways: Ways, decisions: tuple[CompatibilityDecision, ...], *, noted: bool = True) -> None:
    """In the head of the answer, if that was not told yet; and in the answer itself, unless it says so already."""
    if not decisions:
        return
    current = ways.current
    if noted:
        for decision in decisions:
            if (said := diagnose(decision)) is not None:
                current.turn.note(said)
    ways.current = replace(current, plan=with_decisions(current.plan, decisions))


def _with_diagnostics(response: Any, decisions: tuple[CompatibilityDecision, ...]) -> FinishedResponse:
    told = response["isthmus"]
    said = [found.to_json() for decision in decisions if (found := diagnose(decision)) is not None]
    return _finished({**response, "isthmus": {**told, "diagnostics": [*told["diagnostics"], *said]}})


def _refused(response: Any, failure: IsthmusError, *, told: bool) -> FinishedResponse:
    """It ends as failed; what nobody has seen, nobody sees."""
    error = {"code": failure.code, "message": failure.message}
    ended = {**response, "status": "failed", "error": error, "completed_at": None, "incomplete_details": None}
    return _finished(ended if told else {**ended, "output": [], "output_text": ""})


def _finished(response: Any) -> FinishedResponse:
    return cast(FinishedResponse, response)
