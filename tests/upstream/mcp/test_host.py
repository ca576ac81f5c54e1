"""MCP servers called for clients: a real one of the official SDK, and some that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

pytest.importorskip("mcp")

from isthmus.bridge.tools.mcp_rules import McpRule
from isthmus.bridge.types.managed import Listing, Managed, ManagedCall, Ran
from isthmus.errors import RequestRefused
from isthmus.upstream.mcp.host import McpHost, Server
from isthmus.upstream.mcp.sessions import Bounds, Sessions
from leaking import assert_silent, listening
from mcp_world import greet, odd_server, one_tool, real_server
from waiting import until_soon

LABEL = {"type": "mcp", "server_label": "world"}
SECRET = "token-4e1f90a7c2b85d36"


@asynccontextmanager
async def host_of(
    url: str = "", *, headers: dict[str, str] | None = None, patience: float = 20.0, **more: Any
) -> AsyncIterator[McpHost]:
    """The operator's server `world` at `url`, or whatever rule is given."""
    bounds = {name: more.pop(name) for name in ("idle", "max_sessions", "max_tools", "max_reply") if name in more}
    rule = McpRule("world", url, frozenset(name.lower() for name in headers or {}), **more)
    server = Server(rule, headers or {}, patience, Bounds(patience, **bounds))
    made = McpHost({"world": server}, Sessions({"world": server.bounds}))
    try:
        yield made
    finally:
        await made.aclose()


async def listed(host: McpHost, tool: dict[str, Any], owner: str = "ann", **more: Any) -> Listing:
    (listing,) = (await host.offer(Managed(), [tool], more.pop("items", []), owner)).mcp.values()
    return listing


async def called(
    host: McpHost, tool_name: str, tool: dict[str, Any] = LABEL, owner: str = "ann", **arguments: Any
) -> Ran:
    call = ManagedCall("mcp_1", "mcp", tool_name, arguments, tool)
    return await host.runner(owner).run(call, lambda kind, fields: None)


async def test_a_named_server_is_listed_and_called_by_its_label_alone() -> None:
    async with real_server() as real, host_of(real.url, headers={"X-Token": SECRET}) as host:
        listing = await listed(host, LABEL)
        assert listing.error is None
        assert listing.own
        (weather,) = [one for one in listing.tools if one["name"] == "weather"]
        assert weather["description"] == "The weather in a city."
        assert weather["input_schema"]["required"] == ["city"]
        assert weather["annotations"] == {"readOnlyHint": True}
        ran = await called(host, "weather", city="Riga")
        assert ran == Ran("It rains in Riga.", {"output": "It rains in Riga.", "error": None})
        seen = await real.seen()
        assert {each["headers"].get("x-token") for each in seen["requests"]} == {SECRET}


async def test_a_failing_tool_is_a_result_that_the_model_reads() -> None:
    async with real_server() as real, host_of(real.url) as host:
        ran = await called(host, "fail")
        assert ran.failed
        assert "the archive burnt down" in str(ran.output)
        assert ran.fields["error"]["type"] == "mcp_tool_execution_error"
        assert "the archive burnt down" in ran.fields["error"]["content"][0]["text"]
        assert ran.fields["output"] is None


async def test_a_picture_is_shown_to_the_model_and_told_of_in_the_item() -> None:
    async with real_server() as real, host_of(real.url) as host:
        ran = await called(host, "picture")
        assert isinstance(ran.output, list)
        assert [part["type"] for part in ran.output] == ["input_text", "input_image"]
        assert ran.output[1]["image_url"].startswith("data:image/png;base64,")
        assert ran.fields["output"] == "Here it is:\n[an image]"


async def test_progress_keeps_a_call_alive_and_silence_ends_it() -> None:
    async with real_server() as real, host_of(real.url, patience=4.0) as host:
        assert (await called(host, "slowly", steps=6, pause=0.8)).output == "done at last"
        ran = await called(host, "hang")
        words = "it did not answer within 4 s (`timeout`)"
        assert ran.fields["error"] == {"type": "http_error", "code": 504, "message": words}


async def test_a_session_is_kept_and_nobody_else_works_in_it() -> None:
    async with real_server() as real, host_of(real.url) as host:
        await called(host, "weather", city="a")
        await called(host, "weather", city="b")
        assert host.sessions.open == 1
        await called(host, "weather", owner="bob", city="c")
        assert host.sessions.open == 2
        await called(host, "weather", {**LABEL, "authorization": "mine"}, city="d")
        assert host.sessions.open == 3


async def test_a_server_that_was_started_anew_is_asked_again() -> None:
    async with real_server() as real, host_of(real.url) as host:
        await called(host, "weather", city="before")
        await real.restart()
        ran = await called(host, "weather", city="after")
        assert ran.output == "It rains in after."
        assert await real.calls() == ["weather after"]


