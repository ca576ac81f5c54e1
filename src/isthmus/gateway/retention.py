"""Old responses and events, and conversations if that is wanted, are forgotten: at the start, then every hour, by age
and size."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from isthmus.errors import IsthmusError
from isthmus.log import tell
from isthmus.ports import Pruned, Store

log = logging.getLogger("isthmus.store")


@dataclass(frozen=True, slots=True)
class Retention:
    keep_days: float = 0.0
    """0: for ever."""
    max_bytes: int = 0
    """0: no limit."""
    keep_events: float = 0.0
    """Seconds; 0: as long as their response."""
    keep_conversation_days: float = 0.0
    """0: for ever."""
    keep_usage_days: float = 0.0
    """0: for ever."""
    every: float = 3600.0

    @property
    def pause(self) -> float:
        """Seconds between two looks; shorter where events are to go sooner."""
        return min(self.every, max(60.0, self.keep_events)) if self.keep_events > 0 else self.every

    @property
    def limited(self) -> bool:
        times = (self.keep_days, self.keep_events, self.keep_conversation_days, self.keep_usage_days)
        return self.max_bytes > 0 or any(each > 0 for each in times)


async def prune_once(store: Store, rule: Retention, now: float) -> Pruned:
    """Forget what is over the limits now."""
    if (since := _ago(rule.keep_usage_days, now)) is not None:
        await store.prune_uses(before=datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d"))
    return await store.prune(
        older_than=_ago(rule.keep_days, now),
        max_bytes=rule.max_bytes or None,
        events_older_than=now - rule.keep_events if rule.keep_events > 0 else None,
        conversations_older_than=_ago(rule.keep_conversation_days, now),
    )


def _ago(days: float, now: float) -> float | None:
    return now - days * 86_400 if days > 0 else None


async def keep_pruning(store: Store, rule: Retention, now: Callable[[], float]) -> None:
    """Prune for as long as the gateway lives; a failure is logged and tried again the next time."""
    while True:
        try:
            pruned = await prune_once(store, rule, now())
            if pruned.responses or pruned.conversations:
                tell(
                    log,
                    "info",
                    "store.pruned",
                    responses=pruned.responses,
                    conversations=pruned.conversations,
                    bytes=pruned.bytes,
                )
        except IsthmusError as error:
            tell(log, "error", "store.prune.failed", reason=str(error))
        await asyncio.sleep(rule.pause)
