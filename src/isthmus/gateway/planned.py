"""The fact that a request was planned: what was asked, what was decided, and how long both took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from isthmus.conduct.life import Decided
from isthmus.gateway.caller import Caller
from isthmus.ports import Observer, Planned
from isthmus.protocol.json import JsonObject


class Made(Protocol):
    """A run, or an embedding on its way."""

    @property
    def id(self) -> str: ...

    @property
    def plan(self) -> Decided: ...


def tell_planned(
    observer: Observer | None,
    caller: Caller,
    made: Made,
    asked: Mapping[str, Any],
    items: Sequence[JsonObject],
    history: int,
    read_at: float,
    now: float,
) -> None:
    """`read_at`: when the request was read, by the clock that `caller.asked_at` is of."""
    if observer is None:
        return
    fact = Planned(
        id=made.id,
        request=caller.request,
        owner=caller.owner,
        plan=made.plan,
        asked=asked,
        items=items,
        history=history,
        parse_seconds=read_at - caller.asked_at if caller.asked_at else None,
        plan_seconds=now - read_at,
        background=bool(asked.get("background")),
    )
    observer.tell(fact)