async def test_a_server_that_dies_in_a_call_is_a_failed_call() -> None:
    async with real_server() as real, host_of(real.url, patience=5.0) as host:
        ran = await called(host, "die")
        assert ran.failed
        listing = await listed(host, LABEL, owner="bob")
        assert listing.error is not None
        assert listing.error["type"] == "http_error"
        assert listing.own  # a provider that calls servers itself could not call this one


async def test_a_changed_list_is_believed() -> None:
    async with real_server() as real, host_of(real.url, idle=0.5) as host:
        assert "weather" in {one["name"] for one in (await listed(host, LABEL)).tools}
        await called(host, "change")
        assert (await called(host, "extra")).output == "new"

        while "weather" in {one["name"] for one in (await listed(host, LABEL)).tools}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        ran = await called(host, "weather", city="nowhere")
        assert ran.failed
        assert "has no tool `weather`" in str(ran.output)


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


# ── what a conversation says ───────────────────────────────────────────────────────────────────────────


def told(*names: str) -> dict[str, Any]:
    tools = [
        {"name": name, "input_schema": {"type": "object"}, "annotations": {"readOnlyHint": True}} for name in names
    ]
    return {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "world", "tools": tools}


async def test_a_list_in_the_conversation_spares_the_question() -> None:
    async with real_server() as real, host_of(real.url) as host:
        listing = await listed(host, LABEL, items=[told("weather")])
        assert listing.known
        assert [one["name"] for one in listing.tools] == ["weather"]
        assert (await real.seen())["requests"] == []


async def test_a_list_that_somebody_made_up_calls_nothing() -> None:
    async with real_server() as real, host_of(real.url, allowed_tools=("weather", "secret")) as host:
        listing = await listed(host, LABEL, items=[told("weather", "delete", "secret")])
        assert [one["name"] for one in listing.tools] == ["weather", "secret"]
        for name in ("delete", "secret"):
            ran = await called(host, name, name="x")
            assert f"has no tool `{name}` that may be called" in str(ran.output)
        assert await real.calls() == []


async def test_where_the_operator_relies_on_the_server_no_conversation_is_believed() -> None:
    async with real_server() as real, host_of(real.url, approval="writes") as host:
        never = {**LABEL, "require_approval": "never"}
        listing = await listed(host, never, items=[told("weather", "delete")])
        assert listing.known
        assert "delete" in listing.asks
        assert "weather" not in listing.asks
    async with real_server() as real, host_of(real.url, read_only=True) as host:
        assert "delete" not in {one["name"] for one in (await listed(host, LABEL, items=[told("delete")])).tools}
        assert (await called(host, "delete", name="x")).failed
        assert await real.calls() == []


# ── servers of clients ─────────────────────────────────────────────────────────────────────────────────


async def test_a_clients_own_server_is_called_where_the_operator_named_its_host() -> None:
    async with real_server() as real, host_of(private_hosts=(f"127.0.0.1:{real.port}",)) as host:
        mine = {"type": "mcp", "server_label": "mine", "server_url": real.url, "authorization": SECRET}
        assert (await listed(host, mine)).error is None
        assert (await called(host, "weather", mine, city="Oslo")).output == "It rains in Oslo."
        seen = await real.seen()
        assert {each["headers"].get("authorization") for each in seen["requests"]} == {f"Bearer {SECRET}"}


@pytest.mark.parametrize(
    "url", ["https://elsewhere.example/mcp", "http://127.0.0.1:1/mcp", "https://169.254.169.254/", "file:///etc/passwd"]
)
async def test_any_other_server_of_a_client_is_not_called(url: str) -> None:
    async with host_of(allowed_hosts=("mcp.example.org",)) as host:
        mine = {"type": "mcp", "server_label": "mine", "server_url": url}
        listing = await listed(host, mine)
        assert listing.error is not None
        assert listing.error["message"].startswith("its `server_url` ")
        ran = await called(host, "weather", mine)
        assert ran.failed
        assert host.sessions.open == 0


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


async def test_what_the_operator_shows_no_client_replaces() -> None:
    async with real_server() as real, host_of(real.url, headers={"Authorization": "Bearer of the operator"}) as host:
        for mine in ({"authorization": "x"}, {"headers": {"AUTHORIZATION": "x"}}):
            with pytest.raises(RequestRefused, match="shown the operator's own `authorization`") as refused:
                await listed(host, {**LABEL, **mine})
            assert refused.value.param == "tools"


async def test_two_servers_of_one_label_are_refused() -> None:
    async with host_of("http://127.0.0.1:1/mcp") as host:
        with pytest.raises(RequestRefused, match="two MCP servers are called `world`"):
            await host.offer(Managed(), [LABEL, {**LABEL, "server_url": "https://x.example/"}], [], "ann")


