"""The outbox of the memory store: it lives and dies with the process, like all that its notices tell of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from isthmus.ports import Backlog, Delivery, Notice
from isthmus.store.refusals import NO_RECEIVER, QUEUE_FULL


@dataclass(slots=True)
class _Entry:
    notice: Notice
    queued_at: float
    due_at: float
    """When it may be taken; of one that was given up, when that was."""
    attempts: int = 0
    holder: str = ""
    reason: str = ""
    given_up: bool = False

    def tell(self, now: float) -> Delivery:
        age, due = now - self.queued_at, self.due_at - now
        return Delivery(self.notice, self.attempts, age, due, self.reason, self.given_up)


class MemoryOutbox:
    """To be inherited by the store: these are methods of `ports.Outbox`."""

    _clock: Callable[[], float]

    def __init__(self) -> None:
        super().__init__()
        self._notices: dict[str, _Entry] = {}
        """In the order in which they came."""

    def _queue(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            if any(entry.notice.about == notice.about for entry in self._of(notice.endpoint)):
                continue
            now = self._clock()
            full = len(self._waiting(notice.endpoint)) >= notice.most
            reason = QUEUE_FULL if full else ""
            self._notices[notice.id] = _Entry(notice, now, now, reason=reason, given_up=full)
            if full:
                left = [entry for entry in self._of(notice.endpoint) if entry.given_up]
                for entry in sorted(left, key=_due_at)[: -notice.most]:
                    del self._notices[entry.notice.id]

    async def take_due(self, endpoint: str, *, holder: str, seconds: float, most: int) -> list[Delivery]:
        now = self._clock()
        due = sorted((entry for entry in self._waiting(endpoint) if entry.due_at <= now), key=_due_at)[:most]
        for entry in due:
            entry.attempts, entry.holder, entry.due_at = entry.attempts + 1, holder, now + seconds
        return [entry.tell(now) for entry in due]

    async def next_due(self, endpoint: str) -> float | None:
        due = min((entry.due_at for entry in self._waiting(endpoint)), default=None)
        return None if due is None else due - self._clock()

    async def delivered(self, id: str, *, holder: str) -> bool:
        if self._held(id, holder) is None:
            return False
        del self._notices[id]
        return True

    async def put_off(self, id: str, *, holder: str, seconds: float | None, reason: str) -> bool:
        if (entry := self._held(id, holder)) is None:
            return False
        entry.holder, entry.reason, entry.given_up = "", reason, seconds is None
        entry.due_at = self._clock() + (seconds or 0.0)
        return True

    async def backlog(self, endpoint: str) -> Backlog:
        waiting = len(self._waiting(endpoint))
        return Backlog(waiting, len(self._of(endpoint)) - waiting)

    async def deliveries(self, *, most: int = 1000) -> list[Delivery]:
        now = self._clock()
        order = sorted(self._notices.values(), key=lambda entry: (not entry.given_up, entry.due_at))
        return [entry.tell(now) for entry in order[:most]]

    async def deliver_again(self, id: str | None = None) -> int:
        now, chosen = self._clock(), self._chosen(id)
        for entry in chosen:
            entry.queued_at = entry.due_at = now
            entry.attempts, entry.holder, entry.given_up = 0, "", False
        return len(chosen)

    async def forget_deliveries(self, id: str | None = None) -> int:
        chosen = self._chosen(id)
        for entry in chosen:
            del self._notices[entry.notice.id]
        return len(chosen)

    async def tidy_outbox(self, *, known: frozenset[str], give_up: float, keep: float) -> int:
        now, changed = self._clock(), 0
        for entry in list(self._notices.values()):
            if entry.given_up:
                if entry.due_at <= now - keep:
                    del self._notices[entry.notice.id]
                    changed += 1
            elif entry.notice.endpoint not in known and entry.due_at <= now and entry.queued_at <= now - give_up:
                entry.given_up, entry.due_at, entry.holder, entry.reason = True, now, "", NO_RECEIVER
                changed += 1
        return changed

    def _of(self, endpoint: str) -> list[_Entry]:
        return [entry for entry in self._notices.values() if entry.notice.endpoint == endpoint]

    def _waiting(self, endpoint: str) -> list[_Entry]:
        return [entry for entry in self._of(endpoint) if not entry.given_up]

    def _held(self, id: str, holder: str) -> _Entry | None:
        entry = self._notices.get(id)
        return entry if entry is not None and holder and entry.holder == holder else None

    def _chosen(self, id: str | None) -> list[_Entry]:
        if id is None:
            return [entry for entry in self._notices.values() if entry.given_up]
        entry = self._notices.get(id)
        free = entry is not None and (not entry.holder or entry.due_at <= self._clock())
        return [entry] if entry is not None and free else []


def _due_at(entry: _Entry) -> float:
    return entry.due_at
