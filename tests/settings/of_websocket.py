"""Proofs for `[websocket]`, and the switch for it."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from isthmus.server.lanes import Session
from isthmus.testing import Gate, ScriptedUpstream, chat_chunks, stream
from isthmus.testing.script import Step, chat
from settings.proving import Scene, Served, proves

HELLO = {"type": "response.create", "model": "main/some-model", "input": "hi", "store": False}


@asynccontextmanager
async def _socket(scene: Scene, *script: Step) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    with ScriptedUpstream.running(script, default=chat("ok")) as upstream:
        async with scene.served({"providers.main.base_url": f'"{upstream.base_url}"'}) as server, _open(server) as talk:
            yield talk


@asynccontextmanager
async def _open(server: Served) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with server.session.ws_connect(server.url + "/v1/responses") as socket:
        yield socket


async def _end(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    """The frame that ends a response."""
    while True:
        frame: dict[str, Any] = await socket.receive_json()
        if frame["type"] in ("error", "response.completed"):
            return frame


async def _answer(socket: aiohttp.ClientWebSocketResponse, **more: Any) -> dict[str, Any]:
    await socket.send_json({**HELLO, **more})
    return await _end(socket)


def _code(frame: dict[str, Any]) -> str | None:
    return frame["error"]["code"] if frame["type"] == "error" else None


@proves("server.websockets", "false")
async def there_are_none(scene: Scene) -> None:
    async with scene.served() as server:
        headers = {"connection": "upgrade", "upgrade": "websocket"}
        shown = {"sec_websocket_version": "13", "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ=="}
        assert await server.status("GET", "/v1/responses", **headers, **shown) == 426


@proves("websocket.max_age", "7")
async def a_socket_is_told_when_it_is_too_old(scene: Scene) -> None:
    ages: list[float] = []
    loop = asyncio.get_running_loop()
    later = loop.call_later

    def spy(delay: float, call: Any, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        if getattr(call, "__func__", None) is Session.leave:
            ages.append(delay)
        return later(delay, call, *arguments, **options)

    scene.monkeypatch.setattr(loop, "call_later", spy)
    async with _socket(scene) as socket:
        await socket.send_str("{")
        await _end(socket)
    assert ages == [7.0]


@proves("websocket.max_lanes", "1")
async def one_more_lane_is_refused(scene: Scene) -> None:
    async with _socket(scene) as socket:
        await _answer(socket, stream_id="a")
        assert _code(await _answer(socket, stream_id="b")) == "websocket_stream_limit_reached"


FULL = {"websocket.max_lanes": "1"}
"""One more lane is refused at once, whatever else is going on: what comes before that was not kept waiting."""


async def _meanwhile(scene: Scene, *frames: str) -> list[str]:
    """The errors of these frames that come while a response is held."""
    gate = Gate()
    async with _socket(scene, stream([*chat_chunks("ok")[:2], gate, *chat_chunks("ok")[2:]])) as socket:
        await socket.send_json({**HELLO, "stream_id": "a"})
        while (await socket.receive_json())["type"] != "response.output_text.delta":
            pass
        codes: list[str] = []
        for frame in (*frames, json.dumps({**HELLO, "stream_id": "b"})):
            await socket.send_str(frame)
        while not codes or codes[-1] != "websocket_stream_limit_reached":
            codes.append(_code(await _end(socket)) or "")
        gate.open()
        await _end(socket)
    return codes[:-1]


@proves("websocket.max_running", "1", beside=FULL)
async def the_second_lane_waits_for_the_first(scene: Scene) -> None:
    assert await _meanwhile(scene, "{") == []


@proves("websocket.max_queued", "1", beside=FULL)
async def one_more_that_waits_is_refused(scene: Scene) -> None:
    assert await _meanwhile(scene, *[json.dumps({**HELLO, "stream_id": "a"})] * 2) == ["websocket_queue_full"]


async def _forgotten(scene: Scene) -> str | None:
    async with _socket(scene) as socket:
        first = await _answer(socket)
        return _code(await _answer(socket, previous_response_id=first["response"]["id"]))


@proves("websocket.max_state", "100")
async def what_a_socket_cannot_remember_is_not_found(scene: Scene) -> None:
    assert await _forgotten(scene) == "previous_response_not_found"


@proves("websocket.max_states", "100")
async def what_all_of_them_cannot_remember_neither(scene: Scene) -> None:
    assert await _forgotten(scene) == "previous_response_not_found"


async def _pulse(scene: Scene) -> tuple[float | None, float | None]:
    from isthmus.server.upgraded import Upgraded

    loop = asyncio.get_running_loop()
    async with _socket(scene):
        (mine,) = [each for each in gc.get_objects() if issubclass(type(each), Upgraded) and each.loop is loop]
        return mine.ping_interval, mine.ping_timeout


@proves("websocket.ping", "7")
async def it_is_pinged_at_this_pace(scene: Scene) -> None:
    assert (await _pulse(scene))[0] == 7.0


@proves("websocket.ping", "0")
async def it_is_never_pinged(scene: Scene) -> None:
    assert (await _pulse(scene))[0] is None


@proves("websocket.pong", "7")
async def it_has_so_long_to_answer(scene: Scene) -> None:
    assert (await _pulse(scene))[1] == 7.0
