"""The thread that makes traces and writes them, and the queue before it: whoever is served never waits for either.

In: drafts that are over; of small ones only bytes are kept (`packing`), for that takes less than to keep them. A draft
that finds no room is lost and counted, and so is one that cannot be written; the log says so once, and once more when
traces are written again. The thread gathers for a moment before it writes, so that many traces share one transaction,
and it lets the loop have its turn between any two of them. Between two groups it forgets what is too old or too much,
a little at a time.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final

import msgspec

from isthmus.errors import IsthmusError, StoreUnavailable
from isthmus.log import tell
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.cleaning import Cleaner
from isthmus.observe.traces.contents import NO_CONTENTS, Contents, may_keep
from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.packing import Packed, pack_draft
from isthmus.observe.traces.record import make_record
from isthmus.observe.traces.shapes import Shapes
from isthmus.observe.traces.told import Reader
from isthmus.ports.packed import PackedTrace, pack, plain, unpack_summary
from isthmus.ports.traced import Trace
from isthmus.ports.traces import TraceStore

log = logging.getLogger("isthmus.traces")

_GATHER: Final = 0.5
"""Seconds that the first trace of a group waits for others."""
_LARGEST_GROUP: Final = 512
_BREATH: Final = 128
"""Traces that are made without a pause: a millisecond. A pause costs as much as a trace or two, if others want one."""
_STEP: Final = 500
"""Traces that are forgotten in one transaction."""
_LOOK: Final = 60.0
"""Seconds between two looks at what is too old or too much."""
_IDLE: Final = 3600.0
_AGAIN: Final = 5.0
"""Seconds until what could not be forgotten is tried again, if nothing comes before."""
_SETTLE: Final = 2.0
"""Seconds that a reader waits for what was over before."""
MOST_FORGETTING: Final = 1_000
"""Deletes that wait for the thread; who deletes more waits for it, before anything is deleted."""
_PATIENCE: Final = 15
"""Times that such a one settles before it is told to come again."""
_FORGOTTEN: Final = 1_000
"""Deleted responses that are remembered, for traces that come later."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How much is kept, and for how long."""

    max_age: float = 0.0
    """Seconds; 0: for ever."""
    max_bytes: int = 0
    """0: no limit."""
    max_content: int = 1_000_000
    unstored: bool = False
    """Whether also the content of what its client wants nobody to store."""
    max_queued: int = 2_000
    max_queued_bytes: int = 64_000_000


@dataclass(frozen=True, slots=True)
class _Forget:
    owner: str
    response: str


_Item = Draft | Packed | _Forget | threading.Event | None
_DRAFTS: Final = (Packed, Draft)
_weight: Final = attrgetter("weight")


