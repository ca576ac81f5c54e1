"""What users of bridges suffer from, by the numbers of the field survey: each sent over a real socket, and the bytes
that the provider got looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from chat_sequence import validate_chat_sequence
from flowing import Flow, lent
from flowing_providers import provider_flow
from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.providers import load_provider, provider_names
from isthmus.testing import chat, chat_chunks, chat_reply, reply, stream
from socketing import open_socket
from talking import message_text

Json = dict[str, Any]

NAMES = [name for name in provider_names() if name != "demo" and load_provider(name).capabilities().dialect == "chat"]
WEATHER: Json = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CALL = ("call_w1", "get_weather", '{"city":"Rome"}')
ASK: Json = {"role": "user", "content": "Weather in Rome?"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "call_w1", "output": "sunny"}
THINK: Json = {"reasoning": {"effort": "high"}}


@pytest.fixture(scope="module")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with provider_flow(tmp_path_factory.mktemp("pains"), dict.fromkeys(NAMES, "dialect = 'chat'")) as house:
        yield house


@pytest.fixture
def flow(_house: Flow) -> Iterator[Flow]:
    with lent(_house) as mine:
        yield mine


def model_of(name: str) -> str:
    """The provider's default model; servers that have none serve whatever they were started with."""
    return f"{name}/{load_provider(name).default_model or 'some-model'}"


def facts_of(name: str) -> ProviderCapabilities:
    provider, _, model = model_of(name).partition("/")
    return load_provider(provider).capabilities(model)


each_provider = pytest.mark.parametrize("name", NAMES)


def said(response: Json) -> dict[str, str]:
    return {note["path"]: note["action"] for note in response["isthmus"]["diagnostics"]}


def ask(flow: Flow, model: str, *, answer: Any = None, **body: Any) -> tuple[Json, Json]:
    """One request: what the provider got, and what the client got."""
    flow.script(answer or chat("Fine."))
    response = flow.create({"model": model, "input": "Go", **body})
    return flow.sent[-1], response


# P4. Reasoning that must come back

REPLAYS = {
    "deepseek/deepseek-v4-pro": "reasoning_content",
    "zhipu/glm-5.2": "reasoning_content",
    "xiaomi/mimo-v2.5-pro": "reasoning_content",
    "kimi/kimi-k3": "reasoning_content",
    "groq/openai/gpt-oss-120b": "reasoning",
}


@pytest.mark.parametrize("store", [True, False], ids=["stored here", "carried by the client"])
@pytest.mark.parametrize(("model", "field"), REPLAYS.items(), ids=list(REPLAYS))
def test_p4_reasoning_goes_back_with_the_turn_that_called_tools(
    flow: Flow, model: str, field: str, store: bool
) -> None:
    flow.script(chat(reasoning="Which city?", reasoning_field=field, calls=[CALL]), chat("Sunny."))
    asked: Json = {
        "model": model,
        "tools": [WEATHER],
        "store": store,
        "include": ["reasoning.encrypted_content"],
        **THINK,
    }
    first = flow.create({**asked, "input": [ASK]})
    if store:
        flow.create({**asked, "input": [OUTPUT], "previous_response_id": first["id"]})
    else:
        flow.create({**asked, "input": [ASK, *first["output"], OUTPUT]})
    assert flow.sent[1]["messages"][1][field] == "Which city?"
    assert validate_chat_sequence(flow.sent[1]["messages"]) is None


def test_p4_only_the_envelope_is_enough(flow: Flow) -> None:
    flow.script(chat(reasoning="Which city?", calls=[CALL]), chat("Sunny."))
    asked: Json = {
        "model": "deepseek/deepseek-v4-pro",
        "tools": [WEATHER],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        **THINK,
    }
    first = flow.create({**asked, "input": [ASK]})
    bare = [{k: v for k, v in item.items() if k not in ("content", "id")} for item in first["output"]]
    flow.create({**asked, "input": [ASK, *bare, OUTPUT]})
    assert flow.sent[1]["messages"][1]["reasoning_content"] == "Which city?"


def test_p4_a_lost_reasoning_is_a_placeholder_that_is_reported(flow: Flow) -> None:
    call = {"type": "function_call", "call_id": "call_w1", "name": "get_weather", "arguments": "{}"}
    sent, response = ask(flow, "deepseek/deepseek-v4-pro", input=[ASK, call, OUTPUT], tools=[WEATHER], **THINK)
    assert sent["messages"][1]["reasoning_content"] == " "
    assert said(response)["input[1]"] == "degraded"


