"""Claude Code's tools on models of four strict vendors: every kind of tool, to a real effect on disk."""

from __future__ import annotations

import base64
import json
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from isthmus.testing import chat, chat_chunks, stream
from real.claude.rig import MODELS, real, result_of, results, rig, tool_names
from real.claude.vendors import DEEPSEEK, GLM, LLAMA, MISTRAL

pytestmark = real

HELLO = ("call_write1", "Write", {"file_path": "hello.txt", "content": "hello world\n"})


@pytest.mark.parametrize("target", MODELS)
def test_it_says_hi_and_counts_tokens(tmp_path: Path, target: str) -> None:
    with rig(tmp_path, chat("Hi there", usage=(1200, 7)), target=target) as it:
        outcome = it.run("say hi").worked()
    assert outcome.said == "Hi there"
    used = outcome.result["usage"]
    assert (used["input_tokens"], used["output_tokens"]) == (1200, 7)
    assert outcome.result["modelUsage"][target]["contextWindow"] == 200_000
    assert it.bodies[0]["max_completion_tokens" if target == LLAMA else "max_tokens"] == 8_192


@pytest.mark.parametrize("target", MODELS)
def test_it_makes_a_file_and_then_edits_it_on_disk(tmp_path: Path, target: str) -> None:
    edit = {"file_path": "hello.txt", "old_string": "world", "new_string": "isthmus"}
    steps = [
        chat(None, reasoning="First the file.", calls=[HELLO]),
        chat("Now the edit.", reasoning="Then the word.", calls=[("call_edit2", "Edit", edit)]),
        chat("Done."),
    ]
    with rig(tmp_path, *steps, target=target) as it:
        outcome = it.run("make hello.txt, then greet the isthmus").worked()
        assert (it.work / "hello.txt").read_text() == "hello isthmus\n"
    assert (outcome.calls, outcome.said, outcome.failed_calls) == (["Write", "Edit"], "Done.", [])


@pytest.mark.parametrize("target", MODELS)
def test_it_runs_a_command_and_reports(tmp_path: Path, target: str) -> None:
    call = ("call_bash1", "Bash", {"command": "echo marker-$((40 + 2))"})
    with rig(tmp_path, chat(None, reasoning="Run it.", calls=[call]), chat("It printed it."), target=target) as it:
        outcome = it.run("run it").worked()
    assert outcome.said == "It printed it."
    assert ["marker-42" in str(result) for result in results(it.bodies[1])] == [True]


@pytest.mark.parametrize("target", MODELS)
def test_parallel_calls_all_run_and_their_results_stand_in_the_order_of_the_calls(tmp_path: Path, target: str) -> None:
    """The first takes longest: Claude Code tells results in the order in which they came."""
    commands = ["sleep 1; echo one", "echo two", "echo three"]
    calls: list[Any] = [(f"call_no{n}", "Bash", {"command": command}) for n, command in enumerate(commands)]
    with rig(tmp_path, chat(None, reasoning="All.", calls=calls), chat("All ran."), target=target) as it:
        assert it.run("run all").worked().said == "All ran."
    assert [str(result).strip() for result in results(it.bodies[1])] == ["one", "two", "three"]


