"""Turns of a Messages request and the items that they become, each with the way back."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.doors.messages.read_turns import TurnReader
from isthmus.bridge.envelope import Sealed, seal
from isthmus.errors import RequestRefused

Json = dict[str, Any]
MARKED = {"type": "ephemeral"}
OURS = seal(Sealed("p", "text"), b"k" * 32)


def read(*turns: Json) -> TurnReader:
    reader = TurnReader()
    reader.take(turns)
    return reader


def decided(reader: TurnReader) -> list[tuple[str, str]]:
    return [(decision.path, decision.action) for decision in reader.decisions]


def test_words_of_the_three_roles_stay_in_their_places() -> None:
    reader = read(
        {"role": "user", "content": "a"},
        {"role": "system", "content": "b"},
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": [{"type": "text", "text": "d"}]},
    )
    assert [(item["role"], item["content"][0]["text"]) for item in reader.items] == [
        ("user", "a"),
        ("developer", "b"),
        ("assistant", "c"),
        ("user", "d"),
    ]
    assert [item["content"][0]["type"] for item in reader.items] == [
        *("input_text", "input_text", "output_text", "input_text")
    ]


def test_an_assistant_turn_keeps_the_order_of_its_steps() -> None:
    reader = read(
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": OURS},
                {"type": "text", "text": "one"},
                {"type": "text", "text": "two"},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"b": 1, "a": [None, "ä"]}},
                {"type": "thinking", "thinking": "", "signature": OURS},
                {"type": "tool_use", "id": "t2", "name": "look", "input": {}},
            ],
        }
    )
    assert [item["type"] for item in reader.items] == [
        *("reasoning", "message", "function_call", "reasoning", "function_call")
    ]
    assert [part["text"] for part in reader.items[1]["content"]] == ["one", "two"]
    assert reader.items[2] == {
        "type": "function_call",
        "call_id": "t1",
        "name": "look",
        "arguments": '{"b":1,"a":[null,"ä"]}',
    }
    assert reader.items[3] == {"type": "reasoning", "summary": [], "encrypted_content": OURS}
    assert [origin.path for origin in reader.origins] == [
        *("messages[0].content[0]", "messages[0].content[1]", "messages[0].content[3]"),
        *("messages[0].content[4]", "messages[0].content[5]"),
    ]
    assert reader.origins[1].parts == ("messages[0].content[1]", "messages[0].content[2]")
    assert decided(reader) == []


@pytest.mark.parametrize(
    ("block", "item", "said"),
    [
        ({"type": "thinking", "thinking": "hm", "signature": OURS}, {"text": "hm", "sealed": OURS}, []),
        ({"type": "thinking", "thinking": "hm", "signature": "foreign"}, {"text": "hm"}, [("signature", "ignored")]),
        ({"type": "thinking", "thinking": "hm", "signature": ""}, {"text": "hm"}, []),
        ({"type": "thinking", "thinking": "", "signature": "foreign"}, None, [("signature", "ignored")]),
        ({"type": "thinking", "thinking": "", "signature": ""}, None, [("", "supported")]),
        ({"type": "redacted_thinking", "data": OURS}, {"sealed": OURS}, []),
        ({"type": "redacted_thinking", "data": "foreign"}, None, [("data", "ignored")]),
    ],
)
def test_only_our_own_signature_counts(block: Json, item: Json | None, said: list[tuple[str, str]]) -> None:
    reader = read({"role": "assistant", "content": [block]})
    made: list[Json] = []
    for one in reader.items:
        fields = {"text": (one.get("content") or [{"text": None}])[0]["text"], "sealed": one.get("encrypted_content")}
        made.append({name: value for name, value in fields.items() if value is not None})
    assert made == ([] if item is None else [item])
    where = "messages[0].content[0]"
    assert decided(reader) == [(f"{where}.{field}" if field else where, action) for field, action in said]


def test_results_come_before_the_words_beside_them() -> None:
    reader = read(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look:"},
                {"type": "tool_result", "tool_use_id": "t2", "content": "B"},
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "A"}]},
            ],
        }
    )
    assert [item.get("call_id") for item in reader.items] == ["t2", "t1", None]
    assert [item.get("output") for item in reader.items] == ["B", "A", None]
    assert reader.origins[0].path == "messages[0].content[1]"
    assert reader.origins[2].parts == ("messages[0].content[0]",)


def test_a_result_keeps_its_pictures_its_documents_and_whether_it_failed() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    document = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    content = [
        {"type": "text", "text": "read:"},
        {"type": "image", "source": source},
        {"type": "document", "source": document},
    ]
    result = {"type": "tool_result", "tool_use_id": "t", "content": content, "is_error": True}
    (item,) = read({"role": "user", "content": [result]}).items
    assert [part["type"] for part in item["output"]] == ["input_text", "input_image", "input_file"]
    assert item["is_error"] is True
    (fine,) = read({"role": "user", "content": [{**result, "is_error": False, "content": None}]}).items
    assert "is_error" not in fine
    assert fine["output"] == ""


def test_a_mark_on_a_result_lies_on_its_last_part() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "A", "cache_control": MARKED}
    (item,) = read({"role": "user", "content": [result]}).items
    assert item["output"] == [{"type": "input_text", "text": "A", "prompt_cache_breakpoint": {"mode": "explicit"}}]


def test_a_mark_on_a_call_is_left_out_aloud() -> None:
    call = {"type": "tool_use", "id": "t", "name": "n", "input": {}, "cache_control": MARKED}
    reader = read({"role": "assistant", "content": [call]})
    assert decided(reader) == [("messages[0].content[0].cache_control", "ignored")]


def test_the_mark_of_a_whole_request_lies_on_its_last_block() -> None:
    reader = read({"role": "user", "content": "a"}, {"role": "user", "content": "b"})
    reader.mark_last(MARKED)
    assert ["prompt_cache_breakpoint" in item["content"][-1] for item in reader.items] == [False, True]
    answered = read({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "A"}]})
    answered.mark_last(MARKED)
    assert "prompt_cache_breakpoint" in answered.items[0]["output"][0]


def test_hosted_calls_of_the_past_are_left_out_aloud() -> None:
    reader = read(
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                {"type": "hologram"},
                {"type": "text", "text": "found"},
            ],
        }
    )
    assert [item["type"] for item in reader.items] == ["message"]
    assert [action for _, action in decided(reader)] == ["ignored"] * 3


def test_an_instruction_in_between_may_ask_for_an_effort() -> None:
    reader = read(
        {"role": "user", "content": "a"},
        {"role": "system", "content": "b", "output_config": {"effort": "low"}},
        {"role": "system", "content": "c", "output_config": {"effort": "max"}, "clear_at": "x"},
    )
    assert reader.effort == ("max", "messages[2].output_config.effort")
    assert decided(reader) == [("messages[2].clear_at", "ignored")]


def test_the_line_for_the_vendors_accounts_is_dropped() -> None:
    reader = TurnReader()
    told = reader.lead(
        [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.325.ff3;"},
            {"type": "text", "text": "Be kind."},
            {"type": "text", "text": "Be brief."},
        ]
    )
    assert told == "Be kind.\n\nBe brief."
    assert decided(reader) == [("system[0]", "ignored")]
    assert reader.items == []


def test_a_system_prompt_with_marks_becomes_an_item_that_carries_them() -> None:
    reader = TurnReader()
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": MARKED}]
    assert reader.lead(blocks) == ""
    (item,) = reader.items
    assert (item["role"], [part["text"] for part in item["content"]]) == ("system", ["a", "b"])
    assert ["prompt_cache_breakpoint" in part for part in item["content"]] == [False, True]
    assert reader.origins[0].parts == ("system[0]", "system[1]")
    assert reader.lead("plain") == "plain"


@pytest.mark.parametrize(
    ("turn", "param"),
    [
        ({"role": "tool", "content": "a"}, "messages[0].role"),
        ({"content": "a"}, "messages[0].role"),
        ({"role": "user"}, "messages[0].content"),
        ({"role": "user", "content": 3}, "messages[0].content"),
        ({"role": "user", "content": [{"type": "tool_result"}]}, "messages[0].content[0].tool_use_id"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}, "messages[0].content[0].name"),
        ({"role": "assistant", "content": [{"type": "tool_use", "name": "a"}]}, "messages[0].content[0].id"),
        ("hi", "messages[0]"),
    ],
)
def test_a_broken_turn_is_refused_by_name(turn: Any, param: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        read(turn)
    assert refused.value.param == param