async def test_a_server_that_repeats_what_it_was_shown_tells_nobody() -> None:
    async with real_server() as real, host_of(real.url, headers={"X-Token": SECRET}) as host:
        own = "client-7b1d5e9f3c2a4468"
        with listening() as said:
            ran = await called(host, "whoami", {**LABEL, "authorization": own, "headers": {"X-Mine": own + "2"}})
        assert "<redacted>" in str(ran.output)
        assert_silent([SECRET, own, own + "2"], output=str(ran), log=said.text)


async def test_a_provider_that_calls_servers_itself_is_left_alone_but_for_the_operators_own() -> None:
    async with host_of("http://127.0.0.1:1/mcp", patience=5.0) as host:
        theirs = {"type": "mcp", "server_label": "theirs", "server_url": "https://x.example/mcp"}
        found = await host.offer(Managed(native=frozenset({"mcp"})), [LABEL, theirs], [], "ann")
        assert list(found.mcp) == ["world"]


# ── servers that misbehave ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [401, 403, 500, 503])
async def test_a_refusal_by_http_is_told_with_its_code(status: int) -> None:
    async def answer(method: str, params: Any, request: web.Request) -> Any:
        return web.Response(status=status, text=f"you sent {request.headers.get('x-token')}")

    async with odd_server(answer) as url, host_of(url, headers={"X-Token": SECRET}) as host:
        with listening() as said:
            listing = await listed(host, LABEL)
        assert listing.error == {"type": "http_error", "code": status, "message": f"the server answered HTTP {status}"}
        assert_silent([SECRET], log=said.text)


async def test_an_error_of_json_rpc_is_a_protocol_error_without_what_was_shown() -> None:
    async def answer(method: str, params: Any, request: web.Request) -> Any:
        if method == "tools/call":
            return {"error": {"code": -32099, "message": f"bad token {SECRET}"}}
        return greet(method) or {"result": {"tools": [one_tool()]}}

    async with odd_server(answer) as url, host_of(url, headers={"X-Token": SECRET}) as host:
        ran = await called(host, "t")
        error = {"type": "mcp_protocol_error", "code": -32099, "message": "bad token <redacted>"}
        assert ran.fields["error"] == error


async def test_a_list_without_an_end_ends() -> None:
    pages = 0

    async def answer(method: str, params: Any, request: web.Request) -> Any:
        nonlocal pages
        if (said := greet(method)) is not None:
            return said
        pages += 1
        return {"result": {"tools": [one_tool(f"t{pages}")] if pages < 3 else [], "nextCursor": f"page {pages}"}}

    async with odd_server(answer) as url, host_of(url) as host:
        assert [one["name"] for one in (await listed(host, LABEL)).tools] == ["t1", "t2"]
        assert pages <= 100


async def test_of_too_many_tools_the_first_are_taken() -> None:
    async def answer(method: str, params: Any, request: web.Request) -> Any:
        return greet(method) or {"result": {"tools": [one_tool(f"t{number}") for number in range(50)]}}

    async with odd_server(answer) as url, host_of(url, max_tools=3) as host:
        assert [one["name"] for one in (await listed(host, LABEL)).tools] == ["t0", "t1", "t2"]


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


async def test_a_list_that_is_too_long_is_not_taken() -> None:
    async def answer(method: str, params: Any, request: web.Request) -> Any:
        if (said := greet(method)) is not None:
            return said
        page = int(params.get("cursor") or 0)
        tools = [{**one_tool(f"t{page}"), "description": "d" * 40_000}]
        return {"result": {"tools": tools, "nextCursor": str(page + 1)}}

    async with odd_server(answer) as url, host_of(url, max_reply=200_000) as host:
        listing = await listed(host, LABEL)
        assert listing.error is not None
        assert "longer than 200000 bytes" in listing.error["message"]


async def test_a_server_that_never_answers_is_given_up() -> None:
    async def answer(method: str, params: Any, request: web.Request) -> Any:
        await asyncio.Event().wait()

    async with odd_server(answer) as url, host_of(url, patience=0.5) as host:
        listing = await listed(host, LABEL)
        assert listing.error is not None
        assert listing.error["code"] == 504
        assert host.sessions.open == 0


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


async def test_stripped_credentials_are_not_taken_for_an_address() -> None:
    async with host_of(allowed_hosts=("mcp.example.org",)) as host:
        mine = {"type": "mcp", "server_label": "m", "server_url": "https://mcp.example.org/<redacted>"}
        listing = await listed(host, mine)
        assert listing.error is not None
        assert "declare it again" in listing.error["message"]
