"""One lane without a socket: how its events are named, and what is left of it when its client goes."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import pytest

from isthmus.server.frames import Asked
from isthmus.server.http import ClientLeft
from isthmus.server.lane import OpenLane, Waiting
from isthmus.server.steering import Steer


class Wire:
    """Keeps what is written, with whether the lane said that it was telling; `gone`: there is nobody."""

    def __init__(self, *, gone: bool = False) -> None:
        self.gone = gone
        self.written: list[tuple[dict[str, Any], bool]] = []
        self.lane: OpenLane | None = None

    async def write(self, texts: list[bytes]) -> None:
        if self.gone:
            raise ClientLeft
        assert self.lane is not None
        self.written += [(json.loads(text), self.lane.telling) for text in texts]


def make(name: str, wire: Wire) -> OpenLane:
    lane = wire.lane = OpenLane(name, wire)  # type: ignore[arg-type]
    return lane


EVENTS: Any = [{"type": "response.created"}, {"type": "response.in_progress"}]


@pytest.mark.parametrize(("name", "more"), [("", {}), ("a", {"stream_id": "a"})])
async def test_every_event_says_its_lane_unless_it_is_the_default_one(name: str, more: dict[str, str]) -> None:
    wire = Wire()
    await make(name, wire).tell(EVENTS)
    assert [event for event, _ in wire.written] == [{**event, **more} for event in EVENTS]
    assert not any("stream_id" in event for event in EVENTS), "events are never changed"


async def test_it_tells_until_the_client_has_taken_it() -> None:
    wire = Wire()
    lane = make("a", wire)
    await lane.tell(EVENTS[:1])
    await lane.write(EVENTS[1:])
    assert [telling for _, telling in wire.written] == [True, False]
    wire.gone = True
    with pytest.raises(ClientLeft):
        await lane.tell(EVENTS)
    assert not lane.telling


def test_what_is_cleared_gives_its_room_back() -> None:
    lane, given = make("a", Wire()), []
    for number in range(2):
        room = ExitStack()
        room.callback(given.append, number)
        lane.waiting.append(Waiting(Asked(), room))
    words = ExitStack()
    words.callback(given.append, "words")
    lane.steering.take(Steer("resp_1"), words)
    lane.clear()
    assert (sorted(map(str, given)), len(lane.waiting), lane.steering.words("resp_1")) == (["0", "1", "words"], 0, [])
