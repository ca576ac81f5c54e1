"""The OpenAI Agents SDK for JavaScript: deferred tools, found by the gateway's own search."""

from __future__ import annotations

import pytest

from flowing import PLAIN, Flow
from isthmus.testing import chat
from node_scripts import run_node

pytestmark = pytest.mark.real


@pytest.mark.parametrize("mode", ["whole", "streamed"])
def test_an_agent_finds_its_deferred_tools_and_calls_them(flow: Flow, mode: str) -> None:
    flow.script(
        chat(calls=[("call_0", "tool_search", {"query": "settle a ticket, send a letter"})]),
        chat(calls=[("call_0", "tickets__close_ticket", {}), ("call_1", "send_mail", {})]),
        chat("Both are done."),
    )
    told = run_node("deferred_tools.mjs", flow.server.url, PLAIN, mode)
    assert told["answer"] == "Both are done."
    assert sorted(told["done"]) == ["close_ticket", "send_mail"]
    assert {"tool_search_call_item", "tool_search_output_item"} <= set(told["items"])
    assert [tool["function"]["name"] for tool in flow.sent[0]["tools"]] == ["tool_search"]
    assert {tool["function"]["name"] for tool in flow.sent[2]["tools"]} >= {"tickets__close_ticket", "send_mail"}
