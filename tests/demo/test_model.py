from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demo_requests import PATCH, WEATHER, ask, calls, choice, request, say
from isthmus.demo.model import MODELS, answer
from isthmus.demo.question import Refused
from isthmus.demo.tokens import count_prompt, split_tokens
from isthmus.demo.wire import closing, opening, piece_chunks, whole

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def bytes_of(body: dict[str, Any]) -> bytes:
    reply = answer(body)
    return opening(reply) + b"".join(piece_chunks(reply)) + closing(reply, usage=True)


@pytest.mark.parametrize("model", MODELS)
def test_the_same_request_gets_the_same_bytes(model: str) -> None:
    body = request("weather in Paris and London", WEATHER, model=model)
    assert bytes_of(body) == bytes_of({**body, "stream": True, "stream_options": {"include_usage": True}})
    assert whole(answer(body)) == whole(answer(dict(reversed(body.items()))))


def test_calls_of_two_turns_have_different_ids() -> None:
    first, second = ask("weather in Paris", WEATHER), ask("weather in Rome and Oslo", WEATHER)
    ids = [call["id"] for message in (first, second) for call in message["tool_calls"]]
    assert len(set(ids)) == 3


def test_reasoning_grows_with_the_effort() -> None:
    thoughts = [ask("hello", reasoning_effort=effort).get("reasoning_content", "") for effort in EFFORTS]
    lengths = [len(thought) for thought in thoughts]
    assert lengths[0] == 0
    assert lengths == sorted(set(lengths))


def test_no_effort_means_no_reasoning_but_for_the_thinking_model() -> None:
    assert "reasoning_content" not in ask("hello")
    assert "reasoning_content" not in ask("hello", model="demo-paced")
    assert ask("hello", model="demo-thinking")["reasoning_content"]
    assert ask("hello", model="demo-thinking", reasoning_effort="none")["reasoning_content"]
    assert ask("hello", model="demo-thinking")["content"] == say("hello")


def test_reasoning_comes_before_calls_and_speaks_of_them() -> None:
    reply = answer(request("weather in Paris", WEATHER, reasoning_effort="low"))
    kinds = [piece.kind for piece in reply.pieces]
    assert kinds == sorted(kinds, key=["reasoning_content", "call"].index)
    assert "get_weather" in whole(reply)["choices"][0]["message"]["reasoning_content"]


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_a_limit_ends_the_answer_with_length(field: str) -> None:
    reply = answer(request("lorem 100", **{field: 10}))
    assert (reply.finish, len(reply.pieces), reply.usage["completion_tokens"]) == ("length", 10, 10)
    assert answer(request("say hi", **{field: 10})).finish == "stop"


def test_reasoning_counts_against_the_limit() -> None:
    cut = choice("hello", reasoning_effort="high", max_tokens=5)
    assert (cut["finish_reason"], cut["message"]["content"]) == ("length", "")


@pytest.mark.parametrize(
    ("stop", "said"),
    [("3", "1, 2, "), (["9", "4"], "1, 2, 3, "), ([], "1, 2, 3, 4, 5."), ("never", "1, 2, 3, 4, 5."), (None, None)],
)
def test_stop_sequences_end_the_text_before_them(stop: Any, said: str | None) -> None:
    told = choice("count to 5", stop=stop)
    assert told["message"]["content"] == (said or "1, 2, 3, 4, 5.")
    assert told["finish_reason"] == "stop"


def test_usage_is_always_whole() -> None:
    usage = answer(request("hello", reasoning_effort="low")).usage
    details = usage["completion_tokens_details"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 0 < details["reasoning_tokens"] < usage["completion_tokens"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": 0}


def test_what_an_earlier_turn_sent_counts_as_cached() -> None:
    before: list[dict[str, Any]] = [{"role": "user", "content": "My name is Ada."}]
    sent, _ = count_prompt(before, [WEATHER])
    after = [*before, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Go on."}]
    total, cached = count_prompt(after, [WEATHER])
    assert cached == sent < total


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(split_tokens(text)) == text


@given(st.text(max_size=200), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_text_gets_an_answer_or_a_refusal(text: str, tools: bool) -> None:
    with contextlib.suppress(Refused):
        assert answer(request(text, *([WEATHER, PATCH] if tools else []))).pieces


def odd() -> st.SearchStrategy[Any]:
    leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8))
    words = [
        "type",
        "text",
        "content",
        "properties",
        "required",
        "items",
        "enum",
        "anyOf",
        "$ref",
        "minItems",
        "function",
    ]
    names = st.sampled_from(words)
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))


