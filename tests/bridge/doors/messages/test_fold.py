"""The frames of a stream and the message that they make."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.doors.messages.fold import fold_message

Json = dict[str, Any]
BEGUN = {"type": "message_start", "message": {"id": "msg_1", "content": [], "stop_reason": None, "usage": {}}}
END = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn"},
    "usage": {"output_tokens": 3},
    "isthmus": {"a": 1},
}


def block(index: int, begun: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def test_every_kind_of_block_grows_by_its_deltas() -> None:
    citation = {"type": "web_search_result_location", "url": "u"}
    message = fold_message(
        [
            BEGUN,
            {"type": "ping"},
            *block(
                0,
                {"type": "thinking", "thinking": "", "signature": ""},
                {"type": "thinking_delta", "thinking": "h"},
                {"type": "thinking_delta", "thinking": "m"},
                {"type": "signature_delta", "signature": "s"},
            ),
            *block(
                1,
                {"type": "text", "text": ""},
                {"type": "text_delta", "text": "hi"},
                {"type": "citations_delta", "citation": citation},
            ),
            *block(
                2,
                {"type": "tool_use", "id": "t", "name": "n", "input": {}},
                {"type": "input_json_delta", "partial_json": '{"a":'},
                {"type": "input_json_delta", "partial_json": "1}"},
            ),
            END,
            {"type": "message_stop"},
        ]
    )
    assert message["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "hi", "citations": [citation]},
        {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}},
    ]
    assert (message["stop_reason"], message["usage"], message["isthmus"]) == (
        "end_turn",
        {"output_tokens": 3},
        {"a": 1},
    )


@pytest.mark.parametrize(
    ("text", "given"), [("", {}), ("{}", {}), ('{"a"', {"_raw": '{"a"'}), ("[1]", {"_raw": "[1]"})]
)
def test_an_input_is_always_an_object(text: str, given: Json) -> None:
    frames = block(0, {"type": "tool_use", "input": {}}, {"type": "input_json_delta", "partial_json": text})
    assert fold_message([BEGUN, *frames, END])["content"][0]["input"] == given
