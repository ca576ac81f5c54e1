"""Input items as they are listed: what the clients' types need is there."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import PLAIN, Flow
from isthmus.server.listed import listed_item
from isthmus.testing import chat

SENT: list[dict[str, Any]] = [
    {"role": "user", "content": "a string"},
    {"role": "system", "content": "a string"},
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "x"}]},
    {"role": "assistant", "content": "a string"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}],
    },
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "x"},
    {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "x"}]},
    {"type": "custom_tool_call", "call_id": "c3", "name": "g", "input": "x"},
    {"type": "custom_tool_call_output", "call_id": "c3", "output": "x"},
    {"type": "reasoning", "summary": []},
    {"role": "user", "content": "go on"},
]


def test_every_listed_item_is_one_of_the_sdks_own_types(flow: Flow) -> None:
    from openai.types.responses import ResponseItem
    from pydantic import TypeAdapter

    flow.script(chat("ok"))
    id = flow.create({"model": PLAIN, "input": SENT})["id"]
    listed = flow.get(f"/v1/responses/{id}/input_items?order=asc&limit=100").json["data"]
    assert len(listed) == len(SENT)
    for item in listed:
        TypeAdapter(ResponseItem).validate_python(item)
        assert not isinstance(item.get("content"), str)


@pytest.mark.parametrize("item", SENT)
def test_nothing_that_was_sent_is_changed_but_a_string(item: dict[str, Any]) -> None:
    listed = listed_item(item)
    for name, value in item.items():
        if name == "content" and isinstance(value, str):
            assert [part["text"] for part in listed["content"]] == [value]
        elif name in ("content", "output") and isinstance(value, list):
            assert all(part.items() <= shown.items() for part, shown in zip(value, listed[name], strict=True))
        else:
            assert listed[name] == value


def test_a_status_that_was_sent_stays() -> None:
    sent = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "status": "incomplete"}
    assert listed_item(sent)["status"] == "incomplete"
