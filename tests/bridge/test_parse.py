"""Input is checked once: wrong types are refused with the field's path, everything unknown survives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.parse import parse_request
from isthmus.errors import RequestRefused

REFUSED: dict[str, tuple[Any, str | None, str]] = {
    "not an object": ([1], None, "must be a JSON object"),
    "model of the wrong type": ({"model": 1}, "model", "expected `str | null`"),
    "input of the wrong type": ({"input": 5}, "input", "expected `str | array | null`"),
    "input object": ({"input": {"role": "user"}}, "input", "expected `str | array | null`"),
    "item that is no object": ({"input": [1]}, "input[0]", "expected `object`"),
    "null item": ({"input": [None]}, "input[0]", "expected `object`"),
    "item without a type": ({"input": [{"content": "x"}]}, "input[0].type", "has no `type`"),
    "type of the wrong type": ({"input": [{"type": 3}]}, "input[0].type", "must be a string"),
    "unknown role": ({"input": [{"role": "boss", "content": "x"}]}, "input[0].role", "boss"),
    "message without content": ({"input": [{"role": "user"}]}, "input[0].content", "missing"),
    "part that is no object": (
        {"input": [{"role": "user", "content": ["x"]}]},
        "input[0].content[0]",
        "expected `object`",
    ),
    "part without its text": (
        {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
        "input[0].content[0].text",
        "must be a string",
    ),
    "call without a call_id": (
        {"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]},
        "input[0].call_id",
        "missing",
    ),
    "arguments as an object": (
        {"input": [{"type": "function_call", "name": "f", "call_id": "c", "arguments": {}}]},
        "input[0].arguments",
        "expected `str`",
    ),
    "tools not a list": ({"tools": {}}, "tools", "expected `array | null`"),
    "tool without a type": ({"tools": [{}]}, "tools[0].type", "has no `type`"),
    "function tool without a name": ({"tools": [{"type": "function"}]}, "tools[0].name", "has no `name`"),
    "the last of many tools without a name": (
        {"tools": [*({"type": "function", "name": f"f{n}"} for n in range(300)), {"type": "function", "name": ""}]},
        "tools[300].name",
        "has no `name`",
    ),
    "one of many tools with a wrong schema": (
        {"tools": [{"type": "odd"}, {"type": "function", "name": "f", "parameters": 1}]},
        "tools[1].parameters",
        "expected `object | null`",
    ),
    "a tool whose type is a list": ({"tools": [{"type": "odd"}, {"type": []}]}, "tools[1].type", "has no `type`"),
    "a tool that is none": ({"tools": [{"type": "odd"}, 1]}, "tools[1]", "expected `object`"),
    "nested tool without a name": (
        {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}]},
        "tools[0].tools[0].name",
        "has no `name`",
    ),
    "tool inside the input": (
        {"input": [{"type": "additional_tools", "tools": [{"type": "custom"}]}]},
        "input[0].tools[0].name",
        "has no `name`",
    ),
    "temperature as text": ({"temperature": "hot"}, "temperature", "expected `float | null`"),
    "effort of the wrong type": ({"reasoning": {"effort": 3}}, "reasoning.effort", "expected `str | null`"),
    "format without a type": ({"text": {"format": {}}}, "text.format.type", "missing"),
    "stream as text": ({"stream": "yes"}, "stream", "expected `bool | null`"),
    "both ways of continuing": (
        {"previous_response_id": "a", "conversation": "b"},
        "previous_response_id",
        "exclude each other",
    ),
}


@pytest.mark.parametrize(("body", "param", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_wrong_input_is_refused_with_the_path_of_the_field(body: Any, param: str | None, words: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        parse_request(json.dumps(body).encode())
    assert caught.value.param == param
    assert words in caught.value.message


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b"{'a': 1}", b"nan", b"[" * 5000])
def test_what_is_not_json_is_refused_as_such(raw: bytes) -> None:
    with pytest.raises(RequestRefused) as caught:
        parse_request(raw)
    assert caught.value.code == "invalid_json"


def test_absurd_nesting_is_refused() -> None:
    with pytest.raises(RequestRefused, match="levels deep"):
        parse_request(b'{"input": "x", "future": ' + b'{"a":' * 200 + b"1" + b"}" * 201)


def test_text_input_is_a_user_message() -> None:
    request = parse_request({"input": "hi"})
    assert request.items == ({"type": "message", "role": "user", "content": "hi"},)


def test_messages_and_references_may_leave_their_type_out() -> None:
    request = parse_request({"input": [{"role": "user", "content": "a"}, {"id": "msg_1"}]})
    assert [item["type"] for item in request.items] == ["message", "item_reference"]


def test_unknown_fields_items_and_tools_survive() -> None:
    body = {"input": [{"type": "novelty", "x": 1}], "tools": [{"type": "gadget"}], "future": {"a": 1}}
    request = parse_request(json.dumps(body).encode())
    assert request.items == ({"type": "novelty", "x": 1},)
    assert request.body == body


def test_the_clients_own_object_is_never_changed() -> None:
    body = {"input": [{"role": "user", "content": "a"}]}
    before = json.dumps(body)
    parse_request(body)
    assert json.dumps(body) == before


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
fields = st.sampled_from(["model", "input", "tools", "text", "reasoning", "temperature", "stream", "metadata", "x"])
items = st.dictionaries(st.sampled_from(["type", "role", "content", "call_id", "name", "output", "tools"]), anything)


@given(st.dictionaries(fields, anything | st.lists(items, max_size=3), max_size=5))
@settings(max_examples=600, deadline=None)
def test_any_body_is_parsed_or_refused_and_nothing_else(body: dict[str, Any]) -> None:
    try:
        request = parse_request(json.dumps(body).encode())
    except RequestRefused:
        return
    assert all(isinstance(item["type"], str) for item in request.items)


def test_a_chat_body_is_told_where_it_belongs() -> None:
    with pytest.raises(RequestRefused, match="/v1/chat/completions") as refused:
        parse_request({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    assert refused.value.param == "input"
