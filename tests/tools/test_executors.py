"""The same questions to every executor: whatever a tool does, its call has one result and the run goes on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from isthmus import Bridge, Limits, RunResult, Tool, http, stdio, tool
from isthmus.errors import ConfigError
from isthmus.testing import PATIENCE, ScriptedModel, say
from isthmus.tools.mcp import McpServer, join_tools
from isthmus.tools.messages import DocumentPart, ImagePart, OpaquePart, TextPart

SERVER = str(Path(__file__).with_name("unruly_server.py"))
STDIO = stdio(sys.executable, SERVER, "stdio")
EXECUTORS = ("function", "async function", "handler", "mcp stdio", "mcp http")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def fine() -> str:
    """Do as told."""
    return "fine"


def leave() -> str:
    """End the process, politely."""
    sys.exit(3)


def mumble() -> str:
    """Raise what cannot be shown."""
    raise Unspeakable


def half() -> str:
    """Return half a character."""
    return "\ud800"


let_go = threading.Event()


def hang() -> str:
    """Never answer."""
    let_go.wait(PATIENCE)
    return ""


DEEDS = (fine, leave, mumble, half, hang)


def _slow(function: Callable[[], str]) -> Tool[..., Any]:
    async def deed() -> str:
        if function is hang:
            await asyncio.Event().wait()
        return function()

    return tool(name=function.__name__, description=function.__doc__)(deed)


@asynccontextmanager
async def executor(kind: str, model: ScriptedModel) -> AsyncIterator[tuple[Bridge, str]]:
    """A bridge with the unruly tools, carried out in this way; and what their names begin with."""
    async with Bridge(connect=model) as bridge:
        if kind == "mcp stdio":
            await bridge.add_mcp(STDIO, name="s")
            yield bridge, "s_"
        elif kind == "mcp http":
            async with serving() as url:
                await bridge.add_mcp(http(url), name="s")
                yield bridge, "s_"
        else:
            make: Callable[[Callable[[], str]], Tool[..., Any]] = {
                "function": tool,
                "async function": _slow,
                "handler": lambda one: Tool.from_schema(one.__name__, "", {"type": "object"}, lambda given: one()),
            }[kind]
            bridge._own_tools = [make(one) for one in DEEDS]
            yield bridge, ""


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, SERVER, "http", stderr=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/mcp"
    finally:
        process.kill()
        await process.wait()


def run(kind: str, *deeds: str, tool_timeout: float = PATIENCE, **limits: Any) -> RunResult[str]:
    """A run in which the model asks for these deeds at once, reads the results, and is done."""
    model = ScriptedModel()

    async def main() -> RunResult[str]:
        async with executor(kind, model) as (bridge, prefix):
            calls = [(f"call_{place}", f"{prefix}{deed}", {}) for place, deed in enumerate(deeds)]
            model._script.extend([say(calls=calls), "ok"])
            bounds = Limits(tool_timeout=tool_timeout, cleanup_grace=0.2, max_consecutive_errors=9, **limits)
            try:
                return await bridge.run("any", "Go.", limits=bounds)
            finally:
                let_go.set()

    let_go.clear()
    result = asyncio.run(main())
    assert len(model.requests) == 2
    str(model.requests[1]["input"]).encode()  # what goes out next can be sent
    return result


@pytest.mark.parametrize("kind", EXECUTORS)
class TestEveryExecutor:
    def test_a_tool_that_ends_the_process_ends_its_call(self, kind: str) -> None:
        # An MCP server that leaves takes its other calls along, which then wait for their time: give it little.
        result = run(kind, "leave", tool_timeout=PATIENCE if not kind.startswith("mcp") else 2)
        assert (result.output, len(result.tool_results)) == ("ok", 1)
        assert not result.tool_results[0].ok

    def test_an_exception_that_cannot_be_shown_is_a_failed_call(self, kind: str) -> None:
        result = run(kind, "mumble", "fine", tool_timeout=PATIENCE if not kind.startswith("mcp") else 2)
        assert (result.output, result.tool_results[0].ok) == ("ok", False)
        assert (result.tool_results[1].status, result.tool_results[1].text) == ("ok", "fine")

    def test_half_a_character_never_leaves_the_run(self, kind: str) -> None:
        if kind.startswith("mcp"):  # the official server cannot spell it, and falls over
            result = run(kind, "half", tool_timeout=2)
            assert (result.output, len(result.tool_results)) == ("ok", 1)
            result.tool_results[0].text.encode()
            return
        result = run(kind, "half", "fine")
        assert [one.text for one in result.tool_results] == ["\ufffd", "fine"]
        assert result.tool_results[0].value == "\ud800", "the program keeps what the tool returned"
        assert result.output == "ok"

    def test_one_that_never_answers_costs_its_own_time_only(self, kind: str) -> None:
        result = run(kind, "hang", "fine", tool_timeout=1.0)
        assert [one.status for one in result.tool_results] == ["timeout", "ok"]

    def test_of_very_many_calls_in_one_reply_so_many_run_as_may(self, kind: str) -> None:
        result = run(kind, *["fine"] * 40, max_calls_per_reply=5)
        assert result.output == "ok"
        assert [one.status for one in result.tool_results] == ["ok"] * 5 + ["skipped"] * 35
        assert "only 5 calls" in result.tool_results[5].text


def test_ten_thousand_calls_in_one_reply_are_answered_and_128_run() -> None:
    done: list[int] = []

    @tool
    async def count(n: int) -> str:
        """Count."""
        done.append(n)
        return ""

    model = ScriptedModel([say(calls=[(f"c{n}", "count", {"n": n}) for n in range(10_000)]), "ok"])

    async def main() -> RunResult[str]:
        async with Bridge(connect=model) as bridge:
            return await bridge.run("any", "Go.", tools=[count])

    result = asyncio.run(main())
    assert (result.output, len(result.tool_results), len(done)) == ("ok", 10_000, 128)


def test_calls_carried_out_by_hand_are_bounded_too() -> None:
    async def main() -> list[str]:
        async with Bridge(connect=ScriptedModel(), tools=[fine]) as bridge:
            calls = [{"id": f"c{n}", "name": "fine", "arguments": {}} for n in range(9)]
            return [one.status for one in await bridge.execute(calls, limits=Limits(max_calls_per_reply=4))]

    assert asyncio.run(main()) == ["ok"] * 4 + ["skipped"] * 5


@pytest.mark.parametrize("ending", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), BaseException("odd")])
def test_whatever_a_thread_raises_is_a_failed_call(ending: BaseException) -> None:
    @tool
    def end() -> None:
        """End."""
        raise ending

    async def main() -> str:
        async with Bridge(connect=ScriptedModel(), tools=[end]) as bridge:
            return (await bridge.execute([{"id": "c", "name": "end", "arguments": {}}]))[0].status

    assert asyncio.run(main()) == "error"


@pytest.mark.parametrize(
    "value",
    [
        {"deep": ["\ud800"]},
        [TextPart("\ud83d"), TextPart("\ude00")],
        TextPart(5),  # type: ignore[arg-type]
        ImagePart("https://x/\udfff"),
        DocumentPart("\ud800.pdf", data="data:,x"),
        OpaquePart({"type": "message"}),
        [[TextPart("x"), object()]],
    ],
    ids=["in a value", "two halves", "no text", "address", "file name", "item", "object"],
)
def test_results_that_cannot_be_sent_are_told_as_such_or_mended(value: object) -> None:
    model = ScriptedModel([say(calls=[("c", "give", {})]), "ok"])

    async def main() -> RunResult[str]:
        async with Bridge(connect=model) as bridge:
            give = Tool.from_schema("give", "", {"type": "object"}, lambda given: value)
            return await bridge.run("any", "Go.", tools=[give])

    assert asyncio.run(main()).output == "ok"
    str(model.requests[1]["input"]).encode()


@pytest.mark.parametrize("on_error", [lambda error: 1 / 0, lambda error: 5, lambda error: str(error)])
def test_words_for_an_error_that_fail_themselves_give_way(on_error: Any) -> None:
    @tool(on_error=on_error)
    def mumble() -> None:
        """Raise what cannot be shown."""
        raise Unspeakable

    async def main() -> Any:
        async with Bridge(connect=ScriptedModel(), tools=[mumble]) as bridge:
            return (await bridge.execute([{"id": "c", "name": "mumble", "arguments": {}}]))[0]

    result = asyncio.run(main())
    assert result.status == "error"
    assert result.text in ("`mumble` failed", "5")


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_mcp_tools_whose_names_become_the_same_one_are_told_apart(transport: str) -> None:
    async def main() -> None:
        model = ScriptedModel()
        async with executor(f"mcp {transport}", model) as (bridge, _):
            names = {one.name for one in bridge.tools}
            (marked,) = [name for name in names if name.startswith("s_a_b_")]
            model._script.extend([say(calls=[("a", marked, {}), ("b", "s_a_b", {})]), "ok"])
            result = await bridge.run("any", "Go.")
            assert [one.text for one in result.tool_results] == ["dotted", "scored"]

    asyncio.run(main())


def test_a_name_that_two_servers_or_a_tool_of_ones_own_take_is_marked() -> None:
    def server(name: str, *tools: str) -> McpServer:
        made = McpServer(STDIO, name)
        made.tools = [Tool.from_schema(f"{name}_{each}", name, {"type": "object"}, lambda given: 1) for each in tools]
        return made

    own = tool(name="x_y")(fine)
    joined = join_tools([own], [server("a", "b_c"), server("a_b", "c"), server("x", "y")])
    names = [one.name for one in joined]
    assert names[:2] == ["x_y", "a_b_c"]
    assert len(set(names)) == 4
    assert names == [one.name for one in join_tools([own], [server("a", "b_c"), server("a_b", "c"), server("x", "y")])]


def children() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "status").read_text()
            except OSError:
                continue
            if f"PPid:\t{os.getpid()}\n" in status and "State:\tZ" not in status:
                found.add(int(entry.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="children are read from /proc")
@pytest.mark.parametrize("required", [True, False])
def test_a_silent_mcp_server_is_given_up_in_time_and_leaves_nothing_behind(required: bool) -> None:
    before = children()

    async def main() -> float:
        loop = asyncio.get_running_loop()
        async with Bridge(connect=ScriptedModel()) as bridge:
            started = loop.time()
            adding = bridge.add_mcp(stdio(sys.executable, SERVER, "silent"), name="s", required=required, within=0.5)
            if required:
                with pytest.raises(ConfigError, match=r"did not answer within 0\.5 s"):
                    await adding
            else:
                assert await adding is None
            return loop.time() - started

    assert asyncio.run(main()) < 9, "its farewell alone took 12 s, and the caller waited for it"
    assert children() <= before
