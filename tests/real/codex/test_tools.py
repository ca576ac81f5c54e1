"""Codex's tools on chat models: every kind of tool, through every kind of model slug, to a real effect on disk."""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from isthmus.testing import chat, chat_chunks, stream
from real.codex.rig import (
    CLASSIC,
    DEEPSEEK,
    LITE,
    LLAMA,
    MODELS,
    OURS,
    PATCH,
    UNKNOWN,
    calls_named,
    patch_call,
    real,
    result_of,
    rig,
    shell_arguments,
    shell_call,
    tool_names,
)

pytestmark = real

SLUGS = [CLASSIC, LITE, UNKNOWN, OURS]


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("target", MODELS)
def test_it_says_hi_and_counts_tokens(tmp_path: Path, slug: str, target: str) -> None:
    answer = chat("Hi there", reasoning="A greeting.", usage=(1200, 7))
    with rig(tmp_path, answer, target=target) as it:
        outcome = it.exec("say hi", slug=slug).worked()
    assert outcome.said == ["Hi there"]
    assert (outcome.usage["input_tokens"], outcome.usage["output_tokens"]) == (1200, 7)


def test_usage_that_the_model_never_sent_is_still_whole(tmp_path: Path) -> None:
    with rig(tmp_path, chat("Hi", usage=None)) as it:
        assert it.exec("say hi").worked().said == ["Hi"]


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("target", MODELS)
def test_it_runs_a_command_and_reports(tmp_path: Path, slug: str, target: str) -> None:
    call = ("call_1", shell_call(slug), shell_arguments(slug, "echo marker-$((40 + 2))"))
    with rig(tmp_path, chat(None, calls=[call]), chat("It printed marker-42."), target=target) as it:
        outcome = it.exec("run it", slug=slug).worked()
    assert outcome.commands == [("marker-42\n", 0)]
    assert outcome.said == ["It printed marker-42."]
    assert "marker-42" in result_of(it.bodies[1], "call_1")


@pytest.mark.parametrize("slug", [CLASSIC, LITE, OURS])
@pytest.mark.parametrize("target", MODELS)
def test_a_patch_changes_a_file_on_disk(tmp_path: Path, slug: str, target: str) -> None:
    name, arguments = patch_call(slug)
    with rig(tmp_path, chat(None, calls=[("call_1", name, arguments)]), chat("Done."), target=target) as it:
        outcome = it.exec("create hello.txt", slug=slug).worked()
        assert (it.work / "hello.txt").read_text() == "hello world\n"
    assert [item["status"] for item in outcome.items("file_change")] == ["completed"]


BARE = "*** Add File: hello.txt\n+hello world\n"
SHAPES: dict[str, str] = {
    "input": json.dumps({"input": PATCH}),
    "patch key": json.dumps({"patch": PATCH}),
    "content key": json.dumps({"content": PATCH}),
    "raw text": PATCH,
    "double-encoded": json.dumps(json.dumps({"input": PATCH})),
    "a string": json.dumps(PATCH),
    "fenced": json.dumps({"input": f"```diff\n{PATCH}```"}),
    "heredoc": json.dumps({"input": f"apply_patch <<'EOF'\n{PATCH}EOF\n"}),
    "no envelope": json.dumps({"input": BARE}),
    "no end": json.dumps({"input": PATCH.replace("*** End Patch\n", "")}),
    "no last newline": json.dumps({"input": PATCH.rstrip()}),
    "blank lines around": json.dumps({"input": f"\n\n{PATCH}\n"}),
}


@pytest.mark.parametrize("arguments", SHAPES.values(), ids=SHAPES)
def test_a_patch_in_any_shape_that_models_make_applies(tmp_path: Path, arguments: str) -> None:
    with rig(tmp_path, chat(None, calls=[("call_1", "apply_patch", arguments)]), chat("Done.")) as it:
        it.exec("create hello.txt", slug=OURS).worked()
        assert (it.work / "hello.txt").read_text() == "hello world\n"


