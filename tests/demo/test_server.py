"""The demo model's port: there at once, and what stands behind it when somebody calls."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import aiohttp
import pytest
import uvloop

from isthmus.demo import DemoServer

LOADED = """
import asyncio, sys, aiohttp
from isthmus.demo import DemoServer

PARTS = ("aiohttp.web", "isthmus.demo.model")
there = lambda: [name for name in PARTS if name in sys.modules]

async def main():
    async with DemoServer() as demo, aiohttp.ClientSession() as session:
        print(there())
        async with session.get(f"{demo.base_url}/models") as reply:
            print(reply.status, there())

asyncio.run(main())
"""


def test_the_model_and_its_web_server_are_loaded_when_somebody_calls() -> None:
    told = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True).stdout
    assert told == "[]\n200 ['aiohttp.web', 'isthmus.demo.model']\n"


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_all_who_call_first_are_answered(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def test() -> None:
        async with DemoServer() as demo, aiohttp.ClientSession(trust_env=False) as session:

            async def call() -> int:
                async with session.get(f"{demo.base_url}/models", headers={"connection": "close"}) as reply:
                    return reply.status

            assert await asyncio.gather(*(call() for _ in range(20))) == [200] * 20
            assert await call() == 200

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(test())


@pytest.mark.parametrize("called", [False, True])
def test_a_port_is_free_again_once_it_has_stopped(called: bool) -> None:
    async def test() -> None:
        demo = DemoServer()
        await demo.start()
        if called:
            async with (
                aiohttp.ClientSession(trust_env=False) as session,
                session.get(f"{demo.base_url}/models") as reply,
            ):
                assert reply.status == 200
        await demo.stop()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", demo.port)
        await demo.stop()  # nobody minds
        async with DemoServer(demo.port) as again:
            assert again.port == demo.port

    asyncio.run(test())


def test_one_who_calls_while_it_stops_is_hung_up_on() -> None:
    async def test() -> None:
        demo = DemoServer()
        await demo.start()
        with socket.create_connection(("127.0.0.1", demo.port)) as caller:
            caller.settimeout(10)
            await asyncio.sleep(0)  # it has been heard, and is about to be let in
            await demo.stop()
            with suppress(ConnectionResetError):  # the other way to say so
                assert caller.recv(1) == b""

    asyncio.run(test())
