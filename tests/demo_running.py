"""Runs a test against a demo model on its own socket, in time of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import openai

from isthmus.demo import DemoServer
from own_time import run_in_own_time

Test = Callable[[DemoServer, openai.AsyncOpenAI], Coroutine[Any, Any, None]]


def run(test: Test) -> None:
    async def live() -> None:
        async with (
            DemoServer() as demo,
            openai.AsyncOpenAI(
                base_url=demo.base_url,
                api_key="any",
                max_retries=0,
                http_client=openai.DefaultAsyncHttpxClient(trust_env=False, timeout=None),
            ) as client,
        ):
            await test(demo, client)

    run_in_own_time(live())


@asynccontextmanager
async def posted(demo: DemoServer, body: Any) -> AsyncIterator[aiohttp.ClientResponse]:
    async with (
        aiohttp.ClientSession(trust_env=False) as session,
        session.post(f"{demo.base_url}/chat/completions", json=body) as reply,
    ):
        yield reply


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]
