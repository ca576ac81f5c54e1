"""MCP servers offered to clients: whose, which tools, and what a conversation says of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

pytest.importorskip("mcp")

from isthmus.bridge.types.managed import Managed, Ran
from isthmus.errors import RequestRefused
from mcp_asking import LABEL, SECRET, called, host_of, listed
from mcp_world import greet, odd_server, one_tool, real_server


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


async def test_a_provider_that_calls_servers_itself_is_left_alone_but_for_the_operators_own() -> None:
    async with host_of("http://127.0.0.1:1/mcp", patience=5.0) as host:
        theirs = {"type": "mcp", "server_label": "theirs", "server_url": "https://x.example/mcp"}
        found = await host.offer(Managed(native=frozenset({"mcp"})), [LABEL, theirs], [], "ann")
        assert list(found.mcp) == ["world"]


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


async def test_stripped_credentials_are_not_taken_for_an_address() -> None:
    async with host_of(allowed_hosts=("mcp.example.org",)) as host:
        mine = {"type": "mcp", "server_label": "m", "server_url": "https://mcp.example.org/<redacted>"}
        listing = await listed(host, mine)
        assert listing.error is not None
        assert "declare it again" in listing.error["message"]


async def test_a_plan_that_is_only_looked_at_asks_nobody() -> None:
    async with host_of("http://127.0.0.1:1/mcp") as host:
        theirs = {"type": "mcp", "server_label": "theirs", "server_url": "https://x.example/mcp"}
        found = host.foresee(Managed(), [LABEL, theirs], []).mcp
        assert found["world"].later
        assert found["world"].own
        assert found["theirs"].error is not None
        tools = [{"name": name, "input_schema": {}} for name in ("look", "act")]
        told = {"type": "mcp_list_tools", "server_label": "world", "tools": tools}
        narrowed = {**LABEL, "allowed_tools": ["look"]}
        known = host.foresee(Managed(), [narrowed], [told]).mcp["world"]
        assert ([tool["name"] for tool in known.tools], known.known, known.later) == (["look"], True, False)
        assert host.sessions.open == 0
