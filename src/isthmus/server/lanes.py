"""One socket: its lanes, each a queue of requests that are answered one after the other, and all lanes at once.

Every response is an ordinary run, told as a stream is (`accompany`): a client that does not read stops its upstreams,
one that leaves ends them. The frames of a lane take their turn whether they can be read or not. What was refused before
anything was told is an error frame, and the socket goes on; a socket that is to end answers what runs, and no more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import ExitStack
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace
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
from isthmus.server.lane import OpenLane, Waiting
from isthmus.server.leaving import Leaving
from isthmus.server.options import ServerOptions
from isthmus.server.responses import tell_stream
from isthmus.server.room import Room
from isthmus.server.scopes import not_opened, opens
from isthmus.server.steered import Steered
from isthmus.server.steering import with_words
from isthmus.server.tell import tell_run
from isthmus.server.upgraded import Upgraded

log = logging.getLogger("isthmus.server")

_encode: Final = msgspec.json.Encoder().encode
_ENDPOINT: Final = "responses"


class House(Protocol):
    """Who serves, and how; asked anew for each request."""

    gateway: Gateway
    options: ServerOptions


class Session:
    def __init__(
        self,
        house: House,
        room: Room,
        local: Connected,
        socket: Upgraded,
        caller: Caller,
        *,
        path: str,
        peer: str,
        strict: bool | None,
    ) -> None:
        self._house = house
        self._room = room
        self._local = local
        self._socket = socket
        self.caller = caller
        self._path, self._peer, self._strict = path, peer, strict
        self._lanes: dict[str, OpenLane] = {}
        self._steered = Steered(self._lanes, OpenLane("", socket), room)
        self._places = asyncio.Semaphore(house.options.websocket.max_running)
        self._farewell: IsthmusError | None = None
        self.gone = asyncio.Event()
        self.answered = 0
        """Frames that were answered."""

    @property
    def busy(self) -> bool:
        return any(lane.task is not None for lane in self._lanes.values())

    async def serve(self, receive: Receive) -> int:
        """Until the client is gone; the answer is the code that it, or we, closed with."""
        age = asyncio.get_running_loop().call_later(self._house.options.websocket.max_age, self.leave, _too_old())
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
                lane.clear()
            running = [lane.task for lane in self._lanes.values() if lane.task is not None]
            if running:
                await asyncio.wait(running)
            for lane in self._lanes.values():
                lane.clear()  # once more: whatever came while they ended
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
        asked = await self._house.gateway.read(raw, read_frame)
        try:
            self._look_again()
        except IsthmusError as error:
            self._local.evict(asked.lane, asked.parent)
            await self._refuse(error, asked.lane)
            self.leave(error)
            return
        if asked.steer is not None:
            await self._steered.take(asked.steer)
            return
        limits = self._house.options.websocket
        lane = self._lanes.get(asked.lane)
        if lane is None:
            if asked.lane and len(self._lanes.keys() - {""}) >= limits.max_lanes:
                await self._refuse(_too_many_lanes(limits.max_lanes), asked.lane)
                return
            lane = self._lanes[asked.lane] = OpenLane(asked.lane, self._socket)
        if sum(len(each.waiting) for each in self._lanes.values()) >= limits.max_queued:
            self._local.evict(asked.lane, asked.parent)
            await self._refuse(_too_many_queued(limits.max_queued), asked.lane)
            return
        self._queue(lane, asked)
        await asyncio.sleep(0)  # what can begin does so, and waits no more, before the next one is counted

    def _look_again(self) -> Caller:
        """Who asks, as they are now: a key may have been revoked, or narrowed, since the socket was opened."""
        caller = self.caller = self._house.options.keys.still(self.caller)
        if not opens(caller, _ENDPOINT):
            raise not_opened(caller, _ENDPOINT)
        return caller

    def _queue(self, lane: OpenLane, asked: Asked) -> None:
        room = ExitStack()
        try:
            room.enter_context(self._room.take(asked.size))
        except IsthmusError as error:
            asked = replace(asked, request=None, failure=error)
        lane.waiting.append(Waiting(asked, room))
        if lane.task is None:
            lane.task = asyncio.create_task(self._work(lane), name=f"lane {lane.name}")

    # ── what is answered ───────────────────────────────────────────────────────────────────────────

    async def _work(self, lane: OpenLane) -> None:
        try:
            while lane.waiting:
                async with self._places:
                    if not lane.waiting:
                        return  # the client went meanwhile
                    waiting = lane.waiting.popleft()
                    with waiting.room:
                        await self._answer(lane, waiting)
                    if not self.gone.is_set():
                        await self._steered.go_on(lane)
        except ClientLeft:
            pass  # words that waited go with the socket
        finally:
            lane.task = None
            self._end_if_idle()

    async def _answer(self, lane: OpenLane, waiting: Waiting) -> None:
        asked, exchange = waiting.asked, Exchange("WS", self._path, self._peer, self._house.gateway.observer)
        exchange.caller = self.caller
        exchange.receive(asked.size)
        sink = _Sink(lane, self._steered, self.gone)
        self.answered += 1
        try:
            with self._room.led():
                run = await self._create(lane, waiting, exchange.caller)
                exchange.run = run
                exchange.status = 200
                tell_run(run)
                with self._room.place():
                    await tell_stream(run, sink, self._house.options.server)
            if run.response is None or run.response["status"] not in ("completed", "incomplete"):
                self._local.evict(lane.name, asked.parent)
            elif run.response["store"]:  # the lane's last response is in the store
                self._local.forget(lane.name)
        except IsthmusError as error:
            exchange.failure, exchange.status = error, error.meaning.status
            self._local.evict(lane.name, asked.parent)
            await self._refuse_if_there(error, lane, exchange, waiting)
        except ClientLeft:
            exchange.left = True
            self._socket.send_away(CloseCode.POLICY_VIOLATION)  # it may be there, and not read
        except Exception as error:
            tell(log, "error", "request.broken", id=exchange.id, trace=error)
            exchange.status = 500
            self._socket.send_away(CloseCode.INTERNAL_ERROR, _broken())
        finally:
            exchange.tell()

    async def _create(self, lane: OpenLane, waiting: Waiting, caller: Caller) -> Run:
        asked = waiting.asked
        failure = asked.failure or self._farewell or (draining() if self._house.gateway.draining else None)
        parent = asked.parent or lane.steering.parent_of(asked.request)
        if parent and parent == lane.steering.waits_for:
            waiting.words = lane.steering.words(parent)
        if failure is not None or asked.request is None:
            raise failure or _broken()
        now = self._look_again()  # it may have waited
        caller = replace(now, request=caller.request, asked_at=caller.asked_at)
        self._room.check_places()
        local, request = Lane(self._local, lane.name), asked.request
        if not waiting.ours:
            request = with_words(request, waiting.words)
        run = await self._house.gateway.create(caller, request, strict=self._strict, lane=local)
        await self._steered.leave(lane, parent)
        lane.steering.give(parent)
        lane.steering.begin(run, request)
        return run

    async def _refuse_if_there(self, error: IsthmusError, lane: OpenLane, exchange: Exchange, waiting: Waiting) -> None:
        try:
            if waiting.words:
                await self._steered.fail(lane, waiting, error)
            if not waiting.ours:
                await self._refuse(error, lane.name)
        except ClientLeft:
            exchange.left = True

    async def _refuse(self, error: IsthmusError, lane: str) -> None:
        frame = error_frame(error, lane, specified=self.caller.client.specified)
        await self._socket.write([_encode(frame)])


class _Sink:
    """One lane's end of a run. Pings are the connection's: nothing has to be said to show that we live."""

    beats = True
    whole = False
    leaving: Leaving | None = None

    def __init__(self, lane: OpenLane, steered: Steered, gone: asyncio.Event) -> None:
        self._lane = lane
        self._steered = steered
        self._gone = gone

    async def write(self, run: Run, events: list[Event]) -> None:
        await self._lane.tell(events)
        if self._lane.late:
            await self._steered.take_late(self._lane, run)

    async def alive(self, event: Event | None) -> None:
        if event is not None:
            await self._lane.tell([event])

    async def end(self, run: Run) -> None:
        pass

    def left(self) -> Awaitable[Any]:
        return self._gone.wait()


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
