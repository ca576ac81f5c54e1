"""One socket: its lanes, each a queue of requests that are answered one after the other, and all lanes at once.

Every response is an ordinary run, told as a stream is (`accompany`): a client that does not read stops its upstreams,
one that leaves ends them. The frames of a lane take their turn whether they can be read or not. What was refused before
anything was told is an error frame, and the socket goes on; a socket that is to end answers what runs, and no more.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Sequence
from contextlib import ExitStack
from typing import Any, Final

import msgspec
from starlette.types import Receive
from websockets.frames import CloseCode

from isthmus.conduct.run import Run
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.local import Connected, Lane
from isthmus.log import tell
from isthmus.protocol.events import Event
from isthmus.server.errors import draining
from isthmus.server.exchange import Exchange
from isthmus.server.frames import Asked, error_frame, read_frame
from isthmus.server.http import ClientLeft
from isthmus.server.leaving import Leaving
from isthmus.server.options import ServerOptions
from isthmus.server.responses import tell_stream
from isthmus.server.room import Room
from isthmus.server.steering import (
    MAX_STEERS,
    Steer,
    Steering,
    already_over,
    required_input,
    steer_error,
    steer_failed,
    successor,
    with_words,
)
from isthmus.server.tell import tell_run
from isthmus.server.upgraded import Upgraded

log = logging.getLogger("isthmus.server")

_encode: Final = msgspec.json.Encoder().encode
_SMALL: Final = 16_384
"""Bytes of words that may wait uncounted until they can be answered."""


class _Waiting(msgspec.Struct):
    """A frame that waits for its turn, and the room that it takes."""

    asked: Asked
    room: ExitStack
    words: list[Steer] = []
    """Those for which this follows a response that was steered."""


class _Lane:
    __slots__ = ("late", "name", "steering", "task", "telling", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.steering = Steering()
        self.telling = False
        """Whether something is being told, to a client that takes its time."""
        self.late: list[Steer] = []
        """Words that came meanwhile: they are answered between two batches, so that events keep their order."""
        self.waiting: deque[_Waiting] = deque()
        self.task: asyncio.Task[None] | None = None
        """Answers what waits; `None`: nothing does, and nothing runs."""


class Session:
    def __init__(
        self,
        gateway: Gateway,
        options: ServerOptions,
        room: Room,
        local: Connected,
        socket: Upgraded,
        caller: Caller,
        *,
        path: str,
        peer: str,
        strict: bool | None,
    ) -> None:
        self._gateway = gateway
        self._options = options
        self._room = room
        self._local = local
        self._socket = socket
        self._caller = caller
        self._path, self._peer, self._strict = path, peer, strict
        self._lanes: dict[str, _Lane] = {}
        self._places = asyncio.Semaphore(options.websocket.max_running)
        self._queued = 0
        self._farewell: IsthmusError | None = None
        self.gone = asyncio.Event()
        self.answered = 0
        """Frames that were answered."""

    @property
    def busy(self) -> bool:
        return any(lane.task is not None for lane in self._lanes.values())

    async def serve(self, receive: Receive) -> int:
        """Until the client is gone; the answer is the code that it, or we, closed with."""
        age = asyncio.get_running_loop().call_later(self._options.websocket.max_age, self.leave, _too_old())
        try:
            while True:
                message = await receive()
                if message["type"] == "websocket.disconnect":
                    return int(message.get("code") or CloseCode.NO_STATUS_RCVD)
                await self._take(message)
        except ClientLeft:
            return int(CloseCode.ABNORMAL_CLOSURE)
        finally:
            age.cancel()
            self.gone.set()
            for lane in self._lanes.values():
                self._clear(lane)
            running = [lane.task for lane in self._lanes.values() if lane.task is not None]
            if running:
                await asyncio.wait(running)
            for lane in self._lanes.values():
                self._clear(lane)  # once more: whatever came while they ended
            self._local.close()

    def leave(self, why: IsthmusError) -> None:
        """What runs may end; whatever else is asked, or waits, is refused with this. Then the socket is closed."""
        self._farewell = self._farewell or why
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self._farewell is not None and not self.busy:
            self._socket.say_goodbye(self._farewell)

    # ── what comes ─────────────────────────────────────────────────────────────────────────────────

    async def _take(self, message: Any) -> None:
        text = message.get("text")
        raw = text.encode() if text is not None else message.get("bytes") or b""
        asked = await self._gateway.read(raw, read_frame)
        if asked.steer is not None:
            await self._steer(asked.steer)
            return
        limits = self._options.websocket
        lane = self._lanes.get(asked.lane)
        if lane is None:
            if asked.lane and len(self._lanes.keys() - {""}) >= limits.max_lanes:
                await self._refuse(_too_many_lanes(limits.max_lanes), asked.lane)
                return
            lane = self._lanes[asked.lane] = _Lane(asked.lane)
        if self._queued >= limits.max_queued:
            await self._refuse(_too_many_queued(limits.max_queued), asked.lane)
            return
        self._queue(lane, asked)
        await asyncio.sleep(0)  # what can begin does so, and waits no more, before the next one is counted

    def _queue(self, lane: _Lane, asked: Asked) -> None:
        room = ExitStack()
        try:
            room.enter_context(self._room.take(asked.size))
        except IsthmusError as error:
            asked = msgspec.structs.replace(asked, request=None, failure=error)
        lane.waiting.append(_Waiting(asked, room))
        self._queued += 1
        if lane.task is None:
            lane.task = asyncio.create_task(self._work(lane), name=f"lane {lane.name}")

    def _clear(self, lane: _Lane) -> None:
        lane.steering.give(None)
        for waiting in lane.waiting:
            waiting.room.close()
        self._queued -= len(lane.waiting)
        lane.waiting.clear()

    # ── what is answered ───────────────────────────────────────────────────────────────────────────

    async def _work(self, lane: _Lane) -> None:
        try:
            while lane.waiting:
                async with self._places:
                    if not lane.waiting:
                        return  # the client went meanwhile
                    self._queued -= 1
                    waiting = lane.waiting.popleft()
                    with waiting.room:
                        await self._answer(lane, waiting)
                    await self._go_on(lane)
        finally:
            lane.task = None
            self._end_if_idle()

    async def _answer(self, lane: _Lane, waiting: _Waiting) -> None:
        asked, exchange = waiting.asked, Exchange("WS", self._path, self._peer)
        exchange.caller = self._caller
        sink = _Sink(self, lane)
        self.answered += 1
        try:
            run = await self._create(lane, asked)
            exchange.run = run
            exchange.status = 200
            tell_run(run)
            with self._room.place():
                await tell_stream(run, sink, self._options.server)
            if run.response is None or run.response["status"] not in ("completed", "incomplete"):
                self._local.evict(lane.name, asked.parent)
        except IsthmusError as error:
            exchange.failure, exchange.status = error, error.meaning.status
            self._local.evict(lane.name, asked.parent)
            await self._refuse_if_there(error, lane, exchange, waiting.words)
        except ClientLeft:
            exchange.left = True
            self._socket.send_away(CloseCode.POLICY_VIOLATION)  # it may be there, and not read
        except Exception as error:
            tell(log, "error", "request.broken", id=exchange.id, trace=error)
            exchange.status = 500
            self._socket.send_away(CloseCode.INTERNAL_ERROR, _broken())
        finally:
            exchange.tell()

    async def _create(self, lane: _Lane, asked: Asked) -> Run:
        failure = asked.failure or self._farewell or (draining() if self._gateway.draining else None)
        if failure is not None or asked.request is None:
            raise failure or _broken()
        self._room.check_places()
        local, request = Lane(self._local, lane.name), asked.request
        parent = lane.steering.parent_of(request)
        if parent and parent == lane.steering.waits_for:
            request = with_words(request, lane.steering.words(parent))
        run = await self._gateway.create(self._caller, request, strict=self._strict, lane=local)
        lane.steering.give(parent)
        lane.steering.begin(run, request)
        return run

    async def _refuse_if_there(
        self, error: IsthmusError, lane: _Lane, exchange: Exchange, words: Sequence[Steer] = ()
    ) -> None:
        try:
            if words:  # nobody has asked for the response that was not made: the words are given back
                failure = steer_error("successor_creation_failed", error.message)
                lane.steering.end()
                await self._give_back(lane, words, failure)
            else:
                await self._refuse(error, lane.name)
        except ClientLeft:
            exchange.left = True

    # ── steering ───────────────────────────────────────────────────────────────────────────────────

    async def _steer(self, steer: Steer) -> None:
        """Take words for a response; refused where it is not one of this socket's, or cannot be steered."""
        for lane in self._lanes.values():
            run = lane.steering.run
            if run is not None and run.id == steer.target:
                await self._steer_run(lane, run, steer)
                return
        for lane in self._lanes.values():
            if steer.target and lane.steering.last == steer.target:
                await self._give_back(lane, [steer], steer.failure or already_over(steer.target))
                return
        unknown = steer_error("response_not_found", f"`{steer.target}` is no response of this socket")
        await self._give_back(_Lane(""), [steer], steer.failure or unknown)

    async def _steer_run(self, lane: _Lane, run: Run, steer: Steer) -> None:
        if lane.telling and len(lane.late) < MAX_STEERS and steer.size < _SMALL:
            lane.late.append(steer)
            return
        try:
            if steer.failure is not None:
                raise steer.failure
            lane.steering.check(steer)
            taken = lane.steering.take(steer, self._room.take(steer.size))
        except IsthmusError as error:
            await self._write(lane, [run.tell_steering("response.steer.failed", **steer_failed(steer, error))])
            return
        told = [run.tell_steering("response.steer.accepted", steer=taken.shown)]
        told += self._pending(run, [taken]) if run.finished else []
        run.steer()
        await self._write(lane, told)

    def _pending(self, run: Run, words: Sequence[Steer]) -> list[Event]:
        fields = {"reason": "waiting_for_required_input", "required_input": required_input(run)}
        return [run.tell_steering("response.steer.pending", steer=each.shown, **fields) for each in words]

    async def take_late(self, lane: _Lane, run: Run) -> None:
        late, lane.late = lane.late, []
        for steer in late:
            await self._steer_run(lane, run, steer)

    async def _go_on(self, lane: _Lane) -> None:
        """What becomes of the words for a response that has ended: a successor, or a wait for the client's outputs."""
        steering = lane.steering
        run, request = steering.run, steering.request
        words = steering.words(run.id) if run is not None else []
        if run is not None and steering.waits_for == run.id:
            return
        if run is None or request is None or not words or self.gone.is_set():
            steering.end()
            return
        status = None if run.response is None else run.response["status"]
        try:
            if status in ("completed", "incomplete") and required_input(run):
                steering.waits_for = run.id
                if not (lane.waiting and steering.parent_of(lane.waiting[0].asked.request) == run.id):
                    await self.tell(lane, self._pending(run, words))
                return
            steering.give(run.id)
            steering.end()
            if status in ("completed", "incomplete"):
                asked = Asked(lane.name, successor(request, run.id, words), parent=run.id)
                lane.waiting.appendleft(_Waiting(asked, ExitStack(), words))
                self._queued += 1
            else:
                failure = steer_error("successor_creation_failed", "the response failed before the words were taken up")
                await self._give_back(lane, words, failure)
        except ClientLeft:
            pass  # the words go with the socket

    async def _give_back(self, lane: _Lane, words: Sequence[Steer], failure: IsthmusError) -> None:
        """Tell of words for the response that ended last in this lane."""
        steering, told = lane.steering, list[Any]()
        for each in words:
            number = {"type": "response.steer.failed", "sequence_number": steering.told}
            told.append({**number, **steer_failed(each, failure)})
            steering.told += 1
        await self.tell(lane, told)

    async def _refuse(self, error: IsthmusError, lane: str) -> None:
        frame = error_frame(error, lane, specified=self._caller.client.specified)
        await self._socket.write([_encode(frame)])

    async def tell(self, lane: _Lane, events: list[Event]) -> None:
        lane.telling = True
        try:
            await self._write(lane, events)
        finally:
            lane.telling = False

    async def _write(self, lane: _Lane, events: list[Event]) -> None:
        named: list[Any] = [{**event, "stream_id": lane.name} for event in events] if lane.name else events
        await self._socket.write([_encode(event) for event in named])