@pytest.mark.parametrize("reason", ["length", None], ids=["cut by length", "broken off"])
@pytest.mark.parametrize("slug", [CLASSIC, LITE])
def test_half_a_patch_or_script_is_never_carried_out(tmp_path: Path, slug: str, reason: str | None) -> None:
    text = "text('1');\n" * 3 + "await tools.exec_command({cmd: 'touch danger'});\n" + "// more\n" * 20
    name = "exec" if slug == LITE else "apply_patch"
    whole = text if slug == LITE else PATCH.replace("+hello world\n", "+a line\n" * 40)
    chunks = chat_chunks(None, calls=[("call_1", name, {"input": whole})], pieces=20)
    end = {**chunks[-2], "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    with rig(tmp_path, stream([*chunks[:16], end] if reason else chunks[:16])) as it:
        outcome = it.exec("go", slug=slug)
        assert outcome.code == 1
        assert list(it.work.iterdir()) == []


COMMANDS = (("call_1", "echo one"), ("call_2", "echo two"))


def fragments(*, index: bool) -> list[dict[str, Any]]:
    """Both calls, each in one piece, as vendors send them that count wrongly or not at all."""
    head = {"index": 0} if index else {}
    calls = [
        {**head, "id": id, "function": {"name": "exec_command", "arguments": json.dumps({"cmd": command})}}
        for id, command in COMMANDS
    ]
    deltas = [({"tool_calls": [call]}, None) for call in calls] + [({}, "tool_calls")]
    return [{"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]} for delta, reason in deltas]


WAYS = {
    "by index": chat_chunks(None, calls=[(id, "exec_command", {"cmd": command}) for id, command in COMMANDS]),
    "all at index 0": fragments(index=True),
    "no index": fragments(index=False),
}


@pytest.mark.parametrize("way", WAYS)
def test_two_parallel_commands_both_run(tmp_path: Path, way: str) -> None:
    with rig(tmp_path, stream(WAYS[way]), chat("Both ran.")) as it:
        outcome = it.exec("run both").worked()
    assert sorted(outcome.commands) == [("one\n", 0), ("two\n", 0)]
    messages = it.bodies[1]["messages"]
    assert [message["role"] for message in messages[-3:]] == ["assistant", "tool", "tool"]
    assert "one" in result_of(it.bodies[1], "call_1")
    assert "two" in result_of(it.bodies[1], "call_2")


def test_in_code_mode_one_script_runs_two_commands(tmp_path: Path) -> None:
    call = ("call_1", "exec", shell_arguments(LITE, "echo one", "echo two"))
    with rig(tmp_path, chat(None, calls=[call]), chat("Both ran.")) as it:
        outcome = it.exec("run both", slug=LITE).worked()
    assert outcome.commands == [("one\n", 0), ("two\n", 0)]


MCP = """
from mcp.server.{module} import {kind} as Server
server = Server("shop")

@server.tool()
def price(item: str) -> str:
    "The price of an item"
    return f"{{item}} costs 7"

server.run()
"""


def mcp_tables(folder: Path) -> str:
    """A small real MCP server on stdio, and the words that tell Codex of it."""
    import mcp.server

    new = hasattr(mcp.server, "MCPServer")
    script = folder / "shop.py"
    script.write_text(MCP.format(module="mcpserver" if new else "fastmcp", kind="MCPServer" if new else "FastMCP"))
    # Only for a required server does Codex wait before it asks the model.
    return f'[mcp_servers.shop]\ncommand = "{sys.executable}"\nargs = ["{script}"]\nrequired = true\n'


@pytest.mark.parametrize("target", MODELS)
def test_a_namespaced_mcp_tool_is_called_and_answers(tmp_path: Path, target: str) -> None:
    def call_price(request: Any) -> Any:
        name = next(name for name in tool_names(request.json) if name.endswith("price"))
        return chat(None, calls=[("call_1", name, {"item": "tea"})])

    with rig(tmp_path, call_price, chat("Seven."), target=target) as it:
        outcome = it.exec("what does tea cost?", slug=OURS, tables=mcp_tables(tmp_path)).worked()
    used = outcome.items("mcp_tool_call")
    assert [(item["server"], item["tool"], item["status"]) for item in used] == [("shop", "price", "completed")]
    assert "tea costs 7" in json.dumps(result_of(it.bodies[1], "call_1"))
    # The same name goes back in history: a model must recognise its own call.
    assert [call["id"] for name in tool_names(it.bodies[1]) for call in calls_named(it.bodies[1], name)] == ["call_1"]


def test_tools_found_by_search_can_be_called(tmp_path: Path) -> None:
    def call_found(request: Any) -> Any:
        name = next(name for name in tool_names(request.json) if name.endswith("price"))
        return chat(None, calls=[("call_2", name, {"item": "tea"})])

    search = chat(None, calls=[("call_1", "tool_search", {"query": "price of an item", "limit": 3})])
    with rig(tmp_path, search, call_found, chat("Seven.")) as it:
        outcome = it.exec("what does tea cost?", slug=CLASSIC, tables=mcp_tables(tmp_path)).worked()
    assert "tool_search" in tool_names(it.bodies[0])
    assert [item["status"] for item in outcome.items("mcp_tool_call")] == ["completed"]
    assert "tea costs 7" in json.dumps(result_of(it.bodies[2], "call_2"))


@pytest.mark.parametrize(("target", "sees"), [(LLAMA, True), (DEEPSEEK, False)], ids=["llama", "deepseek"])
def test_an_image_from_a_tool_reaches_a_model_that_sees_and_is_described_to_one_that_does_not(
    tmp_path: Path, target: str, sees: bool
) -> None:
    call = ("call_1", "view_image", {"path": "dot.png"})
    with rig(tmp_path, chat(None, calls=[call]), chat("I looked."), target=target) as it:
        (it.work / "dot.png").write_bytes(_png())
        it.exec("look at dot.png", slug=CLASSIC).worked()
    sent = json.dumps(it.bodies[1]["messages"])
    parts = [part for m in it.bodies[1]["messages"] if isinstance(m["content"], list) for part in m["content"]]
    images = [part for part in parts if part["type"] == "image_url"]
    assert bool(images) is sees
    assert "base64" in sent if sees else "base64" not in sent


def _png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = (8).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    rows = zlib.compress((b"\0" + b"\xff\0\0" * 8) * 8)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
