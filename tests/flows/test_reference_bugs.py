"""The twelve correctness bugs that the reference gateway has: one fact each, whole and streamed, from both ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, ZHIPU, Flow
from isthmus.testing import PATIENCE, chat, chat_chunks, chat_error, chat_reply, silence, stream
from talking import message_text

Json = dict[str, Any]

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
STRICT = {"format": {"type": "json_schema", "name": "number", "schema": SCHEMA, "strict": True}}
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
CALL = ("call_w1", "get_weather", '{"city":"Rome"}')
ASK = [{"role": "user", "content": "Weather in Rome?"}]


@pytest.mark.parametrize("model", [FULL, DEEPSEEK, PLAIN])
def test_bug_01_strict_json_schema_with_a_tool_call_is_not_a_failure(flow: Flow, model: str) -> None:
    flow.script(chat(calls=[CALL]), chat(calls=[CALL]))
    whole, _ = flow.both({"model": model, "input": ASK, "tools": [WEATHER], "text": STRICT})
    assert whole["status"] == "completed"
    assert [(item["type"], item["name"], item["arguments"]) for item in whole["output"]] == [
        ("function_call", "get_weather", '{"city":"Rome"}')
    ]
    assert [body["tools"][0]["function"]["name"] for body in flow.sent] == ["get_weather"] * 2


@pytest.mark.parametrize("model", [FULL, DEEPSEEK, PLAIN])
def test_bug_01_strict_json_schema_cut_by_length_is_incomplete_not_an_error(flow: Flow, model: str) -> None:
    flow.script(chat('{"n": ', finish="length"), chat('{"n": ', finish="length"))
    whole, _ = flow.both({"model": model, "input": "A number", "text": STRICT})
    assert whole["status"] == "incomplete"
    assert whole["incomplete_details"] == {"reason": "max_output_tokens"}
    assert message_text(whole) == '{"n": '


@pytest.mark.parametrize("streamed", [False, True])
def test_bug_02_instructions_of_earlier_turns_are_not_replayed(flow: Flow, streamed: bool) -> None:
    flow.script(chat(calls=[CALL]), chat("Sunny."), chat("Yes."))
    first = _turn(flow, streamed, {"model": FULL, "input": ASK, "tools": [WEATHER], "instructions": "First rules."})
    answer = {"type": "function_call_output", "call_id": "call_w1", "output": "sunny"}
    second = _turn(
        flow,
        streamed,
        {
            "model": FULL,
            "previous_response_id": first["id"],
            "input": [answer],
            "tools": [WEATHER],
            "instructions": "Second rules.",
        },
    )
    third = _turn(flow, streamed, {"model": FULL, "previous_response_id": second["id"], "input": "Sure?"})
    assert (first["instructions"], second["instructions"], third["instructions"]) == (
        "First rules.",
        "Second rules.",
        None,
    )
    called = {
        "id": "call_w1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'},
    }
    turn = [
        {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "call_w1", "content": "sunny"},
    ]
    assert flow.sent[1]["messages"] == [{"role": "system", "content": "Second rules."}, *turn]
    assert flow.sent[2]["messages"] == [
        *turn,
        {"role": "assistant", "content": "Sunny."},
        {"role": "user", "content": "Sure?"},
    ]


def test_bug_03_a_chain_of_eighty_turns_goes_on(flow: Flow) -> None:
    parent = None
    for number in range(80):
        flow.script(chat(f"answer {number}"))
        parent = flow.create({"model": PLAIN, "previous_response_id": parent, "input": f"question {number}"})["id"]
    last = flow.sent[-1]["messages"]
    assert len(last) == 159
    assert [last[0], last[1], last[-1]] == [
        {"role": "user", "content": "question 0"},
        {"role": "assistant", "content": "answer 0"},
        {"role": "user", "content": "question 79"},
    ]


@pytest.mark.parametrize("streamed", [False, True])
def test_bug_03_an_incomplete_turn_is_continued(flow: Flow, streamed: bool) -> None:
    flow.script(chat("Once upon a", finish="length"), chat(" time."))
    first = _turn(flow, streamed, {"model": PLAIN, "input": "A story"})
    assert first["status"] == "incomplete"
    second = _turn(flow, streamed, {"model": PLAIN, "previous_response_id": first["id"], "input": "Go on"})
    assert second["status"] == "completed"
    assert flow.sent[1]["messages"] == [
        {"role": "user", "content": "A story"},
        {"role": "assistant", "content": "Once upon a"},
        {"role": "user", "content": "Go on"},
    ]


def test_bug_04_a_call_without_an_answer_gets_one_before_it_goes_upstream(flow: Flow) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"}
    body = {"model": PLAIN, "input": [*ASK, call, {"role": "user", "content": "Never mind"}], "tools": [WEATHER]}
    flow.script(chat("Fine."), chat("Fine."))
    whole, _ = flow.both(body)
    for sent in flow.sent:
        assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "tool", "user"]
        assert sent["messages"][2]["tool_call_id"] == sent["messages"][1]["tool_calls"][0]["id"] == "call_1"
    assert "bridge.history.repaired" in [said["code"] for said in whole["isthmus"]["diagnostics"]]


def test_bug_05_an_upstream_that_is_too_slow_is_a_504_that_says_so(special: Any) -> None:
    flow = special(store="memory", provider="timeouts = { first_byte = 30, connect = 20 }")
    flow.script(silence(), silence())
    body = {"model": PLAIN, "input": "hi"}
    for number, asked in enumerate((body, {**body, "stream": True}), start=1):
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(flow.post, "/v1/responses", asked)
            flow.wait_sent(number)
            flow.server.skip(50)
            reply = answer.result(PATIENCE)
        assert reply.status == 504
        assert reply.error["code"] == "upstream_timeout"
        assert reply.error["type"] == "server_error"
    assert len(flow.sent) == 2


def test_bug_06_null_ids_names_and_types_in_tool_call_deltas_are_no_failure(flow: Flow) -> None:
    head: Json = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(call: Json | None, finish: str | None = None) -> Json:
        delta = {"content": None, "tool_calls": [call]} if call else {}
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": None}}
    more = {"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '{"city":'}}
    last = {"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '"Rome"}'}}
    flow.script([chunk(first), chunk(more), chunk(last), chunk(None, "tool_calls")])
    _, response = flow.stream({"model": PLAIN, "input": ASK, "tools": [WEATHER]})
    assert response["status"] == "completed"
    [call] = response["output"]
    assert (call["type"], call["call_id"], call["name"], call["arguments"]) == (
        "function_call",
        "call_1",
        "get_weather",
        '{"city":"Rome"}',
    )


def test_bug_07_an_empty_upstream_stream_ends_in_one_failed_event(flow: Flow) -> None:
    flow.script(stream([]))
    events, response = flow.stream({"model": PLAIN, "input": "hi"})
    assert [event["type"] for event in events] == ["response.created", "response.in_progress", "response.failed"]
    assert response["error"]["code"] == "server_error"
    assert flow.get(f"/v1/responses/{response['id']}").json == response


def test_bug_07_the_words_of_an_error_chunk_reach_the_client(flow: Flow) -> None:
    chunks = chat_chunks("Half an", usage=None)[:-1]
    flow.script(stream([*chunks, chat_error("GPU 7 is on fire", code="hardware")]))
    _, response = flow.stream({"model": PLAIN, "input": "hi"})
    assert response["status"] == "failed"
    assert "GPU 7 is on fire" in response["error"]["message"]
    assert message_text(response) == "Half an"
    assert response["output"][0]["status"] == "incomplete"


def test_bug_07_content_behind_the_finish_reason_is_kept(flow: Flow) -> None:
    early, *_ = [chunk for chunk in chat_chunks("Hello") if chunk["choices"] and chunk["choices"][0]["finish_reason"]]
    words = [chunk for chunk in chat_chunks("Hello", pieces=2) if chunk is not early and chunk != early]
    flow.script([*words[:2], early, *words[2:]])
    _, response = flow.stream({"model": PLAIN, "input": "hi"})
    assert response["status"] == "completed"
    assert message_text(response) == "Hello"
    assert response["usage"]["total_tokens"] == 15


def test_bug_08_usage_without_a_total_is_summed(flow: Flow) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 4}
    flow.script(chat("ok", usage=usage), chat("ok", usage=usage))
    whole, _ = flow.both({"model": PLAIN, "input": "hi"})
    assert whole["status"] == "completed"
    assert whole["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 11,
    }


def test_bug_09_a_search_of_the_provider_beside_a_function_call_loses_neither(flow: Flow) -> None:
    found = [{"link": "https://example.org/a"}, {"link": "https://example.org/b"}]
    whole_reply = {**chat_reply(calls=[CALL]), "web_search": found}
    chunks = chat_chunks(calls=[CALL])
    flow.script(whole_reply, [*chunks[:-1], {**chunks[-1], "web_search": found}])
    body = {"model": ZHIPU, "input": ASK, "tools": [{"type": "web_search"}, WEATHER]}
    responses = [flow.create(body), flow.stream(body)[1]]
    for response in responses:
        assert response["status"] == "completed"
        by_type = {item["type"]: item for item in response["output"]}
        assert set(by_type) == {"web_search_call", "function_call"}
        assert len(response["output"]) == 2
        assert by_type["function_call"]["arguments"] == '{"city":"Rome"}'
        assert [source["url"] for source in by_type["web_search_call"]["action"]["sources"]] == [
            "https://example.org/a",
            "https://example.org/b",
        ]
    for sent in flow.sent:
        assert [tool["type"] for tool in sent["tools"]] == ["web_search", "function"]


@pytest.mark.parametrize("streamed", [False, True])
def test_bug_09_usage_counts_every_upstream_call_of_a_response(flow: Flow, streamed: bool) -> None:
    flow.script(chat("no json", usage=(10, 5)), chat('{"n": 1}', usage=(20, 7)))
    response = _turn(flow, streamed, {"model": PLAIN, "input": "A number", "text": STRICT})
    assert message_text(response) == '{"n": 1}'
    assert [response["usage"][name] for name in ("input_tokens", "output_tokens", "total_tokens")] == [30, 12, 42]


WRONG: dict[str, tuple[Json, str]] = {
    "input is a number": ({"input": 3}, "input"),
    "input is an object": ({"input": {"role": "user", "content": "hi"}}, "input"),
    "an input item is null": ({"input": [None]}, "input[0]"),
    "an input item is text": ({"input": ["hi"]}, "input[0]"),
    "content is a number": ({"input": [{"role": "user", "content": 5}]}, "input[0].content"),
    "a content part is null": ({"input": [{"role": "user", "content": [None]}]}, "input[0].content[0]"),
    "tools is an object": ({"tools": {"type": "function"}}, "tools"),
    "a tool is null": ({"tools": [None]}, "tools[0]"),
    "a tool has no name": ({"tools": [{"type": "function"}]}, "tools[0].name"),
    "temperature is text": ({"temperature": "hot"}, "temperature"),
    "max_output_tokens is text": ({"max_output_tokens": "9"}, "max_output_tokens"),
    "stream is a number": ({"stream": 1}, "stream"),
    "text.format is text": ({"text": {"format": "json"}}, "text.format"),
    "reasoning is text": ({"reasoning": "high"}, "reasoning"),
    "metadata is a list": ({"metadata": []}, "metadata"),
    "previous_response_id is a number": ({"previous_response_id": 4}, "previous_response_id"),
    "model is a list": ({"model": []}, "model"),
    "include is text": ({"include": "reasoning"}, "include"),
    "store is text": ({"store": "yes"}, "store"),
}


@pytest.mark.parametrize(("change", "param"), WRONG.values(), ids=WRONG.keys())
def test_bug_10_a_wrong_type_is_a_400_that_names_the_field(flow: Flow, change: Json, param: str) -> None:
    for stream_too in ({}, {"stream": True}):
        reply = flow.post("/v1/responses", {"model": PLAIN, "input": "hi", **stream_too, **change})
        assert (reply.status, reply.error["param"]) == (400, param)
        assert reply.error["type"] == "invalid_request_error"
        assert f"`{param}`" in reply.error["message"] or f"`{param.rpartition('.')[0]}`" in reply.error["message"]
    assert flow.sent == []


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_bug_11_an_effort_makes_deepseek_think(flow: Flow, effort: str) -> None:
    flow.script(chat("Yes.", reasoning="Hmm."), chat("Yes.", reasoning="Hmm."))
    whole, _ = flow.both({"model": DEEPSEEK, "input": "Really?", "reasoning": {"effort": effort}})
    for sent in flow.sent:
        assert sent["thinking"] == {"type": "enabled"}
        assert sent["reasoning_effort"] in ("low", "high")
    assert [item["type"] for item in whole["output"]] == ["reasoning", "message"]


def test_bug_12_a_native_json_schema_goes_out_in_the_shape_of_chat_completions(flow: Flow) -> None:
    flow.script(chat('{"n": 1}'), chat('{"n": 1}'))
    flow.both({"model": FULL, "input": "A number", "text": STRICT})
    for sent in flow.sent:
        assert sent["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "number", "schema": SCHEMA, "strict": True},
        }


def test_a_stream_is_the_same_however_its_bytes_are_cut(flow: Flow) -> None:
    """Not in the list, but the ground that the others stand on."""
    flow.script(chat("Grüße, 世界", reasoning="für", slice=1), chat("Grüße, 世界", reasoning="für"))
    _, one = flow.stream({"model": DEEPSEEK, "input": "hi"})
    _, other = flow.stream({"model": DEEPSEEK, "input": "hi"})
    assert [item.get("content") for item in one["output"]] == [item.get("content") for item in other["output"]]


def _turn(flow: Flow, streamed: bool, body: Json) -> Json:
    return flow.stream(body)[1] if streamed else flow.create(body)
