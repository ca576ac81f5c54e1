"""A stored response told again as events: as they were told, then as they come.

Events of a background response are in the store. It may be made by another gateway just now: then the store is read
again whenever something in it has changed. What is over and whose events were not kept is told anew from its items.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from isthmus.bridge.assemble.retell import replay_events
from isthmus.errors import RequestRefused
from isthmus.gateway.outline import tell_as_told
from isthmus.ports import UNFINISHED, Store, StoredResponse

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed")
_LOOK_AGAIN: Final = 1.0
"""Seconds after which the store is read again although it does not seem to have changed."""


async def read_events(
    store: Store, found: StoredResponse, after: int, *, specified: bool = False
) -> AsyncIterator[list[bytes]]:
    """Events above `after`, up to and with the terminal one. What cannot be told is refused before the first."""
    # One more than asked for: was the last event that the client saw the terminal one?
    try:
        kept = await store.events(found.id, owner=found.owner, after=max(after - 1, -1))
    except RequestRefused:  # it is gone: what follows it may be there, and where nothing does it was the end
        kept = await store.events(found.id, owner=found.owner, after=after)
        over = not kept and found.status not in UNFINISHED
        return _once([]) if over else _read_on(store, found, kept, after)
    if not kept and found.status not in UNFINISHED:
        if after >= 0 and is_background(found):
            return _once([] if await _saw_the_end(store, found, after) else [_terminal(found, after + 1)])
        return _once(_told_again(found, after, specified))
    if after >= 0 and kept and _type(kept[0]) in _TERMINAL:
        return _once([])
    return _read_on(store, found, kept[1:] if after >= 0 else kept, after)


async def _saw_the_end(store: Store, found: StoredResponse, last: int) -> bool:
    """Whether a client that is behind all kept events saw the end, not just more of the story than could be kept."""
    try:
        told = await store.events(found.id, owner=found.owner)
    except RequestRefused:  # so many that the first ones are gone: what is kept has its end
        return True
    # An end that nobody told was told from here, behind what was kept.
    end = len(told) if told else len(replay_events(_decode(found.response))) - 1
    return last == end or (bool(told) and _type(told[-1]) in _TERMINAL)


async def follow_run(
    store: Store, found: StoredResponse, told: AsyncIterator[list[bytes]], last: int
) -> AsyncIterator[list[bytes]]:
    """The events of a run of this process. One that is taken from it goes on in the store."""
    events: list[bytes] = []
    async for events in told:
        last += len(events)
        yield events
    if not events or _type(events[-1]) not in _TERMINAL:
        # One that has just ended is still here, and whoever comes back to it may have seen its end.
        kept = await store.events(found.id, owner=found.owner, after=max(last - 1, -1))
        if last >= 0 and kept and _type(kept[0]) in _TERMINAL:
            return
        async for events in _read_on(store, found, kept[1:] if last >= 0 else kept, last):
            yield events


async def _once(events: list[bytes]) -> AsyncIterator[list[bytes]]:
    if events:
        yield events


async def _read_on(store: Store, found: StoredResponse, kept: list[bytes], last: int) -> AsyncIterator[list[bytes]]:
    mark: int | None = None
    while True:
        if kept:
            yield kept
            last += len(kept)
            if _type(kept[-1]) in _TERMINAL:
                return
        # Its status first: what was told before it ended is there by then.
        current = await store.load(found.id, owner=found.owner)
        kept = await store.events(found.id, owner=found.owner, after=last)
        if kept:
            continue
        if current is None:  # deleted, and so ended before
            yield [_terminal(found, last + 1, status="cancelled")]
            return
        if current.status not in UNFINISHED:
            # Its gateway crashed: what it told last was lost, and the end is known only since.
            whole = replay_events(_decode(current.response)) if last < 0 else []
            yield [_encode(event) for event in whole] or [_terminal(current, last + 1)]
            return
        mark = await store.watch(_LOOK_AGAIN, since=mark)


def _terminal(record: StoredResponse, number: int, **fields: Any) -> bytes:
    response: Any = {**_decode(record.response), **fields}
    terminal: Any = replay_events(response)[-1]
    return _encode({**terminal, "sequence_number": number})


def _type(event: bytes) -> str:
    return str(_decode(event)["type"])


class _Background(msgspec.Struct):
    background: bool | None = None


_decode_background: Final = msgspec.json.Decoder(_Background).decode


def is_background(record: StoredResponse) -> bool:
    return _decode_background(record.response).background is True


def _told_again(found: StoredResponse, after: int, specified: bool) -> list[bytes]:
    """A response that is over, whose events were not kept: told as it was, or anew if nobody was told before."""
    response = _decode(found.response)
    whole = replay_events(response, specified=specified)
    events = tell_as_told(response, found.memo, specified=specified) if found.memo else whole
    if events is None:
        if after >= 0:
            raise RequestRefused(
                f"how `{found.id}` was told is not known any more; leave `starting_after` out to have it told anew",
                code="events_expired",
                param="starting_after",
            )
        events = whole
    return [_encode(event) for event in events if event["sequence_number"] > after]
