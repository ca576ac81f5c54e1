"""What the gateway can do, free of HTTP: create, fetch, continue, cancel and delete responses.

In: checked requests. Out: runs to iterate, stored objects, or errors that say whose turn it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from isthmus.bridge.assemble.speech import Seal
from isthmus.bridge.bounds import DEFAULT_BOUNDS, Bounds
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.envelope import seal
from isthmus.bridge.lessons import learn, leave_out, tell_lessons
from isthmus.bridge.parse import Request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.tools.credentials import showable_item
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.plan import ANY_CLIENT, ClientProfile, Host, Lesson, Plan
from isthmus.errors import RequestRefused
from isthmus.gateway.background import Background
from isthmus.gateway.directory import Candidate, Directory
from isthmus.gateway.history import load_history, resolve_references
from isthmus.gateway.lessons import Lessons
from isthmus.gateway.run import Attempt, Run, Running
from isthmus.ports import UNFINISHED, Checker, ItemPage, Store, StoredResponse
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import FinishedResponse, Response

log = logging.getLogger("isthmus.gateway")

HONOURED: Final = frozenset({"metadata", "store", "background", "previous_response_id"})
"""Request parameters that the gateway takes care of itself."""

_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Settings:
    strict: bool = False
    repair_budget: int = 1
    max_chain: int = 10_000
    envelope_key: bytes | None = None
    bounds: Bounds = DEFAULT_BOUNDS
    keep_lessons: float = 604_800.0


class Gateway:
    def __init__(
        self,
        directory: Directory,
        store: Store,
        *,
        checker: Checker,
        settings: Settings = Settings(),  # noqa: B008  # frozen
        now: Callable[[], float],
        new_id: Callable[[str], str],
    ) -> None:
        self.directory = directory
        self.store = store
        self.settings = settings
        self._checker = checker
        self._now = now
        self._new_id = new_id
        self.running = Running()
        self.draining = False
        self.background = Background(store)
        self.lessons = Lessons(store, keep=settings.keep_lessons, now=now)

    # ── responses ──────────────────────────────────────────────────────────────────────────────────

    async def create(
        self,
        request: Request,
        *,
        owner: str = "",
        strict: bool | None = None,
        noted: Sequence[CompatibilityDecision] = (),
        client: ClientProfile = ANY_CLIENT,
    ) -> Run:
        """Plan a response; nothing is sent before the run is iterated. A schema is tried before that."""
        candidates = await self._candidates(request)
        history = await load_history(self.store, request, owner=owner, max_chain=self.settings.max_chain)
        request = await resolve_references(self.store, request, owner=owner)

        def attempt(
            candidate: Candidate, response_id: str, created: float, dropped: frozenset[str] = frozenset()
        ) -> Attempt:
            plan = self._plan(request, candidate, history, strict, noted, client, dropped)
            turn = Turn(plan, response_id=response_id, now=int(created), seal=self._sealer())

            def without(lesson: Lesson) -> Attempt:
                taught = replace(candidate, target=learn(candidate.target, [lesson]))
                return attempt(taught, response_id, created, dropped | {lesson.parameter})

            return Attempt(plan, turn, candidate.served.backend, without)

        run = self._run(request, candidates, attempt, owner)
        await self._checker.admit(run.plan.contract)
        return run

    async def create_in_background(self, run: Run, request: Request, *, owner: str = "") -> Response:
        """Start a run that goes on without its client; the answer is the queued response."""
        if request.body.get("store") is False:
            raise RequestRefused(
                "`background` needs `store`: a response that nobody waits for must be kept; leave `store` out",
                code="invalid_value",
                param="store",
            )
        response = run.queued()
        await self.background.start(
            run,
            StoredResponse(
                id=run.id,
                response=_encode(response),
                input=tuple(_encode(showable_item(item)) for item in request.items),
                previous_response_id=request.body.get("previous_response_id"),
                created_at=response["created_at"],
                status="queued",
                model=run.plan.target.model,
                provider=run.plan.target.provider,
                owner=owner,
            ),
        )
        return response

    async def retrieve(self, id: str, *, owner: str = "") -> StoredResponse:
        found = await self.store.load(id, owner=owner)
        if found is None:
            raise not_found(id)
        return found

    async def delete(self, id: str, *, owner: str = "") -> None:
        run = self.running.get(id)
        if run is not None:
            run.stop("cancelled")
            await self.background.ended(id)
        if not await self.store.delete(id, owner=owner):
            raise not_found(id)

    async def cancel(self, id: str, *, owner: str = "") -> StoredResponse:
        """Stop a response that is being made; one that has ended is given back as it is."""
        found = await self.retrieve(id, owner=owner)
        run = self.running.get(id)
        if run is not None and found.status in UNFINISHED:
            run.stop("cancelled")
            await self.background.ended(id)
            found = await self.retrieve(id, owner=owner)
        return found

    async def input_items(
        self, id: str, *, owner: str = "", limit: int = 20, after: str | None = None, order: Any = "desc"
    ) -> ItemPage:
        page = await self.store.list_input_items(id, owner=owner, limit=limit, after=after, order=order)
        if page is None:
            raise not_found(id)
        return page

    async def plan_only(self, request: Request, *, owner: str = "") -> Plan:
        """What would be sent, without sending it."""
        candidate, *_ = await self._candidates(request)
        history = await load_history(self.store, request, owner=owner, max_chain=self.settings.max_chain)
        request = await resolve_references(self.store, request, owner=owner)
        plan = self._plan(request, candidate, history, None, ())
        await self._checker.admit(plan.contract)
        return plan

    # ── life ───────────────────────────────────────────────────────────────────────────────────────

    async def recover(self) -> int:
        """After a crash: what was in progress then can never end by itself. Returns how many there were."""
        left = await self.store.unfinished()
        for record in left:
            error = {"code": "server_error", "message": "the gateway stopped while this response was being made"}
            await self.store.update_status(
                record.id, "failed", owner=record.owner, only_from=UNFINISHED, fields={"error": error}
            )
        return len(left)

    async def drain(self, grace: float, *, last_words: float = 2.0) -> None:
        """Let running responses finish; after `grace` seconds end the rest, each with its terminal event.

        Clients have `last_words` seconds to take it.
        """
        self.draining = True
        try:
            async with asyncio.timeout(grace):
                await self.running.none()
        except TimeoutError:
            log.warning("gateway.drain.grace_over running=%d", len(self.running))
            self.running.stop("shutdown")
            await self._let_go(last_words)

    async def _let_go(self, last_words: float) -> None:
        """Every run was stopped. A client that does not read cannot be told: it is cut off."""
        try:
            async with asyncio.timeout(last_words):
                await self.running.none()
        except TimeoutError:
            log.warning("gateway.drain.abandoned running=%d", len(self.running))
            self.running.abandon()
            try:
                async with asyncio.timeout(5):
                    await self.running.none()
            except TimeoutError:
                log.error("gateway.drain.stuck running=%d", len(self.running))

    async def aclose(self) -> None:
        self.running.stop("shutdown")
        await self.background.aclose()
        for served in self.directory.served.values():
            await served.backend.aclose()
        await self.store.aclose()

    # ── making a run ───────────────────────────────────────────────────────────────────────────────

    async def _candidates(self, request: Request) -> list[Candidate]:
        """The model that is asked for and those that may take its place, each with what its server taught us."""
        first = self.directory.find(request.body.get("model"))
        found = (first, *self.directory.after(first))
        return [replace(each, target=await self.lessons.taught(each.target)) for each in found]

    def _plan(
        self,
        request: Request,
        candidate: Candidate,
        history: Sequence[JsonObject],
        strict: bool | None,
        noted: Sequence[CompatibilityDecision],
        client: ClientProfile = ANY_CLIENT,
        dropped: frozenset[str] = frozenset(),
    ) -> Plan:
        """`dropped`: fields that the server refused a moment ago; this asking goes without them altogether."""
        settings, target = self.settings, candidate.target
        if target.lessons:
            noted = (*noted, *tell_lessons(request.body, target))
        strictly = settings.strict if strict is None else strict
        host = Host(HONOURED, strictly, settings.repair_budget, settings.bounds)
        return plan_request(
            request,
            leave_out(target, dropped),
            host,
            history=history,
            envelope_key=settings.envelope_key,
            noted=noted,
            client=client,
        )

    def _run(
        self,
        request: Request,
        candidates: Sequence[Candidate],
        attempt: Callable[[Candidate, str, float], Attempt],
        owner: str,
    ) -> Run:
        response_id = self._new_id("resp")
        created = self._now()

        def others() -> Iterator[Attempt]:
            for other in candidates[1:]:
                try:
                    yield attempt(other, response_id, created)
                except RequestRefused as error:
                    target = other.target
                    log.warning("fallback.refused provider=%s model=%s reason=%s", target.provider, target.model, error)

        stored = request.body.get("store") is not False
        inputs = tuple(_encode(showable_item(item)) for item in request.items) if stored else ()

        async def save(response: FinishedResponse, plan: Plan) -> None:
            if stored:
                await self.store.save(
                    StoredResponse(
                        id=response_id,
                        response=_encode(response),
                        input=inputs,
                        previous_response_id=request.body.get("previous_response_id"),
                        created_at=created,
                        status=response["status"],
                        model=plan.target.model,
                        provider=plan.target.provider,
                        owner=owner,
                    )
                )

        return Run(
            response_id,
            attempt(candidates[0], response_id, created),
            others=others(),
            running=self.running,
            checker=self._checker,
            save=save,
            now=self._now,
            total_timeout=candidates[0].served.total_timeout,
            keep=self.lessons.keep,
        )

    def _sealer(self) -> Seal | None:
        key = self.settings.envelope_key
        return None if key is None else lambda sealed: seal(sealed, key)


def not_found(id: str) -> RequestRefused:
    return RequestRefused(f"no response `{id}` is stored here", code="response_not_found", param="response_id")