def test_p4_a_provider_that_wants_none_gets_none(flow: Flow) -> None:
    past = [ASK, {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}]
    sent, _ = ask(flow, "openai/gpt-4o", input=[*past, {"role": "assistant", "content": "Yes."}, ASK])
    assert sent["messages"][1] == {"role": "assistant", "content": "Yes."}


# P8. Usage


@each_provider
def test_p8_usage_in_a_stream_is_asked_for_only_where_that_is_allowed(flow: Flow, name: str) -> None:
    flow.script(chat("Fine."))
    _, response = flow.stream({"model": model_of(name), "input": "Go"})
    wants = facts_of(name).streaming_usage
    assert (flow.sent[0].get("stream_options") == {"include_usage": True}) is wants
    assert response["usage"]["input_tokens_details"]["cached_tokens"] == 0
    assert response["usage"]["output_tokens_details"]["reasoning_tokens"] == 0


def test_p8_nulls_in_usage_become_numbers_and_a_late_chunk_counts(flow: Flow) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9, "prompt_tokens_details": None}
    chunks = chat_chunks("Hi", usage=None)
    late = {"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": usage}
    flow.script(stream([*chunks, late]))
    _, response = flow.stream({"model": model_of("vllm"), "input": "Go"})
    assert response["usage"]["total_tokens"] == 9
    assert response["usage"]["input_tokens_details"]["cached_tokens"] == 0


# P9. Parallel calls with broken indexes


