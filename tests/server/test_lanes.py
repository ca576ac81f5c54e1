"""One socket from inside: a bug of ours, and the room that frames take. The flows show the rest over real sockets."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from flowing import PLAIN, Flow
from isthmus.config.schema import Limits, WebSocket
from isthmus.errors import IsthmusError
from isthmus.gateway.caller import LOCAL
from isthmus.gateway.led import leads_to
from isthmus.gateway.local import LocalTurns
from isthmus.server.http import ClientLeft
from isthmus.server.lanes import Session
from isthmus.server.options import ServerOptions
from isthmus.server.room import Room
from isthmus.testing import chat
from socketing import open_socket
from waiting import until_soon

HI = {"model": PLAIN, "input": "hi", "store": False}


def test_a_bug_of_ours_closes_the_socket_with_1011(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    with open_socket(flow.server.url) as talk:
        monkeypatch.setattr(flow.server.gateway, "create", broken)
        talk.ask(HI)
        assert talk.closed() == 1011
        assert (talk.seen[-1]["status"], talk.seen[-1]["error"]["code"]) == (500, "internal_error")
        assert "Zero" not in json.dumps(talk.seen)
    monkeypatch.undo()
    flow.script(chat("ok"))
    assert flow.create({"model": PLAIN, "input": "hi"})["status"] == "completed"


class Gateway:
    """Reads frames, and makes nothing before it is told to."""

    draining = False
    observer = None

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def read(self, raw: bytes, reader: Any) -> Any:
        from isthmus.bridge.limits import DEFAULT_LIMITS

        return reader(raw, DEFAULT_LIMITS)

    async def create(self, *_: Any, **__: Any) -> Any:
        await self.go_on.wait()
        raise IsthmusError("no", code="server_is_overloaded")


class Wire:
    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.gone = False

    async def write(self, texts: list[bytes]) -> None:
        if self.gone:
            raise ClientLeft
        self.told += map(json.loads, texts)

    def say_goodbye(self, error: IsthmusError) -> None: ...

    def send_away(self, code: int, error: IsthmusError | None = None) -> None: ...


def make(room: Room, wire: Wire, gateway: Gateway) -> Session:
    options = ServerOptions(websocket=WebSocket(max_running=1))
    local = LocalTurns(10_000, 10_000).connect()
    house = SimpleNamespace(gateway=gateway, options=options)
    return Session(house, room, local, wire, LOCAL, path="/", peer="", strict=None)  # type: ignore[arg-type]


async def test_frames_that_wait_take_room_and_give_it_back_when_their_client_goes() -> None:
    room, wire, gateway = Room(Limits(max_memory=0), None, 10), Wire(), Gateway()
    coming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    serving = asyncio.create_task(make(room, wire, gateway).serve(coming.get))  # type: ignore[arg-type]
    text = json.dumps({"type": "response.create", "input": "x" * 100})
    for _ in range(3):
        coming.put_nowait({"type": "websocket.receive", "text": text})
    await until_soon(lambda: room.held >= 3 * len(text))
    wire.gone = True
    coming.put_nowait({"type": "websocket.disconnect", "code": 1000})
    gateway.go_on.set()
    assert await serving == 1000
    assert room.held == 0


async def test_a_frame_for_which_there_is_no_room_is_refused_in_its_turn() -> None:
    room, wire, gateway = Room(Limits(max_serving=200, max_memory=0), None, 10), Wire(), Gateway()
    coming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    serving = asyncio.create_task(make(room, wire, gateway).serve(coming.get))  # type: ignore[arg-type]
    for size in (10, 300):
        frame = {"type": "response.create", "stream_id": "a", "input": "x" * size}
        coming.put_nowait({"type": "websocket.receive", "text": json.dumps(frame)})
    await until_soon(coming.empty)
    assert wire.told == []
    gateway.go_on.set()
    await until_soon(lambda: len(wire.told) == 2)
    assert [frame["error"]["message"].partition(" ")[0] for frame in wire.told] == ["no", "all"]
    assert {frame["stream_id"] for frame in wire.told} == {"a"}
    coming.put_nowait({"type": "websocket.disconnect", "code": 1000})
    await serving


class LeadingFar(Gateway):
    """Each of its requests leads to a thousand bytes."""

    async def create(self, *_: Any, **__: Any) -> Any:
        leads_to(1000)
        return await super().create()


async def test_what_a_frame_leads_to_takes_room_as_long_as_it_is_answered() -> None:
    room, wire, gateway = Room(Limits(max_memory=0), None, 10), Wire(), LeadingFar()
    coming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    serving = asyncio.create_task(make(room, wire, gateway).serve(coming.get))  # type: ignore[arg-type]
    text = json.dumps({"type": "response.create", "input": "x"})
    coming.put_nowait({"type": "websocket.receive", "text": text})
    await until_soon(lambda: room.held > 4000)
    gateway.go_on.set()
    await until_soon(lambda: room.held == 0)
    assert len(wire.told) == 1
    coming.put_nowait({"type": "websocket.disconnect", "code": 1000})
    await serving
