"""What becomes of the words for responses of one socket (`response.steer`): taken, said in what follows, or given back.

Whatever was accepted is either said, in a successor or in the client's own request, or comes back in a
`response.steer.failed`: the client need not remember what it has asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from isthmus.conduct.run import Run
from isthmus.errors import IsthmusError
from isthmus.protocol.events import Event
from isthmus.server.frames import Asked
from isthmus.server.lane import OpenLane, Waiting
from isthmus.server.room import Room
from isthmus.server.steering import (
    MAX_STEERS,
    Steer,
    already_over,
    required_input,
    steer_error,
    steer_failed,
    successor,
)

_SMALL: Final = 16_384
"""Bytes of words that may wait uncounted until they can be answered."""


class Steered:
    def __init__(self, lanes: Mapping[str, OpenLane], nowhere: OpenLane, room: Room) -> None:
        self._lanes = lanes
        self._nowhere = nowhere
        """Where words are refused that are for none of the lanes."""
        self._room = room

    async def take(self, steer: Steer) -> None:
        """Take words for a response; refused where it is not one of this socket's, or cannot be steered."""
        for lane in self._lanes.values():
            run = lane.steering.run
            if run is not None and run.id == steer.target:
                await self._take(lane, run, steer)
                return
        for lane in self._lanes.values():
            if steer.target and lane.steering.last == steer.target:
                await self._give_back(lane, [steer], steer.failure or already_over(steer.target))
                return
        unknown = steer_error("response_not_found", f"`{steer.target}` is no response of this socket")
        self._nowhere.steering.told = 0
        await self._give_back(self._nowhere, [steer], steer.failure or unknown)

    async def _take(self, lane: OpenLane, run: Run, steer: Steer) -> None:
        if lane.telling and len(lane.late) < MAX_STEERS and steer.size < _SMALL:
            lane.late.append(steer)
            return
        try:
            if steer.failure is not None:
                raise steer.failure
            lane.steering.check(steer)
            taken = lane.steering.take(steer, self._room.take(steer.size))
        except IsthmusError as error:
            await lane.write([run.tell_steering("response.steer.failed", **steer_failed(steer, error))])
            return
        told = [run.tell_steering("response.steer.accepted", steer=taken.shown)]
        told += _pending(run, [taken]) if run.finished else []
        run.steer()
        await lane.write(told)

    async def take_late(self, lane: OpenLane, run: Run) -> None:
        late, lane.late = lane.late, []
        for steer in late:
            await self._take(lane, run, steer)

    async def go_on(self, lane: OpenLane) -> None:
        """The response of this lane has ended: a successor follows with the words, or the client's outputs come first.
        Raises `ClientLeft`: the words go with the socket."""
        steering = lane.steering
        run, request = steering.run, steering.request
        words = steering.words(run.id) if run is not None else []
        if run is not None and steering.waits_for == run.id:
            return
        if run is None or request is None or not words:
            steering.end()
            return
        status = None if run.response is None else run.response["status"]
        if status in ("completed", "incomplete") and required_input(run):
            steering.waits_for = run.id
            if not (lane.waiting and steering.parent_of(lane.waiting[0].asked.request) == run.id):
                await lane.tell(_pending(run, words))
                await self.take_late(lane, run)
            return
        steering.give(run.id)
        steering.end()
        if status in ("completed", "incomplete"):
            asked = Asked(lane.name, successor(request, run.id, words), parent=run.id)
            lane.waiting.appendleft(Waiting(asked, ExitStack(), words, ours=True))
        else:
            await self._give_back(lane, words, _unmade("the response failed before the words were taken up"))

    async def fail(self, lane: OpenLane, waiting: Waiting, error: IsthmusError) -> None:
        """What was to be said in this was not: nothing of it was made. Raises `ClientLeft`."""
        lane.steering.end()
        lane.steering.give(waiting.words[0].target)
        await self._give_back(lane, waiting.words, _unmade(error.message))

    async def leave(self, lane: OpenLane, parent: str) -> None:
        """The lane goes on from this response: words that wait for the outputs of another one wait in vain."""
        target = lane.steering.waits_for
        if target and target != parent:
            words = lane.steering.words(target)
            lane.steering.end()
            lane.steering.give(target)
            await self._give_back(lane, words, _unmade(f"the lane went on without the outputs that `{target}` needs"))

    async def _give_back(self, lane: OpenLane, words: Sequence[Steer], failure: IsthmusError) -> None:
        """Tell of words for the response that ended last in this lane."""
        steering, told = lane.steering, list[Any]()
        for each in words:
            number = {"type": "response.steer.failed", "sequence_number": steering.told}
            told.append({**number, **steer_failed(each, failure)})
            steering.told += 1
        await lane.tell(told)


def _pending(run: Run, words: Sequence[Steer]) -> list[Event]:
    fields = {"reason": "waiting_for_required_input", "required_input": required_input(run)}
    return [run.tell_steering("response.steer.pending", steer=each.shown, **fields) for each in words]


def _unmade(why: str) -> IsthmusError:
    return steer_error("successor_creation_failed", why)
