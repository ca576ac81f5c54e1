"""`Store` keeps responses to be fetched, continued and resumed; further ideas have Protocols of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any, Literal, Protocol

from isthmus.ports.chats import Chats
from isthmus.ports.conversations import Conversations
from isthmus.ports.keys import KeyBook
from isthmus.ports.learned import Learned
from isthmus.ports.leases import Leases
from isthmus.ports.outbox import Notice, Outbox
from isthmus.ports.records import (
    ANY_SIZE,
    DEFAULT_MAX_DEPTH,
    LOCAL,
    EventBatch,
    ItemPage,
    Pruned,
    StoredResponse,
    StoredTurn,
    StoreStats,
)
from isthmus.ports.requests import NamedRequests
from isthmus.ports.spending import Spending


class Store(Chats, Conversations, KeyBook, Leases, Learned, NamedRequests, Outbox, Spending, Protocol):
    """Stored responses. Safe for many concurrent calls on one event loop; every method may wait on IO.

    Several processes may share one store. Every method is one atomic step for all of them (`prune` and `export` are
    several). A store has no policy: times and limits are arguments. Its clock says when a lease or a hold ends,
    and nothing else: the processes that share a store have no other clock in common.

    Raises `RequestRefused` for what a client can fix, `StoreUnavailable` when the medium fails (deleted, replaced,
    read-only, full, locked by another process), and `StoreDamaged` when what is asked for is not what was written.
    Anything else is a bug. What is told as saved is where the next process looks for it, and what is handed out is what
    was saved. A medium that comes back is used again without anybody's doing.
    """

    async def check(self) -> None:
        """Raises `StoreUnavailable` if it is known, or seen at a glance, that nothing can be saved now.

        To be asked before anything costs something; it waits for nothing. That it says nothing is no promise.
        """

    async def save(
        self,
        record: StoredResponse,
        *,
        events: EventBatch | None = None,
        holder: str | None = None,
        history: Callable[[], tuple[bytes, ...]] | None = None,
        notices: Sequence[Notice] = (),
    ) -> bool:
        """Write or overwrite one response, with its last stream events and its notices in the same transaction.

        Returns once it is as durable as the store promises. False: nothing was written, because it was deleted
        meanwhile and stays deleted, or because it is no longer for `holder` to write: another one holds `run:<id>`
        now, or somebody has finished the response. A lease that ended and that nobody took does no harm.
        An id keeps its owner and its parent for life; changing either is a `ValueError`.

        `history` gives the items of all turns before this one. Was the parent forgotten while its child was being made
        (`prune`, not `delete`), the response is kept as the first turn of a chain, with them as its input.
        """

    async def load(self, id: str, *, owner: str = LOCAL) -> StoredResponse | None: ...

    async def delete(self, id: str, *, owner: str = LOCAL) -> bool:
        """Remove the content for good and remember the id. False: nothing there (or already deleted)."""

    async def chain(self, id: str, *, owner: str = LOCAL, max_depth: int = DEFAULT_MAX_DEPTH) -> list[StoredTurn]:
        """The turns that lead to `id` and `id` itself, oldest first.

        Refused with `previous_response_not_found` when a turn is unknown or deleted, and with
        `previous_response_chain_too_long` when there are more than `max_depth` of them.
        """

    async def items(self, ids: Sequence[str], *, owner: str = LOCAL, max_bytes: int = ANY_SIZE) -> dict[str, bytes]:
        """The items that `item_reference`s name, input or output, in the order asked; unknown ids are left out.

        An id used for two different items names the one that was stored first. Nothing is read behind the item with
        which they have more than `max_bytes`.
        """

    async def list_input_items(
        self,
        id: str,
        *,
        owner: str = LOCAL,
        limit: int = 20,
        after: str | None = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> ItemPage | None:
        """The items used to generate `id`: the history of earlier turns, input and output, then its own input.

        OpenAI documents the list as the items used to generate the response, so history belongs to it. An id
        that occurs twice is listed once. Earlier turns that were deleted are missing here, they do not fail it.
        None: no such response. An unknown `after` is refused.
        """

    async def update_status(
        self,
        id: str,
        status: str,
        *,
        owner: str = LOCAL,
        only_from: Collection[str] = (),
        fields: Mapping[str, Any] | None = None,
        notices: Sequence[Notice] = (),
    ) -> bool:
        """Change the status, here and inside the Response object, with other Response `fields` if given.

        Where it changes, the notices are queued in the same step.

        With `only_from` it changes only when the status is one of those: the check and the change are one step.
        """

    async def append_events(self, id: str, batch: EventBatch, *, owner: str = LOCAL, holder: str | None = None) -> bool:
        """Keep stream events for a later resume. Batches follow one another without gap (else `ValueError`).

        Bounded for each response: the oldest batches go first. False: no such response, or no longer for `holder` to
        write, as in `save`; stop recording. With a `holder`, the last events therefore go with the last `save`.
        """

    async def events(self, id: str, *, owner: str = LOCAL, after: int = -1) -> list[bytes]:
        """Stored events with a sequence number above `after`. Refused (`events_expired`) if some were dropped."""

    async def stats(self) -> StoreStats: ...

    async def prune(
        self,
        *,
        older_than: float | None = None,
        max_bytes: int | None = None,
        events_older_than: float | None = None,
        conversations_older_than: float | None = None,
    ) -> Pruned:
        """Forget chains not continued since `older_than`, then the longest unused until `max_bytes` hold.

        Of finished responses made before `events_older_than` the stream events go, first of all: reading them again is
        refused (`events_expired`).

        A turn that a kept turn builds on is kept, and so is one that is unfinished. Leases that have ended go.
        Conversations, and what is said in them, have a time of their own: those that were not used since
        `conversations_older_than` go, unless a turn is under way in them.
        """

    def export(self) -> AsyncIterator[bytes]:
        """Every response of every owner as one JSON object per line, oldest first, deleted ones left out."""

    async def aclose(self) -> None:
        """Finish what was accepted, then close. Calling it again does nothing."""
