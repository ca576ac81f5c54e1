"""What the gateway can do, free of HTTP: create, fetch, continue, cancel and delete responses.

In: checked requests. Out: runs to iterate, stored objects, or errors that say whose turn it is.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.history.compact import TRIGGER, user_messages
from isthmus.bridge.limits import HEAVY_TEXT, RequestLimits
from isthmus.bridge.parse import Request, conversation_of
from isthmus.bridge.tools.credentials import showable_items
from isthmus.bridge.types.plan import Plan
from isthmus.conduct.aside import Aside
from isthmus.conduct.hosted import NO_TOOLS, Hosted
from isthmus.conduct.run import Run
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.gateway.again import Asked, note, recall
from isthmus.gateway.caller import Caller
from isthmus.gateway.chats import AsChat, StoredChats, is_chat
from isthmus.gateway.conversations import Conversations
from isthmus.gateway.directory import Directory
from isthmus.gateway.draining import drain_runs
from isthmus.gateway.gates import Gates
from isthmus.gateway.keeping import Keeping
from isthmus.gateway.lessons import Lessons
from isthmus.gateway.local import Lane
from isthmus.gateway.locks import Locks
from isthmus.gateway.making import Making
from isthmus.gateway.named import Named
from isthmus.gateway.offer import Offer
from isthmus.gateway.orphans import Orphans
from isthmus.gateway.resume import follow_run, is_background, read_events
from isthmus.gateway.runs import Runs
from isthmus.gateway.settings import Settings
from isthmus.gateway.users import Users
from isthmus.gateway.words import Words
from isthmus.ports import UNFINISHED, Checker, ItemPage, Observer, Store, StoredResponse, run_lease
from isthmus.ports.admission import Admission
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import Response

if TYPE_CHECKING:  # loaded only where there are receivers, or vectors or images are asked for
    from isthmus.gateway.deliver import Deliveries
    from isthmus.gateway.embeddings import Embeddings
    from isthmus.gateway.images import Images
    from isthmus.hooks.hooked import Hooks
    from isthmus.ports.traces import Tracing
    from isthmus.tools.images import Studio
    from isthmus.tools.search.standalone import StandaloneSearch

log = logging.getLogger("isthmus.gateway")

_T = TypeVar("_T")
_encode: Final = msgspec.json.Encoder().encode


_LAST_DELIVERIES: Final = 5.0
"""Seconds that notices of what has ended have to be delivered before the end; the next gateway delivers the rest."""
_NOT_FOR_COMPACT: Final = ("previous_response_id", "conversation", "stream", "background")
"""Of a request to compact: the past is loaded by then, and the answer comes in one piece."""


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
        observer: Observer | None = None,
        aside: Aside | None = None,
        deliveries: Deliveries | None = None,
        tracing: Tracing | None = None,
        hosted: Hosted = NO_TOOLS,
        search: StandaloneSearch | None = None,
        studio: Callable[[], Studio] | None = None,
        admission: Callable[[], Admission] | None = None,
        hooks: Hooks | None = None,
        before: Gateway | None = None,
    ) -> None:
        """`before`: whose place it takes, on the same store. What that one has begun goes on there; runs, leases and
        locks are known to both."""
        self.directory = directory
        self.store = store
        self.settings = settings
        self._checker = checker
        self._now = now
        self._new_id = new_id
        self.observer = observer
        self.aside = aside or Aside()
        self.deliveries = deliveries
        self.tracing = tracing
        self.hosted = hosted
        self._search = search
        self._studio = studio
        self.hooks = hooks
        self.users = Users()
        """Who still needs this one."""
        self.retiring = False
        """Whether another one has taken its place."""
        if before is None:
            announcer = deliveries.announcer if deliveries is not None else None
            lease = settings.runs.lease
            self.runs = Runs(store, new_id("gw"), settings.runs, self.aside, announcer)
            self._locks = Locks(store, self.runs.holder, lease=lease, under_way=self.runs.under_way)
            self.orphans = Orphans(store, self.runs, self._make_again, lease=lease)
            self.gates = Gates(admission)
        else:
            self.runs, self._locks, self.orphans = before.runs, before._locks, before.orphans
            self.gates = before.gates
        self.chats = StoredChats(store, self.aside, tracing)
        self.named = Named(store, self._locks, keep=settings.keep_named, now=now)
        self.conversations = Conversations(store, self._locks, settings, now=now, new_id=new_id)
        keeping = Keeping(store, self.runs, self.chats, self.aside)
        self.lessons = Lessons(store, keep=settings.keep_lessons, now=now)
        self.words = Words(directory.served, store, refresh=settings.refresh_words, keep=settings.keep_lessons, now=now)
        self.offer = Offer(directory, self.words)
        self._making = Making(self, keeping, checker, now)

    @cached_property
    def embeddings(self) -> Embeddings:
        """Loaded when the first vectors are asked for."""
        from isthmus.gateway.embeddings import Embeddings

        settings, now, new_id = self.settings, self._now, self._new_id
        return Embeddings(
            self.directory,
            self.words,
            self.runs,
            settings,
            now=now,
            new_id=new_id,
            observer=self.observer,
            gates=self.gates,
            hooks=self.hooks,
        )

    @cached_property
    def search(self) -> StandaloneSearch:
        """Codex's own search; where nobody searches here, one that says so."""
        from isthmus.tools.search.refs import Refs
        from isthmus.tools.search.standalone import StandaloneSearch

        return self._search or StandaloneSearch(None, None, Refs(0))

    @cached_property
    def images(self) -> Images:
        """Loaded when the first images are asked for."""
        from isthmus.gateway.images import Images

        return Images(
            self._studio() if self._studio is not None else None,
            self.runs,
            self.settings,
            now=self._now,
            new_id=self._new_id,
            observer=self.observer,
            gates=self.gates,
            hooks=self.hooks,
        )

    @property
    def searches(self) -> bool:
        """Whether somebody searches the web here."""
        return self._search is not None

    @property
    def draws(self) -> str:
        """Who draws images, as `provider/model`; empty: nobody does."""
        studio = self.images.studio if self._studio is not None else None
        return "" if studio is None else f"{studio.target.provider}/{studio.target.model}"

    @property
    def draining(self) -> bool:
        """Whether nothing new is begun any more."""
        return self.runs.draining

    @draining.setter
    def draining(self, draining: bool) -> None:
        self.runs.draining = draining

    async def read(self, raw: bytes | bytearray, reader: Callable[[bytes | bytearray, RequestLimits], _T]) -> _T:
        """Have a door read a request, where that delays nobody else."""
        if len(raw) <= HEAVY_TEXT:
            return reader(raw, self.settings.limits)
        return await self.aside.do(lambda: reader(raw, self.settings.limits), heavy=True)

    # ── responses ──────────────────────────────────────────────────────────────────────────────────

    def create(
        self,
        caller: Caller,
        request: Request,
        *,
        strict: bool | None = None,
        noted: Sequence[CompatibilityDecision] = (),
        lane: Lane | None = None,
        chat: AsChat | None = None,
    ) -> Coroutine[Any, Any, Run]:
        """Plan a response; nothing is sent before the run is iterated. A schema is tried before that.

        `lane`: where it is asked for, if that remembers what is not stored. `chat`: how it is kept, if as a completion.
        """
        return self._making.make(caller, request, strict, noted, self._new_id("resp"), lane=lane, chat=chat)

    def plan_only(
        self, caller: Caller, request: Request, *, noted: Sequence[CompatibilityDecision] = ()
    ) -> Coroutine[Any, Any, Plan]:
        """What would be sent, without sending it: all of it, however small the model's window is."""
        return self._making.plan_only(caller, request, noted, self._new_id("resp"))

    async def compact(
        self,
        caller: Caller,
        request: Request,
        *,
        strict: bool | None = None,
        noted: Sequence[CompatibilityDecision] = (),
    ) -> tuple[Run, list[JsonObject]]:
        """A run whose answer is the sealed summary of a conversation, and the user's messages, which stand before it.

        Nothing is stored: its id is no parent. The conversation goes on in a new chain.
        """
        if not request.body.get("model"):
            raise RequestRefused(
                "`model` is missing; name the model that the conversation goes on with",
                code="missing_required_parameter",
                param="model",
            )
        history, request, _ = await self._making.past(caller, request)
        items = (*history, *(item for item in request.items if item["type"] != TRIGGER))
        kept: Any = {name: value for name, value in request.body.items() if name not in _NOT_FOR_COMPACT}
        asked = replace(request, body={**kept, "store": False}, items=(*items, {"type": TRIGGER}))
        return await self.create(caller, asked, strict=strict, noted=noted), user_messages(items)

    async def create_in_background(
        self, caller: Caller, run: Run, request: Request, *, strict: bool | None = None
    ) -> Response:
        """Start a run that goes on without its client; the answer is the queued response."""
        response = run.queued()
        request = run.asked or request
        record = StoredResponse(
            id=run.id,
            response=_encode(response),
            input=tuple(map(_encode, showable_items(request.items))),
            previous_response_id=request.body.get("previous_response_id"),
            created_at=response["created_at"],
            status="queued",
            model=run.plan.target.model,
            provider=run.plan.target.provider,
            owner=caller.owner,
            conversation=conversation_of(request.body),
            memo=note(Asked(caller, request, strict)),
        )
        if not await self.runs.start(run, record):
            raise IsthmusError(f"another gateway makes `{run.id}` already", code="server_error")
        return response

    async def retrieve(self, caller: Caller, id: str) -> StoredResponse:
        found = None if is_chat(id) else await self.store.load(id, owner=caller.owner)
        if found is None:
            raise not_found(id)
        return found

    async def delete(self, caller: Caller, id: str) -> None:
        """Forget a response; one that is being made, here or by another gateway, is ended first."""
        if is_chat(id):
            raise not_found(id)
        if self.tracing is not None:
            await self.tracing.room_to_forget()
        run = self.runs.get(caller.owner, id)
        if run is not None:
            await self.runs.end(run)
        elif await self.store.signal(run_lease(id), "delete", owner=caller.owner):
            await self._until_ended(caller, id, "delete")
        if not await self.store.delete(id, owner=caller.owner) and run is None:
            raise not_found(id)
        if self.tracing is not None:
            self.tracing.forget(caller.owner, id)

    async def cancel(self, caller: Caller, id: str) -> StoredResponse:
        """Stop a background response, whoever makes it; one that has ended is given back as it is."""
        run = self.runs.get(caller.owner, id)
        found = None if is_chat(id) else await self.store.load(id, owner=caller.owner)
        if found is None and run is None:
            raise not_found(id)
        if found is None or not is_background(found):
            raise RequestRefused(
                f"`{id}` was not made in the background, so it cannot be cancelled; close its connection instead",
                code="not_cancellable",
                param="response_id",
            )
        if found.status not in UNFINISHED:
            return found
        if run is not None:
            await self.runs.end(run)
        return await self._until_ended(caller, id, "cancel")

    async def input_items(
        self, caller: Caller, id: str, *, limit: int = 20, after: str | None = None, order: Any = "desc"
    ) -> ItemPage:
        if is_chat(id):
            raise not_found(id)
        page = await self.store.list_input_items(id, owner=caller.owner, limit=limit, after=after, order=order)
        if page is None:
            raise not_found(id)
        return page

    async def follow(self, caller: Caller, id: str, after: int = -1) -> AsyncIterator[list[bytes]]:
        """The events of a stored response above sequence number `after`: those that were told, then those to come."""
        found = await self.retrieve(caller, id)
        followed = self.runs.follow(caller.owner, id, after)
        if followed is not None:
            return follow_run(self.store, found, followed, after)
        return await read_events(self.store, found, after, specified=caller.client.specified)

    async def _until_ended(self, caller: Caller, id: str, word: str) -> StoredResponse:
        """Have it ended by the gateway that makes it; here, if that is dead and its lease has run out."""
        deadline = self._now() + self.settings.runs.lease * 2
        while (found := await self.retrieve(caller, id)).status in UNFINISHED:
            # Again each time: a lease that was lost and taken anew has forgotten what it was told.
            told = await self.store.signal(run_lease(id), word, owner=caller.owner)
            mark = await self.store.watch(0)
            ended = None if told else await self.orphans.end(found, "cancelled")
            if ended is not None:
                return ended
            if (found := await self.retrieve(caller, id)).status not in UNFINISHED or self._now() >= deadline:
                return found
            await self.store.watch(1.0, since=mark)
        return found

    # ── life ───────────────────────────────────────────────────────────────────────────────────────

    async def drain(self, grace: float, *, last_words: float = 2.0) -> None:
        """Let running responses finish; after `grace` seconds end the rest, each with its terminal event.

        Clients have `last_words` seconds to take it. Then receivers are told what can be told at once.
        """
        self.draining = True
        await drain_runs(self.runs, grace, last_words)
        if self.deliveries is not None:
            await self.deliveries.settle(min(grace, _LAST_DELIVERIES))

    def take_place(self, before: Gateway) -> None:
        """From now on it is the one that serves; what others left behind is made again with its settings."""
        before.retiring = True
        self.orphans.make_again = self._make_again
        self.words.start()

    async def retire(self) -> None:
        """Closes what is its alone."""
        await self.words.aclose()
        await self.hosted.aclose()

    async def aclose(self) -> None:
        """Ends its runs and closes its store; the ways to the providers belong to whoever opened them."""
        await self.words.aclose()
        await self.runs.aclose()
        if self.deliveries is not None:
            await self.deliveries.aclose()
        await self.hosted.aclose()
        await self._locks.aclose()
        await self.gates.aclose()
        self.aside.close()
        await self.store.aclose()

    # ── making a run ───────────────────────────────────────────────────────────────────────────────

    async def _make_again(self, record: StoredResponse) -> bool:
        """Make a background response that its gateway left behind, under its own id."""
        asked = recall(record)
        if asked is None:
            return False
        if self.draining:
            raise IsthmusError("the gateway is shutting down", code="server_is_overloaded")
        run = await self._making.make(asked.caller, asked.request, asked.strict, (), record.id, record.created_at)
        # Once: what is not noted is not made again, should it have been the request that took its gateway down.
        await self.runs.start(run, replace(record, memo=b""))
        return True


def not_found(id: str) -> RequestRefused:
    return RequestRefused(f"no response `{id}` is stored here", code="response_not_found", param="response_id")
