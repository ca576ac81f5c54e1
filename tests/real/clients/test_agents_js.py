"""The OpenAI Agents SDK for JavaScript: deferred tools, found by the gateway's own search."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from flowing import PLAIN, Flow
from isthmus.testing import chat

pytestmark = pytest.mark.real

NODE = Path(__file__).parent / "node"


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    if shutil.which("npm") is None:
        pytest.skip("needs Node.js and npm")
    if not (NODE / "node_modules" / "@openai" / "agents").is_dir():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=NODE, check=True, timeout=300)


@pytest.mark.parametrize("mode", ["whole", "streamed"])
def test_an_agent_finds_its_deferred_tools_and_calls_them(flow: Flow, mode: str) -> None:
    flow.script(
        chat(calls=[("call_0", "tool_search", {"query": "settle a ticket, send a letter"})]),
        chat(calls=[("call_0", "tickets__close_ticket", {}), ("call_1", "send_mail", {})]),
        chat("Both are done."),
    )
    ran = subprocess.run(
        ["node", "deferred_tools.mjs", flow.server.url, PLAIN, mode],
        cwd=NODE,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["answer"] == "Both are done."
    assert sorted(told["done"]) == ["close_ticket", "send_mail"]
    assert {"tool_search_call_item", "tool_search_output_item"} <= set(told["items"])
    assert [tool["function"]["name"] for tool in flow.sent[0]["tools"]] == ["tool_search"]
    assert {tool["function"]["name"] for tool in flow.sent[2]["tools"]} >= {"tickets__close_ticket", "send_mail"}
