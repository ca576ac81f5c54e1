"""MCP servers of the official SDK, as processes: over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from waiting import until_soon

pytest.importorskip("mcp")

from isthmus import Bridge, http, stdio
from isthmus.errors import ConfigError, RequestRefused
from isthmus.testing import ScriptedModel, say
from isthmus.tools.mcp import OLDEST, McpServer, McpTarget, _adopt, scoped_name
from leaking import assert_silent, everything_of, listening

ROOT = Path(__file__).parents[2]
SERVER = str(Path(__file__).with_name("mcp_server.py"))
STDIO = stdio(sys.executable, SERVER, "stdio")


@asynccontextmanager
async def target(transport: str) -> AsyncIterator[McpTarget]:
    if transport == "stdio":
        yield STDIO
        return
    process = await asyncio.create_subprocess_exec(
        sys.executable, SERVER, "http", stderr=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        yield http(f"http://127.0.0.1:{port}/mcp", headers={"x-test": "1"})
    finally:
        process.terminate()
        await process.wait()


def test_the_extra_asks_for_the_oldest_version_that_has_what_we_use() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = [*project["project"]["optional-dependencies"]["mcp"], *project["dependency-groups"]["dev"]]
    assert [each for each in asked if each.startswith("mcp")] == [f"mcp>={OLDEST}"] * 2


def test_without_the_sdk_or_with_an_old_one_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("mcp.Client")

    async def main() -> None:
        async with Bridge() as bridge:
            await bridge.add_mcp(STDIO, name="s")

    with pytest.raises(ConfigError, match=rf"{OLDEST} or newer; install `isthmus\[mcp\]`"):
        asyncio.run(main())


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_9_tools_of_a_server_run_and_fail_as_results(transport: str) -> None:
    async def main() -> None:
        calls = [
            ("a", "github_search", {"query": "x", "limit": 2}),
            ("b", "github_fail", {}),
            ("c", "github_search", {}),
        ]
        model = ScriptedModel([say(calls=calls), "ok"])
        async with target(transport) as where, Bridge(connect=model) as bridge:
            await bridge.add_mcp(where, name="github")
            run = await bridge.run("any", "Go.")
            assert run.output == "ok"
            assert [one.status for one in run.tool_results] == ["ok", "error", "invalid_arguments"]
            assert run.tool_results[0].text == "2 hits for x"
            assert "the index is gone" in run.tool_results[1].text

    asyncio.run(main())


def test_9_two_servers_may_have_a_tool_of_the_same_name() -> None:
    async def main() -> None:
        model = ScriptedModel(
            [say(calls=[("a", "one_search", {"query": "x"}), ("b", "two_search", {"query": "y"})]), "ok"]
        )
        async with Bridge(connect=model) as bridge:
            await asyncio.gather(bridge.add_mcp(STDIO, name="one"), bridge.add_mcp(STDIO, name="two"))
            run = await bridge.run("any", "Go.")
            assert [one.text for one in run.tool_results] == ["3 hits for x", "3 hits for y"]
            with pytest.raises(RequestRefused, match="already an MCP server `one`"):
                await bridge.add_mcp(STDIO, name="one")

    asyncio.run(main())


def test_9_a_changed_list_is_read_again() -> None:
    async def main() -> None:
        async with Bridge(connect=ScriptedModel()) as bridge:
            server = await bridge.add_mcp(STDIO, name="s")
            assert server is not None
            await server.listening.wait()
            (grow,) = [one for one in bridge.tools if one.name == "s_grow"]
            await bridge.execute([{"id": "c", "name": grow.name, "arguments": {}}])
            await until_soon(lambda: "s_extra" in [one.name for one in bridge.tools])

    asyncio.run(main())


def test_9_closing_the_bridge_ends_the_server_and_its_tools() -> None:
    async def main() -> None:
        async with Bridge(connect=ScriptedModel()) as bridge:
            server = await bridge.add_mcp(STDIO, name="s")
            assert server is not None
            tools = list(server.tools)
        assert bridge.tools == []
        async with Bridge(connect=ScriptedModel()) as bridge:
            (result, *_) = await bridge.execute(
                [{"id": "c", "name": "s_search", "arguments": {"query": "x"}}], tools=tools
            )
            assert "not connected" in result.text

    asyncio.run(main())


@pytest.mark.parametrize("where", [stdio(sys.executable, "-c", "raise SystemExit(3)"), http("http://127.0.0.1:9/mcp")])
def test_9_a_server_that_cannot_be_reached_is_an_error_unless_it_is_not_required(where: McpTarget) -> None:
    async def main() -> None:
        async with Bridge(connect=ScriptedModel(["fine"])) as bridge:
            with pytest.raises(ConfigError, match="MCP server `gone`"):
                await bridge.add_mcp(where, name="gone")
            assert await bridge.add_mcp(where, name="gone", required=False) is None
            assert (await bridge.run("any", "Go.")).output == "fine"

    asyncio.run(main())


def test_9_one_bad_tool_costs_only_itself() -> None:
    def entry(name: str, schema: Any) -> Any:
        return SimpleNamespace(name=name, description="d" * 5_000, input_schema=schema)

    handler = McpServer(STDIO, "s")._handler
    tools, problems = _adopt("s", [entry("good", {"type": "object"}), entry("bad", {"type": "nonsense"})], handler)
    assert [one.name for one in tools] == ["s_good"]
    assert len(problems) == 1
    assert "`bad`" in problems[0]


def test_9_scoped_names_stay_within_what_providers_accept() -> None:
    assert scoped_name("github", "search/repos") == "github_search_repos"
    one, two = scoped_name("server", "x" * 90 + "1"), scoped_name("server", "x" * 90 + "2")
    assert len(one) == len(two) == 64
    assert one != two


SECRET = "mcp-oauth-5c0b7e91d2f84a36"


@pytest.mark.parametrize(
    "where",
    [
        http(f"http://joe:{SECRET}@127.0.0.1:1/mcp?key={SECRET}", headers={"Authorization": f"Bearer {SECRET}"}),
        http(f"http:// {SECRET}/mcp?key={SECRET}"),
        stdio(sys.executable, "-c", f"import sys; sys.exit('{SECRET}')", env={"KEY": SECRET}),
    ],
    ids=["nobody there", "no address", "a program that ends"],
)
def test_a_server_that_cannot_be_reached_is_told_without_its_secrets(where: McpTarget) -> None:
    async def main() -> str:
        async with Bridge(connect=ScriptedModel([])) as bridge:
            await bridge.add_mcp(where, name="gone", required=False)
            with pytest.raises(ConfigError) as refused:
                await bridge.add_mcp(where, name="gone")
        return everything_of(refused.value)

    with listening() as said:
        told = asyncio.run(main())
    ours = "\n".join(line for line in said.text.splitlines() if "mcp." in line)
    assert_silent([SECRET], error=told, log=ours, target=repr(where))


@pytest.mark.parametrize("failing", [True, False], ids=["a lost connection", "an error that repeats what it was sent"])
def test_a_call_that_fails_is_told_without_the_secrets_of_its_server(failing: bool) -> None:
    class Talkative:
        async def call_tool(self, name: str, arguments: Any) -> Any:
            if failing:
                raise RuntimeError(f"Client error 401 for url https://x/mcp?key={SECRET}")
            said = SimpleNamespace(type="text", text=f"you sent `Bearer {SECRET}`")
            return SimpleNamespace(content=[said], is_error=True, structured_content=None)

    server = McpServer(http(f"https://x/mcp?key={SECRET}", headers={"Authorization": f"Bearer {SECRET}"}), "s")
    server._client = Talkative()  # type: ignore[assignment]
    ((tool, *_), _) = _adopt("s", [SimpleNamespace(name="t", description="", input_schema={})], server._handler)

    async def main() -> Any:
        async with Bridge(connect=ScriptedModel([])) as bridge:
            return (await bridge.execute([{"id": "c", "name": "s_t", "arguments": {}}], tools=[tool]))[0]

    with listening() as said:
        result = asyncio.run(main())
    assert result.status == "error"
    assert "<redacted>" in result.text
    assert_silent([SECRET], model=result.text, program=everything_of(result.error.exception), log=said.text)
