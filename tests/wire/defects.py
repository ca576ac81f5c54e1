"""Ways to spoil a correct object or stream, for tests that prove that the spoiling is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wire import samples

Json = dict[str, Any]
Change = Callable[[list[Json]], list[Json]]


def put(place: str, value: Any) -> Callable[[Json], None]:
    """Set `a.0.b`; deletes it with `...`."""
    *path, last = [int(step) if step.isdigit() else step for step in place.split(".")]

    def change(target: Json) -> None:
        holder: Any = target
        for step in path:
            holder = holder[step]
        if value is ...:
            del holder[last]
        else:
            holder[last] = value

    return change


def at(events: list[Json], kind: str, nth: int = 0) -> int:
    return [index for index, event in enumerate(events) if event["type"] == f"response.{kind}"][nth]


def without(kind: str, nth: int = 0) -> Change:
    def change(events: list[Json]) -> list[Json]:
        index = at(events, kind, nth)
        return samples.renumber(events[:index] + events[index + 1 :])

    return change


def again(kind: str, before: str | None = None) -> Change:
    """Send an event a second time, right behind itself or before another one."""

    def change(events: list[Json]) -> list[Json]:
        index = at(events, kind)
        where = index + 1 if before is None else at(events, before)
        return samples.renumber([*events[:where], events[index], *events[where:]])

    return change


def moved(kind: str, before: str) -> Change:
    def change(events: list[Json]) -> list[Json]:
        event = events.pop(at(events, kind))
        where = at(events, before)
        return samples.renumber([*events[:where], event, *events[where:]])

    return change


def altered(kind: str, place: str, value: Any, nth: int = 0) -> Change:
    def change(events: list[Json]) -> list[Json]:
        put(place, value)(events[at(events, kind, nth)])
        return events

    return change
