"""Connections to MCP servers: whose they are, how many, and how long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

pytest.importorskip("mcp")

from mcp_asking import LABEL, called, host_of, listed
from mcp_world import odd_server, real_server
from waiting import until_soon


async def test_a_session_is_kept_and_nobody_else_works_in_it() -> None:
    async with real_server() as real, host_of(real.url) as host:
        await called(host, "weather", city="a")
        await called(host, "weather", city="b")
        assert host.sessions.open == 1
        await called(host, "weather", owner="bob", city="c")
        assert host.sessions.open == 2
        await called(host, "weather", {**LABEL, "authorization": "mine"}, city="d")
        assert host.sessions.open == 3


async def test_a_session_that_nobody_uses_is_closed() -> None:
    async with real_server() as real, host_of(real.url, idle=0.2) as host:
        await called(host, "weather", city="a")
        await until_soon(lambda: host.sessions.open == 0)
        assert (await called(host, "weather", city="b")).output == "It rains in b."


async def test_there_are_so_many_sessions_and_no_more() -> None:
    async with real_server() as real, host_of(real.url, max_sessions=1) as host:
        hanging = asyncio.create_task(called(host, "hang"))
        await real.comes_to("hang")
        ran = await called(host, "weather", owner="bob", city="a")
        assert "`max_sessions`" in ran.fields["error"]["message"]
        hanging.cancel()
        await asyncio.wait({hanging})
        assert (await called(host, "weather", owner="bob", city="a")).output == "It rains in a."
        assert host.sessions.open == 1


async def test_a_server_that_never_answers_is_given_up() -> None:
    async def answer(method: str, params: Any, request: web.Request) -> Any:
        await asyncio.Event().wait()

    async with odd_server(answer) as url, host_of(url, patience=0.5) as host:
        listing = await listed(host, LABEL)
        assert listing.error is not None
        assert listing.error["code"] == 504
        assert host.sessions.open == 0
