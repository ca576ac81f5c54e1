"""One call of an MCP tool: whatever happens, a result."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

pytest.importorskip("mcp")

from mcp_asking import SECRET, called, host_of
from mcp_world import greet, odd_server, one_tool, real_server


async def test_a_failing_tool_is_a_result_that_the_model_reads() -> None:
    async with real_server() as real, host_of(real.url) as host:
        ran = await called(host, "fail")
        assert ran.failed
        assert "the archive burnt down" in str(ran.output)
        assert ran.fields["error"]["type"] == "mcp_tool_execution_error"
        assert "the archive burnt down" in ran.fields["error"]["content"][0]["text"]
        assert ran.fields["output"] is None


async def test_progress_keeps_a_call_alive_and_silence_ends_it() -> None:
    async with real_server() as real, host_of(real.url, patience=4.0) as host:
        assert (await called(host, "slowly", steps=6, pause=0.8)).output == "done at last"
        ran = await called(host, "hang")
        words = "it did not answer within 4 s (`timeout`)"
        assert ran.fields["error"] == {"type": "http_error", "code": 504, "message": words}


async def test_a_server_that_was_started_anew_is_asked_again() -> None:
    async with real_server() as real, host_of(real.url) as host:
        await called(host, "weather", city="before")
        await real.restart()
        ran = await called(host, "weather", city="after")
        assert ran.output == "It rains in after."
        assert await real.calls() == ["weather after"]


async def test_an_error_of_json_rpc_is_a_protocol_error_without_what_was_shown() -> None:
    async def answer(method: str, params: Any, request: web.Request) -> Any:
        if method == "tools/call":
            return {"error": {"code": -32099, "message": f"bad token {SECRET}"}}
        return greet(method) or {"result": {"tools": [one_tool()]}}

    async with odd_server(answer) as url, host_of(url, headers={"X-Token": SECRET}) as host:
        ran = await called(host, "t")
        error = {"type": "mcp_protocol_error", "code": -32099, "message": "bad token <redacted>"}
        assert ran.fields["error"] == error


async def test_calls_beside_one_that_breaks_go_on() -> None:
    async def answer(method: str, params: Any, request: web.Request) -> Any:
        if method != "tools/call":
            return greet(method) or {"result": {"tools": [one_tool()]}}
        if params["arguments"].get("breaks"):
            assert request.transport is not None
            request.transport.abort()
        return {"result": {"content": [{"type": "text", "text": "fine"}]}}

    async with odd_server(answer) as url, host_of(url) as host:
        broken, fine = await asyncio.gather(called(host, "t", breaks=True), called(host, "t"))
        assert broken.failed
        assert fine.output == "fine"
        assert (await called(host, "t")).output == "fine"
        assert host.sessions.open == 1


async def test_a_session_that_the_server_has_forgotten_is_opened_anew_once() -> None:
    opened, called_in = 0, list[str]()

    async def answer(method: str, params: Any, request: web.Request) -> Any:
        nonlocal opened
        if method == "initialize":
            opened += 1
            return {**(greet(method) or {}), "headers": {"mcp-session-id": f"session {opened}"}}
        if method == "tools/call":
            called_in.append(request.headers["mcp-session-id"])
            if params["arguments"].get("always") or called_in[-1] == "session 1":
                return web.Response(status=404)
            return {"result": {"content": [{"type": "text", "text": "done"}]}}
        return greet(method) or {"result": {"tools": [one_tool()]}}

    async with odd_server(answer) as url, host_of(url) as host:
        assert (await called(host, "t")).output == "done"
        assert called_in == ["session 1", "session 2"]
        ran = await called(host, "t", always=True)
        assert ran.fields["error"]["code"] == 404
        assert called_in == ["session 1", "session 2", "session 2", "session 3"]