def fragments(*, index: bool) -> list[dict[str, Any]]:
    """Two calls, each in one piece, as vendors send them that count wrongly or not at all."""
    head = {"index": 0} if index else {}
    calls = [
        {**head, "id": id, "function": {"name": "Bash", "arguments": json.dumps({"command": f"echo {id}"})}}
        for id in ("one", "two")
    ]
    deltas = [({"tool_calls": [call]}, None) for call in calls] + [({}, "tool_calls")]
    return [{"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]} for delta, reason in deltas]


@pytest.mark.parametrize("index", [True, False], ids=["all at index 0", "no index"])
def test_parallel_calls_that_a_vendor_counts_wrongly_both_run(tmp_path: Path, index: bool) -> None:
    with rig(tmp_path, stream(fragments(index=index)), chat("Both ran."), lenient=True) as it:
        it.run("run both").worked()
    assert [str(result).strip() for result in results(it.bodies[1])] == ["one", "two"]


@pytest.mark.parametrize("id", ["Bash:0", "call_abc|fc.1", "x" * 90, "functions.Bash:0"])
def test_whatever_ids_a_vendor_gives_its_calls_the_session_goes_on(tmp_path: Path, id: str) -> None:
    """The same id in every turn, too: Claude Code destroys a turn whose id it has seen before."""
    steps = [chat(None, calls=[(id, "Bash", {"command": f"echo n{n}"})]) for n in range(3)]
    with rig(tmp_path, *steps, chat("Done."), lenient=True) as it:
        assert it.run("go").worked().said == "Done."
    assert [str(result).strip() for result in results(it.bodies[3])] == ["n0", "n1", "n2"]


@pytest.mark.parametrize("target", MODELS)
def test_a_sub_agent_works_with_tools_of_its_own_and_reports(tmp_path: Path, target: str) -> None:
    asked = {"description": "look", "prompt": "Say what you see.", "run_in_background": False}
    steps = [
        chat(None, reasoning="Ask.", calls=[("call_agen1", "Agent", {**asked, "subagent_type": "general-purpose"})]),
        chat(None, reasoning="Look.", calls=[("call_bash2", "Bash", {"command": "echo seen"})]),
        chat("I saw it."),
        chat("It saw it."),
    ]
    with rig(tmp_path, *steps, target=target) as it:
        outcome = it.run("delegate").worked()
    assert outcome.said == "It saw it."
    assert "Say what you see." in json.dumps(it.bodies[1]["messages"])
    assert "I saw it." in str(results(it.bodies[3])[0])


def test_two_sub_agents_at_once_do_not_get_into_each_others_way(tmp_path: Path) -> None:
    def answer(request: Any) -> Any:
        text = json.dumps(request.json["messages"])
        if any(message["role"] == "tool" for message in request.json["messages"]):
            return chat("Both said it." if "first job" in text and "second job" in text else "The job is done.")
        for number, job in enumerate(("first job", "second job")):
            if job in text:
                return chat(None, reasoning=job, calls=[(f"call_sub{number}", "Bash", {"command": f"echo {job}"})])
        asked = {"description": "work", "run_in_background": False, "subagent_type": "general-purpose"}
        jobs = ["first job", "second job"]
        calls: list[Any] = [(f"call_job{n}", "Agent", {**asked, "prompt": job}) for n, job in enumerate(jobs)]
        return chat(None, reasoning="both", calls=calls)

    with rig(tmp_path, *[answer] * 6) as it:
        assert it.run("delegate both").worked().said == "Both said it."


MCP = """
import base64
from mcp.server.{module} import {kind} as Server, Image
server = Server("shop")

@server.tool()
def price(item: str) -> str:
    "The price of an item"
    return f"{{item}} costs 7"

@server.tool()
def photo(item: str) -> Image:
    "A photo of an item"
    return Image(data=base64.b64decode("{png}"), format="png")

server.run()
"""


def mcp_config(folder: Path) -> str:
    """A small real MCP server on stdio, and the words that tell Claude Code of it."""
    import mcp.server

    new = hasattr(mcp.server, "MCPServer")
    script = folder / "shop.py"
    names = {"module": "mcpserver" if new else "fastmcp", "kind": "MCPServer" if new else "FastMCP"}
    script.write_text(MCP.format(**names, png=base64.b64encode(png()).decode()))
    return json.dumps({"mcpServers": {"shop": {"command": sys.executable, "args": [str(script)]}}})


@pytest.mark.parametrize("target", MODELS)
def test_a_tool_of_an_mcp_server_is_found_by_search_called_and_answers(tmp_path: Path, target: str) -> None:
    search = {"query": "select:mcp__shop__price", "max_results": 3}
    steps = [
        chat(None, reasoning="Find it.", calls=[("call_find1", "ToolSearch", search)]),
        chat(None, reasoning="Ask it.", calls=[("call_cost2", "mcp__shop__price", {"item": "tea"})]),
        chat("Seven."),
    ]
    with rig(tmp_path, *steps, target=target) as it:
        outcome = it.run("what does tea cost?", "--mcp-config", mcp_config(tmp_path)).worked()
    assert (outcome.said, outcome.failed_calls) == ("Seven.", [])
    assert "mcp__shop__price" not in tool_names(it.bodies[0])
    assert "mcp__shop__price" in tool_names(it.bodies[1])
    assert "DeferredToolPlaceholder" not in tool_names(it.bodies[0])
    assert "mcp__shop__price" in str(results(it.bodies[1])[0])
    assert "tea costs 7" in str(results(it.bodies[2])[1])


def test_without_tool_search_every_tool_is_there_at_once(tmp_path: Path) -> None:
    call = ("call_cost1", "mcp__shop__price", {"item": "tea"})
    with rig(tmp_path, chat(None, reasoning="Ask.", calls=[call]), chat("Seven.")) as it:
        lean = {"ENABLE_TOOL_SEARCH": "false"}
        it.run("what does tea cost?", "--mcp-config", mcp_config(tmp_path), environment=lean).worked()
    assert "mcp__shop__price" in tool_names(it.bodies[0])
    assert "tea costs 7" in str(results(it.bodies[1])[0])


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = (8).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    rows = zlib.compress((b"\0" + b"\xff\0\0" * 8) * 8)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def images(body: dict[str, Any]) -> list[Any]:
    parts = [part for m in body["messages"] if isinstance(m["content"], list) for part in m["content"]]
    return [part for part in parts if part["type"] == "image_url"]


SEES = [
    pytest.param(DEEPSEEK, False, id="deepseek"),
    pytest.param(GLM, False, id="glm"),
    pytest.param(MISTRAL, True, id="mistral"),
    pytest.param(LLAMA, True, id="llama"),
]


@pytest.mark.parametrize(("target", "sees"), SEES)
def test_an_image_that_was_read_reaches_a_model_that_sees_and_is_described_to_one_that_does_not(
    tmp_path: Path, target: str, sees: bool
) -> None:
    call = ("call_read1", "Read", {"file_path": "dot.png"})
    with rig(tmp_path, chat(None, reasoning="Look.", calls=[call]), chat("I looked."), target=target) as it:
        (it.work / "dot.png").write_bytes(png())
        assert it.run("look at dot.png").worked().said == "I looked."
    assert bool(images(it.bodies[1])) is sees
    assert ("base64" in json.dumps(it.bodies[1]["messages"])) is sees


@pytest.mark.parametrize(("target", "sees"), SEES)
def test_an_image_from_an_mcp_server_does_too(tmp_path: Path, target: str, sees: bool) -> None:
    call = ("call_show1", "mcp__shop__photo", {"item": "tea"})
    with rig(tmp_path, chat(None, reasoning="Look.", calls=[call]), chat("I looked."), target=target) as it:
        lean = {"ENABLE_TOOL_SEARCH": "false"}
        it.run("show me tea", "--mcp-config", mcp_config(tmp_path), environment=lean).worked()
    assert bool(images(it.bodies[1])) is sees


PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj
trailer<</Root 1 0 R>>
%%EOF
"""


@pytest.mark.parametrize("target", MODELS)
def test_a_pdf_that_was_read_is_told_of_where_it_cannot_be_read(tmp_path: Path, target: str) -> None:
    call = ("call_read1", "Read", {"file_path": "page.pdf"})
    with rig(tmp_path, chat(None, reasoning="Look.", calls=[call]), chat("I looked."), target=target) as it:
        (it.work / "page.pdf").write_bytes(PDF)
        assert it.run("look at page.pdf").worked().said == "I looked."
    assert "page.pdf" in json.dumps(it.bodies[1]["messages"])


FIND = {"query": "select:WebSearch", "max_results": 1}
SEARCH = [
    chat(None, reasoning="Find.", calls=[("call_find1", "ToolSearch", FIND)]),
    chat(None, reasoning="Search.", calls=[("call_srch2", "WebSearch", {"query": "isthmus"})]),
]


def test_a_vendor_that_searches_the_web_does_it_for_claude_code(tmp_path: Path) -> None:
    found = {"title": "Isthmus of Panama", "link": "https://example.org/panama", "content": "A strip of land."}
    chunks = chat_chunks("A strip of land.")
    searched = stream([{**chunks[0], "web_search": [found]}, *chunks[1:]])
    with rig(tmp_path, *SEARCH, searched, chat("It is a strip of land."), target=GLM) as it:
        outcome = it.run("search the web").worked()
    assert (outcome.said, outcome.failed_calls) == ("It is a strip of land.", [])
    assert [tool["type"] for tool in it.bodies[2]["tools"]] == ["web_search"]
    result = str(results(it.bodies[3])[1])
    assert "A strip of land." in result
    assert "https://example.org/panama" in result


@pytest.mark.parametrize("target", [DEEPSEEK, MISTRAL, LLAMA])
def test_a_web_search_that_nobody_can_run_is_a_failure_that_the_model_hears_of(tmp_path: Path, target: str) -> None:
    with rig(tmp_path, *SEARCH, chat("There is no search here."), target=target) as it:
        outcome = it.run("search the web").worked()
    assert outcome.said == "There is no search here."
    assert len(outcome.failed_calls) == 1
    assert "web_search" in str(results(it.bodies[2])[1])


@pytest.mark.parametrize("target", [DEEPSEEK, MISTRAL, LLAMA])
def test_a_gateway_with_a_search_engine_searches_for_every_model(tmp_path: Path, target: str) -> None:
    """The side request forces the tool; its links come from the results, its words from the model."""
    asked = chat(None, calls=[("call_web31", "web_search", {"query": "isthmus"})])
    found = chat("A strip, says [isthmus: wiki](https://demo.example/wiki/isthmus).")
    steps = [*SEARCH, asked, found, chat("It is a strip of land.")]
    with rig(tmp_path, *steps, target=target, more='[search]\nbackend = "demo"') as it:
        outcome = it.run("search the web").worked()
    assert (outcome.said, outcome.failed_calls) == ("It is a strip of land.", [])
    assert "https://demo.example/wiki/isthmus" in str(it.bodies[3]["messages"][-1]["content"])
    result = str(results(it.bodies[4])[1])
    assert "A strip, says" in result
    assert "https://news.demo.example/news/isthmus" in result, "a link that only the results have"


def test_arguments_that_are_cut_or_broken_are_told_to_the_model_and_run_nothing(tmp_path: Path) -> None:
    chunks = chat_chunks(None, calls=[("call_cut1", "Bash", '{"command": "touch dan')])
    with rig(tmp_path, stream(chunks), chat("Sorry."), lenient=True) as it:
        outcome = it.run("go")
        assert list(it.work.iterdir()) == []
    assert outcome.said == "Sorry."
    assert result_of(it.bodies[1], it.bodies[1]["messages"][-2]["tool_calls"][0]["id"])


def test_thinking_is_shown_and_comes_back_to_the_model(tmp_path: Path) -> None:
    call = ("call_bash1", "Bash", {"command": "echo hi"})
    with rig(tmp_path, chat(None, reasoning="I will run it.", calls=[call]), chat("Done.")) as it:
        it.run("go").worked()
    acted = next(message for message in it.bodies[1]["messages"] if message.get("tool_calls"))
    assert acted["reasoning_content"] == "I will run it."