@given(
    st.fixed_dictionaries(
        {"content": odd()}, optional={"tool_calls": odd(), "tool_call_id": odd(), "reasoning_content": odd()}
    ),
    st.sampled_from(["user", "tool", "assistant", "system", "other"]),
    st.dictionaries(
        st.sampled_from(
            ["tools", "tool_choice", "response_format", "stop", "max_tokens", "reasoning_effort", "verbosity", "stream"]
        ),
        odd(),
    ),
    odd(),
)
@settings(max_examples=500, deadline=None)
def test_odd_shapes_are_answered_or_refused(
    message: dict[str, Any], role: str, fields: dict[str, Any], schema: Any
) -> None:
    offered = {"type": "function", "function": {"name": "f", "parameters": schema}}
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
    messages = [{"role": "user", "content": "f"}, {**message, "role": role}]
    for more in ({}, {"tools": [offered], "tool_choice": "required"}, {"response_format": wanted}):
        with contextlib.suppress(Refused):
            whole(answer({"model": "demo", "messages": messages, **fields, **more}))


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"model": "gpt-9", "messages": [{"role": "user", "content": "x"}]}, 404, "ask for one of demo, demo-paced"),
        ({"model": "demo"}, 400, "`messages`"),
        ({"model": "demo", "messages": []}, 400, "`messages`"),
        ({"model": "demo", "messages": ["x"]}, 400, "`messages`"),
        ({"model": "demo", "messages": [{"content": "x"}]}, 400, "`role`"),
        (request("x", tool_choice={"type": "function", "function": {"name": "f"}}), 400, "`tool_choice` names `f`"),
        (request("x", {"function": {"name": "f", "parameters": {"type": 3}}}), 400, "the parameters of tool `f`"),
        (request("x", response_format={"json_schema": {"schema": {"type": 3}}}), 400, "`response_format`"),
        (request("[[demo: explode]]"), 400, "`explode`; it knows: error N"),
        (request("[[demo: error 200]]"), 400, "a number from 400 to 599"),
        (request("[[demo: slow soon]]"), 400, "a number from 0 to 600"),
        (request("[[demo: call f]]", WEATHER), 400, "not among the tools: get_weather"),
    ],
)
def test_a_wrong_request_is_refused_with_the_next_step(body: dict[str, Any], status: int, words: str) -> None:
    with pytest.raises(Refused) as caught:
        answer(body)
    assert caught.value.status == status
    assert words in caught.value.message


def test_length_stops_halfway() -> None:
    cut = choice("[[demo: length]] count to 20")
    assert cut["finish_reason"] == "length"
    assert say("count to 20").startswith(cut["message"]["content"])


def test_refuse_refuses() -> None:
    told = choice("[[demo: refuse]] weather in Paris", WEATHER)
    assert told["finish_reason"] == "stop"
    assert told["message"]["refusal"]
    assert told["message"]["content"] is None


def test_call_calls_exactly_that_and_once() -> None:
    text = '[[demo: call get_weather {"city": [["x"]]}]] [[demo: call get_weather]]'
    message = ask(text, WEATHER)
    assert calls(message) == [("get_weather", {"city": [["x"]]}), ("get_weather", {})]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in message["tool_calls"]]
    after = [{"role": "user", "content": text}, message, *results]
    assert say("", WEATHER, messages=after) == "Done.\nget_weather answered: ok\nget_weather answered: ok"


def test_directives_leave_the_text() -> None:
    assert say("say [[demo: slow 0]] hi [[Demo: pace 50]]") == "hi"
