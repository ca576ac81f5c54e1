"""Items without a counterpart: each type has a planned fate."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.bridge.history.items import write_note
from isthmus.bridge.history.normalise import normalise_history
from isthmus.bridge.types.history import Acted, Image, Said, Words

BASE64 = "QUJD" * 100

FATES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    # item, action, who says the note, the note
    "additional tools": ({"type": "additional_tools", "tools": []}, "supported", "", ""),
    "web search": ({"type": "web_search_call", "id": "ws", "action": {"query": "q"}}, "ignored", "", ""),
    "file search without results": ({"type": "file_search_call", "queries": ["q"], "results": None}, "ignored", "", ""),
    "file search": (
        {"type": "file_search_call", "queries": ["q"], "results": [{"filename": "a.md", "text": "snippet"}]},
        "degraded",
        "assistant",
        "[file search for q found]\na.md: snippet",
    ),
    "code interpreter": (
        {
            "type": "code_interpreter_call",
            "code": "print(1)",
            "outputs": [{"type": "logs", "logs": "1"}, {"type": "image", "url": f"data:image/png;base64,{BASE64}"}],
        },
        "degraded",
        "assistant",
        "[ran code]\nprint(1)\n[its output]\n1\n[image omitted]",
    ),
    "empty code interpreter": ({"type": "code_interpreter_call", "code": None, "outputs": None}, "ignored", "", ""),
    "image generation": (
        {"type": "image_generation_call", "result": BASE64, "revised_prompt": "a cat"},
        "degraded",
        "assistant",
        "[generated an image: a cat]",
    ),
    "mcp tools": ({"type": "mcp_list_tools", "server_label": "s", "tools": []}, "ignored", "", ""),
    "mcp call": (
        {"type": "mcp_call", "server_label": "s", "name": "t", "arguments": '{"a":1}', "output": "done"},
        "degraded",
        "assistant",
        '[called s.t with {"a":1}]\ndone',
    ),
    "failed mcp call": (
        {"type": "mcp_call", "server_label": "s", "name": "t", "arguments": "", "error": {"code": 3}},
        "degraded",
        "assistant",
        '[called s.t with {}]\n[it failed: {"code":3}]',
    ),
    "mcp call with an image inside": (
        {"type": "mcp_call", "name": "t", "output": f'{{"data":"{BASE64}","url":"data:image/png;base64,QUJD"}}'},
        "degraded",
        "assistant",
        '[called t with {}]\n{"data":"[data omitted]","url":"[data omitted]"}',
    ),
    "mcp approval request": (
        {"type": "mcp_approval_request", "server_label": "s", "name": "t", "arguments": "{}"},
        "degraded",
        "assistant",
        "[asked for approval to call s.t with {}]",
    ),
    "mcp approval": (
        {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
        "degraded",
        "user",
        "[the tool call was approved]",
    ),
    "mcp denial": (
        {"type": "mcp_approval_response", "approval_request_id": "r", "approve": False, "reason": "no"},
        "degraded",
        "user",
        "[the tool call was denied: no]",
    ),
    "agent message": (
        {"type": "agent_message", "author": "/root", "content": [{"type": "input_text", "text": "go"}]},
        "degraded",
        "user",
        "[message from agent /root]\ngo",
    ),
    "sealed agent message": (
        {"type": "agent_message", "content": [{"type": "encrypted_content", "encrypted_content": "x"}]},
        "ignored",
        "",
        "",
    ),
    "compaction trigger": ({"type": "compaction_trigger"}, "ignored", "", ""),
    "unknown": ({"type": "holodeck_call", "text": "x"}, "ignored", "", ""),
}


@pytest.mark.parametrize(("item", "action", "role", "note"), FATES.values(), ids=FATES.keys())
def test_each_item_type_has_a_planned_fate(item: dict[str, Any], action: str, role: str, note: str) -> None:
    history = normalise_history([item])
    (decision,) = history.decisions
    code = "" if action == "supported" else f"bridge.item.{action}"
    assert (decision.path, decision.action, decision.code) == ("input[0]", action, code)
    assert decision.reason
    match history.turns:
        case ():
            assert (role, note) == ("", "")
        case (Acted(texts=texts),):
            assert (role, note) == ("assistant", *texts)
        case (Said(role=said, parts=parts),):
            assert (role, note) == (said, *[part.text for part in parts if isinstance(part, Words)])


def test_a_screenshot_stands_with_its_call_and_keeps_its_image() -> None:
    click = {"type": "click", "x": 1, "y": 2, "button": "left"}
    output = {"type": "computer_screenshot", "image_url": "https://x/y.png"}
    (turn,) = normalise_history(
        [
            {"type": "computer_call", "call_id": "1", "actions": [click], "pending_safety_checks": []},
            {"type": "computer_call_output", "call_id": "1", "output": output},
        ]
    ).turns
    assert isinstance(turn, Acted)
    assert (turn.calls[0].name, json.loads(turn.calls[0].arguments)) == ("computer", {"actions": [click]})
    assert turn.results[0].parts[1] == Image("input[1].output", "https://x/y.png")
    (older,) = normalise_history([{"type": "computer_call", "call_id": "1", "action": {"type": "wait"}}]).turns
    assert isinstance(older, Acted)
    assert (older.calls[0].name, older.calls[0].arguments) == ("computer_use_preview", '{"action":{"type":"wait"}}')


def test_a_message_between_agents_says_from_whom_to_whom() -> None:
    item = {"type": "agent_message", "author": "A", "recipient": "B", "content": [{"type": "input_text", "text": "go"}]}
    assert write_note(item, "input[0]").text == "[message from agent A to B]\ngo"