class Recorder:
    def __init__(
        self, store: TraceStore, bodies: Bodies, cleaner: Cleaner, keeping: Keeping, *, gather: float = _GATHER
    ) -> None:
        self.store = store
        self.kept = 0
        self.lost = 0
        self.cleaner = cleaner
        self._bodies = bodies
        self._reader = Reader(bodies)
        self._shapes = Shapes(bodies, self._reader)
        self._keeping = keeping
        self._most, self._most_bytes = keeping.max_queued, keeping.max_queued_bytes
        self._enough = min(_LARGEST_GROUP, max(1, self._most // 2))
        """So many need not wait for others."""
        self._gather = gather
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._put = 0
        """Bytes that went in, and …"""
        self._taken = 0
        """… out again: each is counted by one thread only."""
        self._asked = self._done = 0
        """Drafts and forgettings that went in, and those that are dealt with: likewise."""
        self._forgetting = self._forgot = 0
        """Of these, the forgettings."""
        self.delayed = 0
        """Deletes that found too many others before them, and waited."""
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None
        self._forgotten: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._unforgotten: deque[_Forget] = deque()
        """What could not be forgotten yet; with what waits in the queue, not more than `MOST_FORGETTING` allows."""
        self._troubled = False
        self._looked = time.monotonic()
        self._more = False
        """Whether the last look did not come to its end."""

    # ── on the loop ────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="isthmus-traces", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Drafts that are not written yet."""
        return self._queue.qsize()

    def put(self, draft: Draft) -> None:
        """Take it, or count it as lost; at once."""
        held, weight, waiting = self._put - self._taken, draft.weight, self._queue.qsize()
        if held and (held + weight > self._most_bytes or waiting >= self._most):
            self.lost += 1
            return
        if waiting == self._enough:
            self._hurry.set()
        self._put += weight
        self._asked += 1
        self._queue.put(pack_draft(draft) or draft)

    async def room_to_forget(self) -> None:
        """Wait until not too many forgettings wait themselves: none may be lost, so none is taken beyond that."""
        if self._forgetting - self._forgot < MOST_FORGETTING:
            return
        self.delayed += 1
        for _ in range(_PATIENCE):
            await self.settle()
            if self._forgetting - self._forgot < MOST_FORGETTING:
                return
        raise StoreUnavailable("too many deletes wait until the traces can be written; nothing was deleted, try again")

    def forget(self, owner: str, response: str) -> None:
        self._asked += 1
        self._forgetting += 1
        self._queue.put(_Forget(owner, response))

    async def settle(self) -> None:
        """Until all that was put before is written, or could not be."""
        if self._asked == self._done:
            return
        written = threading.Event()
        self._queue.put(written)
        self._hurry.set()
        await asyncio.to_thread(written.wait, _SETTLE)

    async def aclose(self) -> None:
        self._queue.put(None)
        self._hurry.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        self.store.close()

    # ── beside it ──────────────────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        while True:
            try:
                first = self._queue.get(timeout=self._until_next())
            except queue.Empty:
                self._forget_now()
                self._tidy()
                continue
            if isinstance(first, _DRAFTS):
                self._hurry.wait(self._gather)
            self._hurry.clear()
            if not self._take(first):
                return
            self._forget_now()
            if self._more or time.monotonic() - self._looked > _LOOK:
                self._tidy()

    def _until_next(self) -> float:
        """Seconds after which there is something to do, even if nothing comes."""
        if self._more:
            return 0.0
        return _AGAIN if self._unforgotten else _LOOK if self.kept else _IDLE

    def _take(self, item: _Item) -> bool:
        """This one and all that wait; False: it is the end."""
        group: list[Draft | Packed] = []
        while True:
            if isinstance(item, _DRAFTS):
                group.append(item)
            else:
                self._record(group)
                group = []
                if item is None:
                    return False
                if isinstance(item, _Forget):
                    self._forget(item)
                else:
                    item.set()
            if len(group) >= _LARGEST_GROUP:
                self._record(group)
                group = []
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                self._record(group)
                return True

    def _record(self, group: Sequence[Draft | Packed]) -> None:
        traces: list[PackedTrace] = []
        for start in range(0, len(group), _BREATH):
            time.sleep(0)  # whoever waits for the interpreter gets it
            some = group[start : start + _BREATH]
            traces += filter(None, map(self._make, some))
            self._taken += sum(map(_weight, some))
        if self._forgotten:
            traces = list(map(self._without_forgotten, traces))
        if traces and self._attempt(lambda: self.store.keep(self.cleaner.clean(traces))):
            self.kept += len(traces)
        else:
            self.lost += len(traces)
        self._done += len(group)

    def _make(self, draft: Draft | Packed) -> PackedTrace | None:
        keeping, contents, outline = self._keeping, NO_CONTENTS, None
        try:
            if isinstance(draft, Packed):
                made = self._shapes.make(draft)
                if made is not None:
                    return made
            elif draft.full:
                contents = Contents(kept=may_keep(draft, unstored=keeping.unstored), most=keeping.max_content)
            outline, told = self._reader.read(draft, contents)
            return make_record(outline, told, self._bodies, "full" if contents.kept else "metadata")
        except Exception as error:  # one that cannot be told must not keep the others from it
            self.lost += 1
            tell(log, "error", "trace.broken", id="" if outline is None else outline.own.id, trace=error)
            return None

    def _without_forgotten(self, trace: PackedTrace) -> PackedTrace:
        filed = trace.filed
        if (filed.owner, filed.response) not in self._forgotten:
            return trace
        summary = unpack_summary(plain(trace).head)
        return pack(Trace(summary=msgspec.structs.replace(summary, deleted=True, capture="metadata")))

    def _forget(self, item: _Forget) -> None:
        self._forgotten[item.owner, item.response] = None
        if len(self._forgotten) > _FORGOTTEN:
            self._forgotten.popitem(last=False)
        self._unforgotten.append(item)
        self._forget_now()

    def _forget_now(self) -> None:
        """All that were asked for; what cannot be written now is tried again, for none may be lost."""
        while self._unforgotten:
            item = self._unforgotten[0]
            if not self._attempt(partial(self.store.forget, item.owner, item.response)):
                return
            self._unforgotten.popleft()
            self._done += 1
            self._forgot += 1

    def _tidy(self) -> None:
        """One step of forgetting."""
        keeping, self._looked, self._more = self._keeping, time.monotonic(), False
        if not keeping.max_age and not keeping.max_bytes:
            return
        older_than = time.time() - keeping.max_age if keeping.max_age else None

        def prune() -> None:
            gone = self.store.prune(older_than=older_than, max_bytes=keeping.max_bytes or None, most=_STEP)
            self._more = gone > 0

        self._attempt(prune)

    def _attempt(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except Exception as error:
            if not self._troubled:
                known = isinstance(error, IsthmusError)
                tell(log, "error", "traces.unavailable", reason=error, trace=None if known else error)
            self._troubled = True
            return False
        if self._troubled:
            self._troubled = False
            tell(log, "warning", "traces.available", lost=self.lost)
        return True
