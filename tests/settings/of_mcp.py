"""Proofs for `[mcp.NAME]`: who is called, with what, which tools, and how much of it."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from isthmus.errors import ConfigError
from isthmus.testing import ScriptedUpstream, chat
from isthmus.upstream.mcp.host import McpHost
from mcp_world import greet, odd_server
from settings.proving import Scene, ask, proves

AT = "mcp.world."
UPSTREAM = {"providers.main.base_url": '"@UPSTREAM@"'}
OWN = {AT + "url": '"@SERVER@"'}
FREE = {"type": "mcp", "server_label": "world", "require_approval": "never"}
TOOLS = [
    {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "write", "inputSchema": {"type": "object"}, "description": "w" * 3000},
]


class Heard:
    """What the server was shown, and what the model was offered."""

    def __init__(self) -> None:
        self.headers: list[str] = []
        self.offered: list[str] = []
        self.output: list[dict[str, Any]] = []

    @property
    def error(self) -> str:
        return str(self.output[0].get("error")) if self.output else ""


async def _asked(scene: Scene, tool: dict[str, Any] | None = None, *, calls: str = "", hangs: bool = False) -> Heard:
    heard = Heard()

    async def answer(method: str, params: Any, request: web.Request) -> Any:
        heard.headers.append(request.headers.get("x-token", ""))
        if hangs:
            await asyncio.Event().wait()
        if method == "tools/call":
            return {"result": {"content": [{"type": "text", "text": "done"}]}}
        return greet(method) or {"result": {"tools": TOOLS}}

    first = [chat(calls=[("c", calls, {})])] if calls else []
    async with odd_server(answer) as url:
        with ScriptedUpstream.running(first, default=chat("ok")) as upstream:
            beside = UPSTREAM if scene.proof.at in (AT + "url", AT + "allowed_hosts", AT + "private_hosts") else OWN
            port = url.removesuffix("/mcp").rpartition(":")[2]
            try:
                loaded = scene.gateway({**UPSTREAM, **beside}, UPSTREAM=upstream.base_url, SERVER=url, PORT=port)
                async with loaded as gateway:
                    declared = {key: _fill(value, url) for key, value in (tool or FREE).items()}
                    heard.output = (await ask(gateway, tools=[declared]))["output"]
                    heard.offered = [each["function"]["name"] for each in upstream.requests[0].json.get("tools") or ()]
            except ConfigError as refused:
                raise AssertionError("it was refused") from refused
    return heard


def _fill(value: Any, url: str) -> Any:
    return value.replace("@SERVER@", url) if isinstance(value, str) else value


async def _bounds(scene: Scene) -> Any:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        places = {"UPSTREAM": upstream.base_url, "SERVER": "http://127.0.0.1:1/mcp"}
        async with scene.gateway({**UPSTREAM, **OWN}, **places) as gateway:
            host = gateway.hosted._tools["mcp"]
            assert isinstance(host, McpHost)
            return host.sessions._bounds["world"]


@proves("mcp.NAME.url", '"@SERVER@"', at=AT + "url", instead='"http://127.0.0.1:1/mcp"')
async def it_is_asked_there(scene: Scene) -> None:
    assert (await _asked(scene)).offered == ["world__look", "world__write"]


@proves("mcp.NAME.headers", '{ "X-Token" = "of the operator" }', at=AT + "headers")
async def it_is_shown_them(scene: Scene) -> None:
    assert set((await _asked(scene)).headers) == {"of the operator"}


@proves("mcp.NAME.allowed_hosts", '["mcp.invalid"]', at=AT + "allowed_hosts", instead='["other.invalid"]')
async def a_clients_own_server_on_it_is_called(scene: Scene) -> None:
    heard = await _asked(scene, {**FREE, "server_url": "https://mcp.invalid/mcp"})
    assert "cannot be reached" in heard.error


@proves("mcp.NAME.private_hosts", '["127.0.0.1:@PORT@"]', at=AT + "private_hosts", instead='["127.0.0.1:1"]')
async def a_clients_own_server_inside_is_called(scene: Scene) -> None:
    assert (await _asked(scene, {**FREE, "server_url": "@SERVER@"})).offered == ["world__look", "world__write"]


@proves("mcp.NAME.allowed_tools", '["wri*"]', at=AT + "allowed_tools")
async def no_other_tool_is_offered(scene: Scene) -> None:
    assert (await _asked(scene)).offered == ["world__write"]


@proves("mcp.NAME.read_only", "true", at=AT + "read_only")
async def nothing_that_writes_is_offered(scene: Scene) -> None:
    assert (await _asked(scene)).offered == ["world__look"]


@proves("mcp.NAME.require_approval", '"writes"', at=AT + "require_approval")
async def what_writes_waits_for_the_user(scene: Scene) -> None:
    heard = await _asked(scene, calls="world__write")
    assert heard.output[-1]["type"] == "mcp_approval_request"


@proves("mcp.NAME.timeout", "0.3", at=AT + "timeout", instead="1.5")
async def a_silent_server_is_given_up_after_it(scene: Scene) -> None:
    assert "within 0.3 s" in (await _asked(scene, hangs=True)).error


@proves("mcp.NAME.idle", "77", at=AT + "idle")
async def an_unused_connection_is_closed_after_it(scene: Scene) -> None:
    assert (await _bounds(scene)).idle == 77


@proves("mcp.NAME.max_sessions", "3", at=AT + "max_sessions")
async def there_are_no_more_connections(scene: Scene) -> None:
    assert (await _bounds(scene)).max_sessions == 3


@proves("mcp.NAME.max_tools", "1", at=AT + "max_tools")
async def the_rest_is_left_out(scene: Scene) -> None:
    assert (await _asked(scene)).offered == ["world__look"]


@proves("mcp.NAME.max_reply", "2000", at=AT + "max_reply")
async def a_longer_answer_is_not_taken(scene: Scene) -> None:
    heard = await _asked(scene)
    assert heard.offered == []
    assert "2000 bytes" in heard.error
