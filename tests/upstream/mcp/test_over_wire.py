"""The way to an MCP server: where it leads, how much comes back, and what a refusal is called."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from aiohttp import web

pytest.importorskip("mcp")

from isthmus.bridge.tools.mcp_rules import McpRule
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.mcp.host import McpHost, Server
from isthmus.upstream.mcp.over_wire import OverWire
from isthmus.upstream.mcp.sessions import Bounds, Sessions
from isthmus.upstream.wire import Wire
from leaking import assert_silent, listening
from mcp_asking import LABEL, SECRET, called, host_of, listed
from mcp_world import greet, odd_server, one_tool


async def test_an_allowed_host_that_leads_into_a_private_network_is_not_called() -> None:
    async def lookup(host: str, port: int) -> list[str]:
        return ["10.0.0.1"]

    rule = McpRule("world", allowed_hosts=("mcp.example.org",))
    server = Server(rule, timeout=5.0, bounds=Bounds(5.0))
    host = McpHost({"world": server}, Sessions({"world": server.bounds}, lookup))
    try:
        mine = {"type": "mcp", "server_label": "mine", "server_url": "https://mcp.example.org/mcp"}
        listing = await listed(host, mine)
        assert listing.error is not None
        assert "none of which may be called" in listing.error["message"]
    finally:
        await host.aclose()


@pytest.mark.parametrize("status", [401, 403, 500, 503])
async def test_a_refusal_by_http_is_told_with_its_code(status: int) -> None:
    async def answer(method: str, params: Any, request: web.Request) -> Any:
        return web.Response(status=status, text=f"you sent {request.headers.get('x-token')}")

    async with odd_server(answer) as url, host_of(url, headers={"X-Token": SECRET}) as host:
        with listening() as said:
            listing = await listed(host, LABEL)
        assert listing.error == {"type": "http_error", "code": status, "message": f"the server answered HTTP {status}"}
        assert_silent([SECRET], log=said.text)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_of_100_megabytes_is_not_taken(kind: str) -> None:
    sent = 0

    async def answer(method: str, params: Any, request: web.Request) -> Any:
        nonlocal sent
        if method != "tools/call":
            return greet(method) or {"result": {"tools": [one_tool()]}}
        response = web.StreamResponse(headers={"content-type": kind})
        await response.prepare(request)
        start = b'{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "'
        await response.write((b"event: message\ndata: " if "event" in kind else b"") + start)
        for _ in range(1600):
            await response.write(b"x" * 65536)
            sent += 65536
        return response

    async with odd_server(answer) as url, host_of(url, max_reply=200_000) as host:
        ran = await called(host, "t")
        assert ran.failed
        assert "200000" in str(ran.output)
        assert sent < 50_000_000


@pytest.mark.parametrize("to", ["http://127.0.0.1:1/", "https://elsewhere.example/", "/elsewhere"])
async def test_a_redirect_leads_nowhere_else(to: str) -> None:
    visited: list[str] = []

    async def answer(method: str, params: Any, request: web.Request) -> Any:
        visited.append(request.path)
        return web.Response(status=302, headers={"location": to})

    async with odd_server(answer) as url, host_of(url) as host:
        listing = await listed(host, LABEL)
        assert listing.error is not None
        assert set(visited) == {"/mcp"}


async def send(url: str, method: str = "POST", most: int = 1000, **headers: str) -> httpx2.Response:
    transport = OverWire(Wire(Endpoint("s", url, called="the server", trust_env=False)), most)
    async with httpx2.AsyncClient(transport=transport, headers=headers) as client:
        return await client.request(method, url, content=b'{"id": 1, "method": "x"}')


async def test_what_the_connection_writes_is_written_once_and_by_the_wire() -> None:
    seen: list[Any] = []

    async def answer(method: str, params: Any, request: web.Request) -> Any:
        seen.append(request.headers.copy())
        return {"result": {}}

    async with odd_server(answer) as url:
        response = await send(url, **{"x-token": SECRET, "user-agent": "somebody else"})
        assert response.status_code == 200
    assert seen[0]["x-token"] == SECRET
    assert seen[0]["user-agent"] == "isthmus"
    assert seen[0].getall("content-length") == ["24"]


@pytest.mark.parametrize(
    ("status", "body", "session", "code"),
    [
        (404, "", "", -32601),
        (404, "", "s", -32600),
        (401, "no", "", -32603),
        (400, '{"error": {"code": -32022, "message": "old"}}', "", -32022),
        (400, '{"error": "no object"}', "", -32603),
    ],
)
async def test_a_refusal_says_what_the_sdk_goes_by(status: int, body: str, session: str, code: int) -> None:
    async def answer(method: str, params: Any, request: web.Request) -> Any:
        return web.Response(status=status, text=body)

    async with odd_server(answer) as url:
        response = await send(url, **({"mcp-session-id": session} if session else {}))
    assert response.status_code == status
    assert response.json()["error"]["code"] == code


async def test_nobody_there_is_an_answer_for_a_call_and_an_error_for_a_stream() -> None:
    response = await send("http://127.0.0.1:1/mcp")
    assert "cannot be reached" in response.json()["error"]["message"]
    with pytest.raises(httpx2.TransportError, match="cannot be reached"):
        await send("http://127.0.0.1:1/mcp", "GET")
