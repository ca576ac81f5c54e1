"""Chat Completions in: the same gateway spoken to in the other language, exact in every word of the reply."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, stream

Json = dict[str, Any]
HI = [{"role": "user", "content": "hi"}]
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look", "parameters": {"type": "object", "properties": {}}},
}
CALL = ("call_1", "look", '{"at":"it"}')


def test_a_whole_reply_is_exact(flow: Flow) -> None:
    flow.script(chat("Hello", reasoning="Hm"))
    completion = flow.chat({"model": PLAIN, "messages": HI})
    ChatCompletion.model_validate(completion)
    [choice] = completion["choices"]
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": "Hello", "refusal": None, "reasoning_content": "Hm"},
        "logprobs": None,
        "finish_reason": "stop",
    }
    assert completion["object"] == "chat.completion"
    assert completion["id"].startswith("chatcmpl-")
    assert completion["model"] == "some-model"
    assert completion["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert flow.sent == [{"model": "some-model", "messages": HI}]


def test_a_stream_is_role_first_then_text_then_finish_then_done(flow: Flow) -> None:
    flow.script(chat("Hello", pieces=2))
    with flow.streaming("/v1/chat/completions", {"model": PLAIN, "messages": HI, "stream": True}) as chunks:
        seen = list(chunks)
        assert chunks.done
    for chunk in seen:
        ChatCompletionChunk.model_validate(chunk)
    assert [chunk["choices"][0]["delta"] for chunk in seen] == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "He"},
        {"content": "llo"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in seen] == [None, None, None, "stop"]
    assert {chunk["object"] for chunk in seen} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in seen}) == 1
    assert not any("usage" in chunk for chunk in seen)


def test_the_role_comes_before_the_first_token(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([gate, *chat_chunks("Hello")]))
    with flow.streaming("/v1/chat/completions", {"model": PLAIN, "messages": HI, "stream": True}) as chunks:
        first = chunks.next()
        assert first is not None
        assert first["choices"][0]["delta"]["role"] == "assistant"
        gate.open()
        assert len(list(chunks)) > 1


def test_include_usage_adds_one_last_chunk_without_choices(flow: Flow) -> None:
    flow.script(chat("Hello"))
    chunks = flow.chat_stream({"model": PLAIN, "messages": HI, "stream_options": {"include_usage": True}})
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] == 15
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


FINISH = {
    "stop": ({"text": "x"}, "stop"),
    "length": ({"text": "x", "finish": "length"}, "length"),
    "filter": ({"text": "x", "finish": "content_filter"}, "content_filter"),
    "vendor's filter": ({"text": "x", "finish": "sensitive"}, "content_filter"),
    "calls": ({"calls": [CALL]}, "tool_calls"),
    "calls called stop": ({"calls": [CALL], "finish": "stop"}, "tool_calls"),
    "legacy": ({"calls": [CALL], "finish": "function_call"}, "tool_calls"),
}


@pytest.mark.parametrize(("answer", "reason"), FINISH.values(), ids=FINISH.keys())
def test_finish_reasons_are_exact(flow: Flow, answer: Json, reason: str) -> None:
    step = chat(answer.get("text"), **{name: value for name, value in answer.items() if name != "text"})
    flow.script(step, step)
    body = {"model": PLAIN, "messages": HI, "tools": [TOOL]}
    assert flow.chat(body)["choices"][0]["finish_reason"] == reason
    chunks = flow.chat_stream(body)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + [reason]


# ── tools ──────────────────────────────────────────────────────────────────────────────────────────────


def test_tools_go_and_come_back_in_both_modes(flow: Flow) -> None:
    second = ("call_2", "look", "{}")
    flow.script(chat(calls=[CALL, second]), chat(calls=[CALL, second], pieces=2))
    body = {"model": FULL, "messages": HI, "tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": True}
    message = flow.chat(body)["choices"][0]["message"]
    expected = [
        {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at":"it"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
    ]
    assert message["tool_calls"] == expected
    assert message["content"] is None
    assert _joined_calls(flow.chat_stream(body)) == expected
    for sent in flow.sent:
        assert sent["tools"] == [TOOL]
        assert sent["tool_choice"] == "required"


def test_tool_results_go_back_in_their_place(flow: Flow) -> None:
    called = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "Be brief."},
        *HI,
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a cat"},
    ]
    flow.script(chat("A cat."))
    flow.chat({"model": FULL, "messages": messages, "tools": [TOOL]})
    assert flow.sent[0]["messages"] == messages


def test_a_named_tool_choice_is_translated(flow: Flow) -> None:
    choice = {"type": "function", "function": {"name": "look"}}
    flow.script(chat(calls=[CALL]))
    flow.chat({"model": FULL, "messages": HI, "tools": [TOOL], "tool_choice": choice})
    assert flow.sent[0]["tool_choice"] == choice


def test_allowed_tools_of_chat_is_understood(flow: Flow) -> None:
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object", "properties": {}}}}
    choice = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "look"}}]},
    }
    flow.script(chat("x", calls=[("c", "other", "{}")], finish="stop"))
    completion = flow.chat({"model": FULL, "messages": HI, "tools": [TOOL, other], "tool_choice": choice})
    assert "tool_calls" not in completion["choices"][0]["message"]


def test_custom_tools_go_and_come_back(flow: Flow) -> None:
    grammar = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-z]+"}}
    tool = {"type": "custom", "custom": {"name": "write", "description": "Write", "format": grammar}}
    step = chat(calls=[("call_1", "write", {"input": "abc"})])
    flow.script(step, step)
    body = {"model": PLAIN, "messages": HI, "tools": [tool]}
    expected = [{"id": "call_1", "type": "custom", "custom": {"name": "write", "input": "abc"}}]
    assert flow.chat(body)["choices"][0]["message"]["tool_calls"] == expected
    assert _joined_calls(flow.chat_stream(body)) == expected
    for sent in flow.sent:
        assert sent["tools"][0]["function"]["name"] == "write"
        assert "[a-z]+" in str(sent["tools"][0])


def test_a_custom_call_in_the_history_is_replayed_as_the_function_it_was(flow: Flow) -> None:
    tool = {"type": "custom", "custom": {"name": "write"}}
    messages = [
        *HI,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "write", "input": "abc"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]
    flow.script(chat("ok"))
    flow.chat({"model": PLAIN, "messages": messages, "tools": [tool]})
    _, assistant, result = flow.sent[0]["messages"]
    assert assistant["tool_calls"][0]["id"] == result["tool_call_id"] == "c1"
    assert assistant["tool_calls"][0]["function"] == {"name": "write", "arguments": '{"input":"abc"}'}


def test_legacy_functions_go_and_come_back(flow: Flow) -> None:
    functions = [{"name": "look", "parameters": {"type": "object", "properties": {}}}]
    flow.script(chat(calls=[CALL]), chat(calls=[CALL], pieces=1), chat("A cat."))
    body = {"model": FULL, "messages": HI, "functions": functions, "function_call": {"name": "look"}}
    choice = flow.chat(body)["choices"][0]
    assert choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"] == {"name": "look", "arguments": '{"at":"it"}'}
    assert "tool_calls" not in choice["message"]
    chunks = flow.chat_stream(body)
    deltas = [chunk["choices"][0]["delta"].get("function_call") for chunk in chunks]
    assert [delta for delta in deltas if delta] == [
        {"name": "look", "arguments": ""},
        {"arguments": '{"at":"it"}'},
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == "function_call"
    history = [
        *HI,
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "a cat"},
    ]
    flow.chat({"model": FULL, "messages": history, "functions": functions})
    assert flow.sent[0]["tool_choice"] == {"type": "function", "function": {"name": "look"}}
    _, assistant, result = flow.sent[2]["messages"]
    assert assistant["tool_calls"][0]["id"] == result["tool_call_id"]
    assert (result["role"], result["content"]) == ("tool", "a cat")


# ── options ────────────────────────────────────────────────────────────────────────────────────────────


def test_response_format_is_a_contract_like_any_other(flow: Flow) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    inner = {"name": "number", "schema": schema, "strict": True}
    body = {"messages": HI, "response_format": {"type": "json_schema", "json_schema": inner}}
    flow.script(chat('{"n": 1}'), chat("oops"), chat('{"n": 2}'), chat('{"n": 3}'))
    assert flow.chat({"model": FULL, **body})["choices"][0]["message"]["content"] == '{"n": 1}'
    assert flow.sent[0]["response_format"] == {"type": "json_schema", "json_schema": inner}
    assert flow.chat({"model": PLAIN, **body})["choices"][0]["message"]["content"] == '{"n": 2}'
    chunks = flow.chat_stream({"model": DEEPSEEK, **body})
    assert _joined_text(chunks) == '{"n": 3}'
    assert flow.sent[3]["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("effort", ["low", "high"])
def test_reasoning_effort_is_planned(flow: Flow, effort: str) -> None:
    flow.script(chat("x", reasoning="y"), chat("x", reasoning="y"))
    body = {"model": DEEPSEEK, "messages": HI, "reasoning_effort": effort}
    assert flow.chat(body)["choices"][0]["message"]["reasoning_content"] == "y"
    chunks = flow.chat_stream(body)
    assert "".join(chunk["choices"][0]["delta"].get("reasoning_content") or "" for chunk in chunks) == "y"
    assert [sent["reasoning_effort"] for sent in flow.sent] == [effort] * 2


def test_the_plain_parameters_travel(flow: Flow) -> None:
    options = {
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "seed": 7,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "max_completion_tokens": 50,
        "user": "me",
        "logit_bias": {"5": 1},
    }
    flow.script(chat("x"))
    completion = flow.chat({"model": FULL, "messages": HI, **options})
    assert {name: flow.sent[0][name] for name in options} == options
    assert completion["isthmus"]["diagnostics"] == []


@pytest.mark.parametrize("model", [FULL, PLAIN])
def test_max_tokens_old_and_new_mean_the_same(flow: Flow, model: str) -> None:
    flow.script(chat("x"), chat("x"))
    for name in ("max_tokens", "max_completion_tokens"):
        flow.chat({"model": model, "messages": HI, name: 64})
    field = "max_completion_tokens" if model == FULL else "max_tokens"
    assert [sent[field] for sent in flow.sent] == [64, 64]


def test_logprobs_travel_both_ways(flow: Flow) -> None:
    told = {
        "token": "x",
        "bytes": [120],
        "logprob": -0.5,
        "top_logprobs": [{"token": "x", "bytes": [120], "logprob": -0.5}],
    }
    whole = {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "x"},
                "finish_reason": "stop",
                "logprobs": {"content": [told]},
            }
        ]
    }
    pieces = [
        {"choices": [{"index": 0, "delta": {"content": "x"}, "logprobs": {"content": [told]}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    flow.script(whole, pieces)
    body = {"model": FULL, "messages": HI, "logprobs": True, "top_logprobs": 1}
    assert flow.chat(body)["choices"][0]["logprobs"]["content"] == [told]
    told_again = [chunk["choices"][0]["logprobs"] for chunk in flow.chat_stream(body)]
    assert [given["content"] for given in told_again if given] == [[told]]
    for sent in flow.sent:
        assert (sent["logprobs"], sent["top_logprobs"]) == (True, 1)


def test_images_travel(flow: Flow) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}
    content = [{"type": "text", "text": "What?"}, image]
    flow.script(chat("A dot."), chat("Nothing."))
    flow.chat({"model": FULL, "messages": [{"role": "user", "content": content}]})
    assert flow.sent[0]["messages"][0]["content"] == content
    blind = flow.chat({"model": PLAIN, "messages": [{"role": "user", "content": content}]})
    assert [said["path"] for said in blind["isthmus"]["diagnostics"]] == ["messages[0].content[1]"]


def test_audio_travels_to_a_model_that_hears(flow: Flow) -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}
    flow.script(chat("Hello."))
    flow.chat({"model": "full/gpt-audio", "messages": [{"role": "user", "content": [audio]}]})
    assert flow.sent[0]["messages"][0]["content"] == [audio]


def test_developer_and_name_are_kept_where_they_are_known(flow: Flow) -> None:
    messages = [
        {"role": "developer", "content": "Rules."},
        {"role": "user", "content": "hi", "name": "ann"},
    ]
    flow.script(chat("x"), chat("x"))
    flow.chat({"model": FULL, "messages": messages})
    flow.chat({"model": DEEPSEEK, "messages": messages})
    assert flow.sent[0]["messages"] == messages
    assert flow.sent[1]["messages"][0] == {"role": "system", "content": "Rules."}


def test_store_is_off_unless_asked_for(flow: Flow) -> None:
    flow.script(chat("x"), chat("x"))
    before = flow.rows()
    flow.chat({"model": PLAIN, "messages": HI})
    assert flow.rows() == before
    kept = flow.chat({"model": PLAIN, "messages": HI, "store": True, "metadata": {"a": "b"}})
    assert flow.get(f"/v1/chat/completions/{kept['id']}").json == {**kept, "metadata": {"a": "b"}}


def test_a_refusal_is_told_as_one(flow: Flow) -> None:
    flow.script(chat(refusal="No."), chat(refusal="No."))
    message = flow.chat({"model": FULL, "messages": HI})["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "No.")
    chunks = flow.chat_stream({"model": FULL, "messages": HI})
    assert "".join(chunk["choices"][0]["delta"].get("refusal") or "" for chunk in chunks) == "No."


def test_audio_out_is_not_promised(flow: Flow) -> None:
    body = {"model": FULL, "messages": HI, "modalities": ["text", "audio"], "audio": {"voice": "x", "format": "wav"}}
    flow.script(chat("x"))
    said = flow.chat(body)["isthmus"]["diagnostics"]
    assert {one["path"] for one in said} == {"modalities", "audio"}
    assert flow.post("/v1/chat/completions", body, {"Isthmus-Strict": "true"}).status == 400


def test_n_of_one_is_no_question(flow: Flow) -> None:
    flow.script(chat("x"))
    assert flow.chat({"model": PLAIN, "messages": HI, "n": 1})["isthmus"]["diagnostics"] == []


def _joined_text(chunks: list[Json]) -> str:
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"])


def _joined_calls(chunks: list[Json]) -> list[Json]:
    """What a client makes of the fragments."""
    calls: dict[int, Json] = {}
    for chunk in chunks:
        for piece in chunk["choices"][0]["delta"].get("tool_calls") or ():
            kind = "custom" if "custom" in piece else "function"
            text = "input" if kind == "custom" else "arguments"
            if piece["index"] not in calls:
                calls[piece["index"]] = {"id": piece["id"], "type": piece["type"], kind: dict(piece[kind])}
            else:
                calls[piece["index"]][kind][text] += piece[kind][text]
    return [calls[index] for index in sorted(calls)]
