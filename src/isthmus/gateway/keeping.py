"""How the end of a run is kept before it is told: in the store, by the connection, or not at all.

In: a request that was taken, and what stands before it. Out: what a `Run` calls with its end; the answer is the end
that clients are told: another one where somebody else has ended the response, or where its conversation has moved on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from isthmus.bridge.limits import HEAVY_TEXT
from isthmus.bridge.parse import Request, conversation_of
from isthmus.bridge.tools.credentials import showable_items
from isthmus.bridge.turn import Done
from isthmus.bridge.types.plan import Plan
from isthmus.conduct.around import Save
from isthmus.conduct.aside import Aside
from isthmus.errors import RequestRefused
from isthmus.gateway.chats import AsChat, StoredChats
from isthmus.gateway.local import Items, Lane
from isthmus.gateway.locks import Lock
from isthmus.gateway.outline import Outline
from isthmus.gateway.runs import Runs
from isthmus.ports import APPENDING, UNFINISHED, Store, StoredResponse
from isthmus.protocol.json import JsonObject
from isthmus.protocol.large import LARGE, encode_large, encode_sized
from isthmus.protocol.response import weigh_response

_decode: Final[Callable[[bytes], Any]] = msgspec.json.Decoder().decode
_encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode


class Taken(msgspec.Struct, frozen=True):
    """A request on its way to become a response."""

    request: Request
    id: str
    owner: str
    began: float
    history: Sequence[JsonObject]
    at: int
    """Where its conversation stood."""
    chat: AsChat | None = None
    """Of what is kept as a chat completion."""

    @property
    def stored(self) -> bool:
        return self.request.body.get("store") is not False


class Keeping:
    def __init__(self, store: Store, runs: Runs, chats: StoredChats, aside: Aside) -> None:
        self._store = store
        self._runs = runs
        self._chats = chats
        self._aside = aside

    def saver(self, taken: Taken, outline: Outline | None, lane: Lane | None, lock: Lock | None) -> Save | None:
        """What keeps the end; `None`: nobody has to. The lock is given back before the end is told."""
        save: Save | None = None
        if taken.stored and taken.chat is not None:
            save = self._chats.saver(taken.chat, taken.owner, taken.began, heavy=taken.request.heavy)
        elif taken.stored:
            save = self._in_store(taken, outline)
        elif lane is not None:
            save = self._in_lane(taken, lane)
        return save if lock is None else _and_release(save, lock)

    def _in_lane(self, taken: Taken, lane: Lane) -> Save:
        """Keeps what is not stored where its next turn is asked for; what failed is nothing to go on from."""
        request = taken.request

        async def keep(done: Done, plan: Plan) -> Done:
            if done.response["status"] in APPENDING:

                def write() -> Items:
                    said = [*taken.history, *showable_items(request.items)]
                    made = [(_encode(item), True) for item in done.response["output"]]
                    return (*((_encode(item), False) for item in said), *made)

                lane.turns.keep(lane.name, taken.id, await self._aside.do(write, heavy=request.heavy))
            return done

        return keep

    def _in_store(self, taken: Taken, outline: Outline | None) -> Save:
        request = taken.request

        def items() -> tuple[bytes, ...]:
            encode = encode_large if request.size > LARGE else _encode
            return tuple(map(encode, showable_items(request.items)))

        # A large one is not kept in two shapes for as long as the model takes.
        inputs = items() if not request.heavy else ()

        def before() -> tuple[bytes, ...]:
            return tuple(map(_encode, taken.history))

        async def save(done: Done, plan: Plan) -> Done | None:
            record = StoredResponse(
                id=taken.id,
                response=await self._encoded(done),
                input=inputs or await self._aside.do(items, heavy=request.heavy),
                previous_response_id=request.body.get("previous_response_id"),
                created_at=taken.began,
                status=done.response["status"],
                model=plan.target.model,
                provider=plan.target.provider,
                owner=taken.owner,
                conversation=conversation_of(request.body),
                conversation_at=taken.at,
                memo=outline.pack() if outline is not None else b"",
            )
            # The parent may be one that only a connection knew.
            history = before if record.previous_response_id else None
            try:
                kept = await self._runs.save(record, done.events, history)
            except RequestRefused as moved:  # nobody may believe that it was said in its conversation
                done = done.unkept(moved.code, moved.message)
                record = replace(record, response=await self._encoded(done), status="failed", memo=b"")
                kept = await self._runs.save(record, done.events)
            if not kept:
                return await self._as_it_stands(taken, done)
            small = len(record.response) <= HEAVY_TEXT  # a large one is not kept in two shapes until its client has it
            return Done(done.response, done.events, done.failure, record.response) if small else done

        return save

    async def _encoded(self, done: Done) -> bytes:
        weight = weigh_response(done.response)
        return await self._aside.do(lambda: encode_sized(done.response, weight), heavy=weight > HEAVY_TEXT)

    async def _as_it_stands(self, taken: Taken, done: Done) -> Done | None:
        """The end of a response that was not ours to write any more: what is stored is what clients are told.

        `None`: whoever has taken it over has not ended it yet.
        """
        found = await self._store.load(taken.id, owner=taken.owner)
        if found is None:
            return done.unkept("response_not_found", "the response was deleted while it was being made")
        return done.replaced(_decode(found.response)) if found.status not in UNFINISHED else None


def _and_release(save: Save | None, lock: Lock) -> Save:
    async def keep(done: Done, plan: Plan) -> Done | None:
        try:
            return done if save is None else await save(done, plan)
        finally:
            await lock.release()

    return keep