def fragments(*calls: Json) -> list[Json]:
    head = {"id": "x", "object": "chat.completion.chunk"}
    made = [{**head, "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls]
    return [*made, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]


def piece(id: str | None, name: str | None, arguments: str, **place: Any) -> Json:
    return {**place, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


BROKEN = {
    "index 0 for every call": [
        piece("a", "get_weather", '{"city":"Rome"}', index=0),
        piece("b", "get_weather", '{"city":"Oslo"}', index=0),
    ],
    "no index": [piece("a", "get_weather", '{"city":"Rome"}'), piece("b", "get_weather", '{"city":"Oslo"}')],
    "null index, no ids": [
        piece(None, "get_weather", '{"city":"Rome"}', index=None),
        piece(None, "get_weather", '{"city":"Oslo"}', index=None),
    ],
    "interleaved": [
        piece("a", "get_weather", '{"city"', index=0),
        piece("b", "get_weather", '{"city":', index=1),
        piece(None, None, ':"Rome"}', index=0),
        piece(None, None, '"Oslo"}', index=1),
    ],
    "arguments told anew": [
        piece("a", "get_weather", '{"city":', index=0),
        piece("a", "get_weather", '{"city":"Rome"}', index=0),
        piece("b", "get_weather", '{"city":"Oslo"}', index=1),
    ],
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
def test_p9_parallel_calls_come_out_whole_and_go_back_whole(flow: Flow, broken: list[Json]) -> None:
    flow.script(stream(fragments(*broken)), chat("Both fine."))
    model = model_of("vllm")
    _, first = flow.stream({"model": model, "input": [ASK], "tools": [WEATHER]})
    calls = [item for item in first["output"] if item["type"] == "function_call"]
    assert [json.loads(call["arguments"]) for call in calls] == [{"city": "Rome"}, {"city": "Oslo"}]
    outputs = [{**OUTPUT, "call_id": call["call_id"]} for call in calls]
    flow.create({"model": model, "input": outputs, "tools": [WEATHER], "previous_response_id": first["id"]})
    messages = flow.sent[1]["messages"]
    assert validate_chat_sequence(messages) is None
    assert len(messages[1]["tool_calls"]) == 2


# P10, P11. Roles and system messages

RULES: list[Json] = [
    {"role": "developer", "content": "House rules."},
    ASK,
    {"role": "assistant", "content": "Where?"},
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Rome"},
]


@each_provider
def test_p10_developer_reaches_the_model_under_a_role_that_it_knows(flow: Flow, name: str) -> None:
    sent, _ = ask(flow, model_of(name), input=RULES)
    roles = {message["role"] for message in sent["messages"]}
    assert ("developer" in roles) == (name == "openai")
    assert "House rules." in json.dumps(sent["messages"])


@each_provider
def test_p11_system_text_stands_where_the_model_takes_it(flow: Flow, name: str) -> None:
    sent, response = ask(flow, model_of(name), input=RULES, instructions="Answer in French.")
    messages = sent["messages"]
    assert "Answer in French." in messages[0]["content"]
    assert "Be brief." in json.dumps(messages)
    if facts_of(name).messages.system == "leading":
        users = ["user", "user"] if facts_of(name).messages.turns == "free" else ["user"]
        assert [message["role"] for message in messages] == ["system", "user", "assistant", *users]
        assert messages[0]["content"] == "Answer in French.\n\nHouse rules."
        assert said(response)["input[3]"] == "degraded"
    else:
        assert messages[-2] == {"role": "system", "content": "Be brief."}


# P12. Forced tools against thinking

FORCED: dict[str, tuple[str, Any, Json]] = {
    "switched off where it can be": (
        "deepseek/deepseek-v4-pro",
        "required",
        {"tool_choice": "required", "thinking": {"type": "disabled"}},
    ),
    "told in words at qwen": ("qwen/qwen3.8-max", "required", {"tool_choice": "auto", "enable_thinking": True}),
    "told in words where it cannot": ("kimi/kimi-k3", "required", {"tool_choice": "auto", "reasoning_effort": "high"}),
    "auto only": ("zhipu/glm-5.2", "required", {"tool_choice": "auto"}),
    "forced where that works": ("groq/openai/gpt-oss-120b", "required", {"tool_choice": "required"}),
}


@pytest.mark.parametrize(("model", "choice", "expected"), FORCED.values(), ids=list(FORCED))
def test_p12_a_forced_choice_never_meets_a_refusal(flow: Flow, model: str, choice: Any, expected: Json) -> None:
    sent, response = ask(flow, model, answer=chat(calls=[CALL]), tools=[WEATHER], tool_choice=choice, **THINK)
    assert {name: sent.get(name) for name in expected} == expected
    if sent.get("tool_choice") == "auto":
        assert "call at least one of the tools" in json.dumps(sent["messages"])
        assert said(response)["tool_choice"] == "degraded"


def test_p12_a_named_tool_is_the_only_one_left(flow: Flow) -> None:
    other = {**WEATHER, "name": "get_time"}
    choice = {"type": "function", "name": "get_weather"}
    sent, _ = ask(flow, "zhipu/glm-5.2", answer=chat(calls=[CALL]), tools=[WEATHER, other], tool_choice=choice)
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["get_weather"]
    assert "`get_weather`" in sent["messages"][0]["content"]


@each_provider
def test_p12_none_sends_no_tools(flow: Flow, name: str) -> None:
    sent, _ = ask(flow, model_of(name), tools=[WEATHER], tool_choice="none")
    assert "tools" not in sent
    assert "tool_choice" not in sent


# P14. Schema keywords

PICKY: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "place": {"$ref": "#/$defs/place"},
        "count": {"type": "integer", "exclusiveMinimum": 0},
    },
    "$defs": {"place": {"type": "string", "minLength": 1}},
    "additionalProperties": False,
}


def test_p14_refused_keywords_move_into_words_and_refs_are_written_out(flow: Flow) -> None:
    sent, response = ask(flow, "gemini/gemini-3.8-flash", tools=[{**WEATHER, "parameters": PICKY, "strict": True}])
    function = sent["tools"][0]["function"]
    text = json.dumps(function["parameters"])
    assert not re.search(r'"(\$schema|\$ref|\$defs|additionalProperties|exclusiveMinimum)"', text)
    assert function["parameters"]["properties"]["place"]["type"] == "string"
    assert "exclusiveMinimum" in json.dumps(function).replace('"exclusiveMinimum":', "")
    assert "strict" not in function
    assert said(response)["tools[0]"] == "degraded"


def test_p14_a_provider_without_such_limits_gets_the_schema_as_it_is(flow: Flow) -> None:
    sent, _ = ask(flow, "openai/gpt-4o", tools=[{**WEATHER, "parameters": PICKY}])
    assert sent["tools"][0]["function"]["parameters"] == PICKY


# P15. Fields that a provider does not know

EVERYTHING: Json = {
    "temperature": 0.5,
    "top_p": 0.9,
    "user": "u1",
    "safety_identifier": "s1",
    "prompt_cache_key": "k1",
    "service_tier": "auto",
    "metadata": {"a": "b"},
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "max_tool_calls": 3,
    "top_logprobs": 2,
    "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
    "text": {"verbosity": "low"},
    "reasoning": {"effort": "high", "summary": "auto"},
    "client_metadata": {"x": "y"},
    "tools": [WEATHER],
}


@each_provider
def test_p15_nothing_leaves_that_the_provider_does_not_know(flow: Flow, name: str) -> None:
    sent, response = ask(flow, model_of(name), **EVERYTHING)
    allow = facts_of(name).allow
    if allow is not None:
        assert set(sent) <= allow
    assert not {"client_metadata", "metadata", "include", "truncation", "input"} & set(sent)
    assert said(response)["client_metadata"] == "ignored"
    # Every field is sent, or its fate is told: nothing disappears.
    for field, upstream in (("prompt_cache_key", "prompt_cache_key"), ("service_tier", "service_tier")):
        assert upstream in sent or field in said(response) or EVERYTHING[field] == "auto", field


# P16. Token limits


@each_provider
def test_p16_the_limit_has_one_name_and_is_within_the_models_maximum(flow: Flow, name: str) -> None:
    limits = facts_of(name).limits
    sent, response = ask(flow, model_of(name), max_output_tokens=3_000_000)
    names = [field for field in ("max_tokens", "max_completion_tokens", "max_output_tokens") if field in sent]
    assert len(names) == 1
    assert sent[names[0]] == (limits.output or 3_000_000)
    if limits.output:
        assert said(response)["max_output_tokens"] == "degraded"


@each_provider
def test_p16_without_a_limit_the_models_maximum_is_sent_where_the_default_truncates(flow: Flow, name: str) -> None:
    limits = facts_of(name).limits
    sent, _ = ask(flow, model_of(name))
    named = {field: sent[field] for field in ("max_tokens", "max_completion_tokens") if field in sent}
    assert list(named.values()) == ([limits.output] if limits.send_default else [])


# P17. Finish reasons

ENDS: dict[str, tuple[str, str, str | None]] = {
    "length": (model_of("openai"), "length", "max_output_tokens"),
    "sensitive": ("zhipu/glm-5.2", "sensitive", "content_filter"),
    "model_context_window_exceeded": ("zhipu/glm-5.2", "model_context_window_exceeded", "max_output_tokens"),
    "repetition_truncation": ("xiaomi/mimo-v2.5-pro", "repetition_truncation", "max_output_tokens"),
    "model_length": (model_of("mistral"), "model_length", "max_output_tokens"),
    "network_error": ("zhipu/glm-5.2", "network_error", "server_error"),
    "insufficient_system_resource": (
        "deepseek/deepseek-v4-pro",
        "insufficient_system_resource",
        "server_is_overloaded",
    ),
    "abort": (model_of("vllm"), "abort", "server_error"),
}


@pytest.mark.parametrize(("model", "finish", "reason"), ENDS.values(), ids=list(ENDS))
def test_p17_every_vendors_ending_is_read_and_the_turn_can_be_continued(
    flow: Flow, model: str, finish: str, reason: str
) -> None:
    flow.script(chat("Once upon", finish=finish), chat("a time."))
    _, first = flow.stream({"model": model, "input": "Tell"})
    if first["status"] == "incomplete":
        assert first["incomplete_details"] == {"reason": reason}
        flow.create({"model": model, "input": "Go on", "previous_response_id": first["id"]})
        assert [m["content"] for m in flow.sent[1]["messages"][-3:]] == ["Tell", "Once upon", "Go on"]
    else:
        assert (first["status"], first["error"]["code"]) == ("failed", reason)
        flow.create({"model": model, "input": "Tell"})


def test_p17_a_call_cut_by_length_is_not_complete(flow: Flow) -> None:
    flow.script(chat(calls=[("call_w1", "get_weather", '{"city":"Ro')], finish="length"))
    _, response = flow.stream({"model": model_of("vllm"), "input": "Go", "tools": [WEATHER]})
    assert response["status"] == "incomplete"
    assert response["output"][-1]["status"] == "incomplete"


# P18. Names and ids


def test_p18_recurring_ids_are_unique_when_they_go_back(flow: Flow) -> None:
    model = model_of("vllm")
    flow.script(chat(calls=[("call_0", *CALL[1:])]), chat(calls=[("call_0", *CALL[1:])]), chat("Done."))
    first = flow.create({"model": model, "input": [ASK], "tools": [WEATHER]})
    parent, ids = first, [first["output"][0]["call_id"]]
    for _ in range(2):
        output = {**OUTPUT, "call_id": ids[-1]}
        asked = {"model": model, "input": [output], "tools": [WEATHER], "previous_response_id": parent["id"]}
        parent = flow.create(asked)
        ids += [item["call_id"] for item in parent["output"] if item["type"] == "function_call"]
    assert len(set(ids)) == 2
    assert validate_chat_sequence(flow.sent[2]["messages"]) is None


def test_p18_mistral_gets_nine_letters_and_the_client_its_own_id(flow: Flow) -> None:
    history = [ASK, {"type": "function_call", "call_id": "call_w1", "name": "get_weather", "arguments": "{}"}, OUTPUT]
    sent, _ = ask(flow, model_of("mistral"), input=history, tools=[WEATHER])
    called = sent["messages"][1]["tool_calls"][0]["id"]
    assert re.fullmatch(r"[A-Za-z0-9]{9}", called)
    assert sent["messages"][2]["tool_call_id"] == called


def test_p18_an_unnamed_call_takes_the_only_name_there_is(flow: Flow) -> None:
    answer = chat_reply(calls=[("call_w1", "", "{}")])
    _, response = ask(flow, model_of("vllm"), answer=reply(answer), tools=[WEATHER])
    assert response["output"][0]["name"] == "get_weather"


def test_p18_an_unnamed_call_among_several_fails_the_turn(flow: Flow) -> None:
    flow.script(stream(fragments(piece("call_w1", "", "{}", index=0))))
    other = {**WEATHER, "name": "get_time"}
    _, response = flow.stream({"model": model_of("vllm"), "input": "Go", "tools": [WEATHER, other]})
    assert response["status"] == "failed"
    assert not [item for item in response["output"] if item["type"] == "function_call"]


# P19. Malformed arguments

BAD = {"cut": '{"city": "Ro', "no object": '["Rome"]', "empty": "", "prose": "Rome please"}


@pytest.mark.parametrize("arguments", BAD.values(), ids=list(BAD))
def test_p19_malformed_arguments_go_back_as_a_valid_object(flow: Flow, arguments: str) -> None:
    call = {"type": "function_call", "call_id": "call_w1", "name": "get_weather", "arguments": arguments}
    sent, response = ask(flow, model_of("vllm"), input=[ASK, call, OUTPUT], tools=[WEATHER])
    told = sent["messages"][1]["tool_calls"][0]
    assert told["id"] == "call_w1"
    assert isinstance(json.loads(told["function"]["arguments"]), dict)
    if arguments:
        assert said(response)["input[1].arguments"] == "degraded"


# P20. Empty assistant content


@each_provider
def test_p20_an_assistant_that_only_called_says_nothing_in_the_providers_way(flow: Flow, name: str) -> None:
    call = {"type": "function_call", "call_id": "call_w1", "name": "get_weather", "arguments": "{}"}
    empty = {"type": "message", "role": "assistant", "content": []}
    sent, _ = ask(flow, model_of(name), input=[ASK, empty, call, OUTPUT], tools=[WEATHER])
    message = next(each for each in sent["messages"] if each["role"] == "assistant")
    rule = facts_of(name).messages.empty_content
    expected = {"null": [None], "empty": [""], "omit": []}[rule]
    assert [message["content"]] * ("content" in message) == expected
    assert validate_chat_sequence(sent["messages"]) is None


# P28. Efforts

EFFORTS: dict[str, tuple[str, str, Json, str | None]] = {
    "deepseek low stays on": ("deepseek/deepseek-v4-pro", "low", {"reasoning_effort": "low"}, None),
    "deepseek medium": ("deepseek/deepseek-v4-pro", "medium", {"reasoning_effort": "high"}, "degraded"),
    "deepseek none": ("deepseek/deepseek-v4-pro", "none", {"thinking": {"type": "disabled"}}, None),
    "glm-5.2 xhigh": ("zhipu/glm-5.2", "xhigh", {"reasoning_effort": "max"}, "degraded"),
    "glm-5.3 cannot stop": ("zhipu/glm-5.3", "none", {}, "degraded"),
    "kimi minimal": ("kimi/kimi-k3", "minimal", {"reasoning_effort": "low"}, "degraded"),
    "gpt-oss max": ("groq/openai/gpt-oss-120b", "max", {"reasoning_effort": "high"}, "degraded"),
    "minimax on": (
        "minimax/MiniMax-M3",
        "low",
        {"thinking": {"type": "adaptive"}, "reasoning_split": True},
        "degraded",
    ),
    "openrouter nested": ("openrouter/anthropic/claude-sonnet-4.6", "low", {"reasoning": {"effort": "low"}}, None),
    "nothing to set": ("mistral/mistral-large-3", "high", {}, "ignored"),
}


@pytest.mark.parametrize(("model", "effort", "expected", "action"), EFFORTS.values(), ids=list(EFFORTS))
def test_p28_efforts_land_on_the_nearest_and_changes_are_told(
    flow: Flow, model: str, effort: str, expected: Json, action: str | None
) -> None:
    sent, response = ask(flow, model, reasoning={"effort": effort})
    for field, value in expected.items():
        assert sent[field] == value
    if effort in ("low", "medium"):
        assert sent.get("thinking", {}).get("type") != "disabled"
    assert said(response).get("reasoning.effort") == action


def test_p28_an_unknown_effort_is_refused_with_the_scale(flow: Flow) -> None:
    refused = flow.post(
        "/v1/responses", {"model": model_of("deepseek"), "input": "Go", "reasoning": {"effort": "huge"}}
    )
    assert refused.status == 400
    assert "medium" in refused.error["message"]


# P34. Thought signatures

SIGNED: Json = {"google": {"thought_signature": "CpIBsig"}}


def signed_reply() -> Json:
    answer = chat_reply(calls=[CALL, ("call_w2", "get_weather", '{"city":"Oslo"}')])
    answer["choices"][0]["message"]["tool_calls"][0]["extra_content"] = SIGNED
    return answer


@pytest.mark.parametrize("store", [True, False], ids=["stored here", "carried by the client"])
def test_p34_a_thought_signature_goes_back_with_its_call(flow: Flow, store: bool) -> None:
    flow.script(reply(signed_reply()), chat("Sunny."))
    asked: Json = {
        "model": "gemini/gemini-3.8-flash",
        "tools": [WEATHER],
        "store": store,
        "include": [] if store else ["reasoning.encrypted_content"],
    }
    first = flow.create({**asked, "input": [ASK]})
    outputs = [OUTPUT, {**OUTPUT, "call_id": "call_w2"}]
    if store:
        flow.create({**asked, "input": outputs, "previous_response_id": first["id"]})
    else:
        flow.create({**asked, "input": [ASK, *first["output"], *outputs]})
    calls = flow.sent[1]["messages"][1]["tool_calls"]
    assert calls[0]["extra_content"] == SIGNED
    assert "extra_content" not in calls[1]


def test_p34_a_thought_signature_is_remembered_by_a_socket_too(flow: Flow) -> None:
    chunks = chat_chunks(calls=[CALL])
    for chunk in chunks:
        for choice in chunk["choices"]:
            for call in choice["delta"].get("tool_calls") or ():
                if call.get("id"):
                    call["extra_content"] = SIGNED
    flow.script(stream(chunks), chat("Sunny."))
    asked: Json = {"model": "gemini/gemini-3.8-flash", "tools": [WEATHER], "store": False}
    with open_socket(flow.server.url) as talk:
        first = talk.answer({**asked, "input": [ASK]})
        talk.answer({**asked, "input": [OUTPUT], "previous_response_id": first["id"]})
    assert flow.sent[1]["messages"][1]["tool_calls"][0]["extra_content"] == SIGNED


def test_p34_a_lost_signature_gets_the_documented_stand_in(flow: Flow) -> None:
    call = {"type": "function_call", "call_id": "call_w1", "name": "get_weather", "arguments": "{}"}
    sent, response = ask(flow, "gemini/gemini-3.8-flash", input=[ASK, call, OUTPUT], tools=[WEATHER])
    extra = sent["messages"][1]["tool_calls"][0]["extra_content"]
    assert extra == {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert said(response)["input[1]"] == "degraded"


def test_p34_a_signature_is_not_sent_to_another_provider(flow: Flow) -> None:
    flow.script(reply(signed_reply()), chat("Sunny."))
    first = flow.create({"model": "gemini/gemini-3.8-flash", "tools": [WEATHER], "input": [ASK]})
    outputs = [OUTPUT, {**OUTPUT, "call_id": "call_w2"}]
    asked = {"model": model_of("vllm"), "tools": [WEATHER], "input": outputs, "previous_response_id": first["id"]}
    response = flow.create(asked)
    assert "CpIBsig" not in json.dumps(flow.sent[1])
    assert message_text(response) == "Sunny."
