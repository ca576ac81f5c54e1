"""A request → the run that answers it: the model is found, stored turns are fetched, each target gets its plan.

In: a caller and a checked request. Out: a `Run`, of which nothing was sent yet, or why there is none. What was taken
for it (a conversation's lock, a place among the users of this gateway) is given back by the run, or here without one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.parse import Request
from isthmus.bridge.types.managed import NOTHING_MANAGED, Managed
from isthmus.bridge.types.plan import Plan
from isthmus.conduct.around import Save
from isthmus.conduct.attempt import Attempt
from isthmus.conduct.hosted import all_tools
from isthmus.conduct.run import Run
from isthmus.errors import RequestRefused
from isthmus.gateway.attempts import Attempts
from isthmus.gateway.caller import Caller
from isthmus.gateway.chats import AsChat
from isthmus.gateway.choosing import Choosing, begin
from isthmus.gateway.counting import countable, without_window
from isthmus.gateway.directory import Candidate
from isthmus.gateway.history import Past, load_past
from isthmus.gateway.keeping import Keeping, Taken
from isthmus.gateway.local import Lane
from isthmus.gateway.locks import Lock
from isthmus.gateway.outline import Outline
from isthmus.gateway.planned import tell_planned
from isthmus.gateway.scopes import denied_tools, permitted
from isthmus.ports import Checker
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:  # loaded only where somebody has hooks
    from isthmus.conduct.review import Review
    from isthmus.gateway.gateway import Gateway
    from isthmus.hooks.hooked import Hooks


class Making:
    def __init__(self, gateway: Gateway, keeping: Keeping, checker: Checker, now: Callable[[], float]) -> None:
        self._gateway = gateway
        self._keeping = keeping
        self._checker = checker
        self._now = now
        self._choosing = Choosing(gateway.directory, gateway.store)

    async def make(
        self,
        caller: Caller,
        request: Request,
        strict: bool | None,
        noted: Sequence[CompatibilityDecision],
        id: str,
        created: float | None = None,
        lane: Lane | None = None,
        chat: AsChat | None = None,
    ) -> Run:
        gateway, asked_at = self._gateway, self._now()
        if request.body.get("store") is not False:  # first of all: what cannot be kept must not be asked, and paid, for
            await gateway.store.check()
        elif request.body.get("background"):
            raise RequestRefused(
                "`background` needs `store`: a response that nobody waits for must be kept; leave `store` out",
                code="invalid_value",
                param="store",
            )
        user, lock = (caller.owner, id), None
        gateway.users.begin(user)
        try:
            review, given = None, request
            if gateway.hooks is not None:
                streamed = lane is not None or request.body.get("stream") is True
                review, request, noted = await self._hooked(gateway.hooks, caller, request, noted, id, streamed)
            asked = request if request is not given else None
            candidates = await self.candidates(caller, request)
            lock = await gateway.conversations.lock(caller, request, id)
            history, request, at = await self.past(caller, request, lane)
            began = self._now() if created is None else created
            managed = await self._managed(caller, request, history, candidates)
            attempts = Attempts(
                gateway.settings, caller, request, history, strict, noted, id, began, lane is not None, managed
            )
            taken = Taken(request, id, caller.owner, began, history, at, chat)
            streamed = request.body.get("stream") is True and not request.body.get("background")
            outline = Outline() if taken.stored and streamed and not chat else None

            def prepare() -> tuple[Attempt, Sequence[Candidate], Save | None]:
                return *begin(attempts, candidates), self._keeping.saver(taken, outline, lane, lock)

            first, others, save = await gateway.aside.do(prepare, heavy=request.heavy)
            run = Run(
                id,
                first,
                others=attempts.others(others),
                behalf=caller.behalf,
                checker=self._checker,
                now=self._now,
                save=save,
                keep=gateway.lessons.keep,
                track=gateway.runs,
                observer=gateway.observer,
                total_timeout=candidates[0].served.total_timeout,
                aside=gateway.aside,
                release=partial(self._let_go_of, user, lock),
                hosted=gateway.hosted,
                gate=gateway.gates.of_run(caller, request.body),
                review=review,
            )
            run.recorder, run.asked = outline, asked
            await self._checker.admit(run.plan.contract)
            tell_planned(
                gateway.observer, caller, run, request.body, request.items, len(history), asked_at, self._now()
            )
        except BaseException:
            await self._let_go_of(user, lock)
            raise
        return run

    async def plan_only(
        self, caller: Caller, request: Request, noted: Sequence[CompatibilityDecision], id: str
    ) -> Plan:
        """What would be sent: all of it, however small the model's window is."""
        gateway, review = self._gateway, None
        if gateway.hooks is not None:
            review, request, noted = await self._hooked(gateway.hooks, caller, request, noted, id, False)
        candidate, *_ = await self.candidates(caller, request, peek=True)
        history, request, _ = await self.past(caller, request)
        managed = await self._managed(caller, request, history, [candidate])
        asked = countable(request, history)
        attempts = Attempts(gateway.settings, caller, asked, history, noted=noted, managed=managed)
        whole = replace(candidate, target=without_window(candidate.target))
        plan = await gateway.aside.do(lambda: attempts.plan(whole), heavy=request.heavy)
        await self._checker.admit(plan.contract)
        return plan if review is None else await review.foresee(plan)

    async def _hooked(
        self,
        hooks: Hooks,
        caller: Caller,
        request: Request,
        noted: Sequence[CompatibilityDecision],
        id: str,
        streamed: bool,
    ) -> tuple[Review, Request, Sequence[CompatibilityDecision]]:
        """What the operator's hooks have to say before anything is planned, and who asks them from there on."""
        from isthmus.conduct.review import before_plan
        from isthmus.gateway.hooked import context_of

        context = context_of(caller, id, request.body, streamed=streamed)
        return await before_plan(hooks, context, request, noted, self._gateway.settings.limits)

    async def _let_go_of(self, user: tuple[str, str], lock: Lock | None) -> None:
        self._gateway.users.end(user)
        if lock is not None:
            await lock.release()

    def past(self, caller: Caller, request: Request, lane: Lane | None = None) -> Awaitable[Past]:
        gateway = self._gateway
        return load_past(
            gateway.store,
            request,
            owner=caller.owner,
            max_chain=gateway.settings.max_chain,
            limits=gateway.settings.limits,
            aside=gateway.aside,
            local=None if lane is None else lane.turns,
        )

    async def _managed(
        self, caller: Caller, request: Request, history: Sequence[JsonObject], candidates: Sequence[Candidate]
    ) -> Managed:
        hosted = self._gateway.hosted
        if not hosted and caller.grant.tools is None:
            return NOTHING_MANAGED
        supports = [each.target.capabilities.tools for each in candidates]
        items, tools = (*history, *request.items), request.body.get("tools")
        denied = denied_tools(caller, all_tools(tools, items)) if caller.grant.tools is not None else {}
        return await hosted.managed_for(tools, items, caller.owner, supports, denied)

    async def candidates(self, caller: Caller, request: Request, *, peek: bool = False) -> list[Candidate]:
        """The model that is asked for and those that may take its place, each with what its server taught us; of these
        those that the caller may use."""
        gateway, taught = self._gateway, []
        named = gateway.directory.spelled(request.body.get("model"))
        for each in permitted(caller, named, await self._choosing.candidates(caller, request, peek=peek)):
            gateway.words.used(each.target.provider)
            target = await gateway.lessons.taught(each.target, each.served.provider)
            taught.append(each if target is each.target else replace(each, target=target))
        return taught
