"""`/v1/responses/input_tokens`: every shape of a request is counted, high, and nothing is sent."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import chat
from written_in import written

PATH = "/v1/responses/input_tokens"
IMAGE = {"type": "input_image", "image_url": "https://example.org/cat.png"}
PDF = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64," + "QUJD" * 10_000}
TOOL = {"type": "function", "name": "look", "description": "Look it up. " * 50, "parameters": {"type": "object"}}


def count(flow: Flow, **body: Any) -> int:
    answer = flow.post(PATH, {"model": FULL, **body})
    assert answer.status == 200, answer.json
    assert answer.json["object"] == "response.input_tokens"
    assert answer.json["isthmus"] == {"estimated": True}
    assert flow.sent == []
    return int(answer.json["input_tokens"])


def user(*parts: Any) -> list[Any]:
    return [{"role": "user", "content": list(parts)}]


def test_every_field_may_be_missing(flow: Flow) -> None:
    assert flow.post(PATH, {}).json["input_tokens"] > 0
    assert count(flow, instructions="Be brief. " * 100) > 200
    assert count(flow, tools=[TOOL]) > 150


@pytest.mark.parametrize(
    ("body", "least", "most"),
    [
        ({"input": written("english")}, 21, 200),
        ({"input": user({"type": "input_text", "text": written("code")})}, 155, 600),
        ({"input": user(IMAGE, IMAGE)}, 9_500, 12_000),
        ({"input": user(PDF)}, 10_000, 20_000),
        ({"input": "hi", "tools": [TOOL] * 3}, 450, 2_000),
        (
            {"input": "hi", "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}},
            8,
            300,
        ),
    ],
    ids=["text", "items", "images", "file", "tools", "format"],
)
def test_each_shape_is_counted_high_but_not_absurdly(flow: Flow, body: Any, least: int, most: int) -> None:
    assert least <= count(flow, **body) <= most


def test_earlier_turns_count(flow: Flow) -> None:
    flow.script(chat("A long answer. " * 100))
    first = flow.post("/v1/responses", {"model": PLAIN, "input": "A long question. " * 100}).json["id"]
    answer = flow.post(PATH, {"model": PLAIN, "previous_response_id": first})
    assert answer.json["input_tokens"] > 600
    more = flow.post(PATH, {"model": PLAIN, "previous_response_id": first, "input": "and " * 500})
    assert more.json["input_tokens"] > answer.json["input_tokens"] + 500
    unknown = flow.post(PATH, {"model": PLAIN, "previous_response_id": "resp_no"})
    assert unknown.error["code"] == "previous_response_not_found"


def test_what_is_too_long_for_the_model_is_counted_all_the_same(flow: Flow) -> None:
    long = "word " * 2_000_000
    refused = flow.post("/v1/responses", {"model": DEEPSEEK, "input": long})
    assert refused.error["code"] == "context_length_exceeded"
    for truncation in ("disabled", "auto"):
        answer = flow.post(PATH, {"model": DEEPSEEK, "input": long, "truncation": truncation})
        assert answer.json["input_tokens"] > 2_000_000


def test_a_chat_body_is_told_where_to_go(flow: Flow) -> None:
    answer = flow.post(PATH, {"model": FULL, "messages": [{"role": "user", "content": "hi"}]})
    assert (answer.status, answer.error["param"]) == (400, "input")
    assert "/v1/chat/completions" in answer.error["message"]