class _Sink:
    """One lane's end of a run. Pings are the connection's: nothing has to be said to show that we live."""

    beats = True
    whole = False
    leaving: Leaving | None = None

    def __init__(self, session: Session, lane: _Lane) -> None:
        self._session = session
        self._lane = lane

    async def write(self, run: Run, events: list[Event]) -> None:
        await self._session.tell(self._lane, events)
        if self._lane.late:
            await self._session.take_late(self._lane, run)

    async def alive(self, event: Event | None) -> None:
        if event is not None:
            await self._session.tell(self._lane, [event])

    async def end(self, run: Run) -> None:
        pass

    def left(self) -> Awaitable[Any]:
        return self._session.gone.wait()


def _too_old() -> RequestRefused:
    words = "this socket is as old as it may be (`websocket.max_age`); open another one"
    return RequestRefused(words, code="websocket_connection_limit_reached")


def _too_many_lanes(limit: int) -> RequestRefused:
    words = f"this socket has named {limit} lanes already (`websocket.max_lanes`); use one of them, or open another one"
    return RequestRefused(words, code="websocket_stream_limit_reached", param="stream_id")


def _too_many_queued(limit: int) -> RequestRefused:
    words = f"{limit} requests wait on this socket already (`websocket.max_queued`); wait for an answer"
    return RequestRefused(words, code="websocket_queue_full")


def _broken() -> IsthmusError:
    words = "the gateway failed while it handled this request; its log says more"
    return IsthmusError(words, code="internal_error")
