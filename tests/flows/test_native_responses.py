"""Upstreams that speak Responses themselves: a client sees one behaviour whichever dialect answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from flowing import Flow, lent
from flowing_providers import provider_flow
from isthmus.testing import chat, error, reply, stream
from speaking_responses import Free, named_sse, native, native_events, native_items, native_reply
from talking import message_text, shown

Json = dict[str, Any]

PROVIDERS = {
    "chatty": "uses = 'deepseek'\ndialect = 'chat'",
    "openai": "uses = 'openai'",
    "plain": "uses = 'groq'\ndialect = 'responses'",
    "deepseek": "uses = 'deepseek'\ndialect = 'responses'",
    "xai": "uses = 'xai'",
    "lmstudio": "uses = 'lmstudio'\ndialect = 'responses'",
}
CHAT = "chatty/deepseek-v4-pro"
DEEPSEEK = "deepseek/deepseek-v4-pro"
NATIVE = "openai/gpt-4o"
NO_CUSTOM = "plain/openai/gpt-oss-120b"

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
STRICT = {"format": {"type": "json_schema", "name": "number", "schema": SCHEMA, "strict": True}}
WEATHER: Json = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
PATCH: Json = {"type": "custom", "name": "apply_patch", "description": "Edits files."}
GIT: Json = {"type": "namespace", "name": "mcp__git", "tools": [{**WEATHER, "name": "log"}]}
CALL = ("call_w1", "get_weather", '{"city":"Rome"}')
SECOND = ("call_w2", "get_weather", '{"city":"Oslo"}')


@pytest.fixture(scope="module")
def _native_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with provider_flow(tmp_path_factory.mktemp("native"), PROVIDERS) as house:
        yield house


@pytest.fixture
def flow(_native_house: Flow) -> Iterator[Flow]:
    with lent(_native_house) as mine:
        yield mine


# One behaviour, two dialects


SCENES: dict[str, tuple[Json, Json]] = {
    "text": ({}, {"text": "Hello there."}),
    "empty": ({}, {"text": ""}),
    "refusal": ({}, {"text": None, "refusal": "I will not."}),
    "reasoning": ({}, {"text": "42", "reasoning": "Let me think."}),
    "a call": ({"tools": [WEATHER]}, {"calls": [CALL]}),
    "reasoning, then a call": ({"tools": [WEATHER]}, {"reasoning": "Which city?", "calls": [CALL]}),
    "parallel calls": ({"tools": [WEATHER]}, {"calls": [CALL, SECOND]}),
    "a namespaced call": ({"tools": [GIT]}, {"calls": [("call_g", "mcp__git__log", "{}")]}),
    "a shell call": ({"tools": [{"type": "shell"}]}, {"calls": [("call_s", "shell", '{"commands":["ls"]}')]}),
    "an unknown call": ({"tools": [WEATHER]}, {"calls": [("call_u", "guess", "{}")]}),
    "a contract that is kept": ({"text": STRICT}, {"text": '{"n": 7}'}),
    "text cut by length": ({}, {"text": "Once upon", "finish": "length"}),
    "a contract cut by length": ({"text": STRICT}, {"text": '{"n": ', "finish": "length"}),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("asked", "scene"), SCENES.values(), ids=list(SCENES))
def test_a_client_sees_the_same_whichever_dialect_answers(flow: Flow, asked: Json, scene: Json, streamed: bool) -> None:
    body = {"input": "Go", **asked}
    flow.script(chat(**scene), native(**scene))
    chatted = answer(flow, streamed, {"model": CHAT, **body})
    spoken = answer(flow, streamed, {"model": DEEPSEEK, **body})
    assert without_plan(spoken) == without_plan(chatted)
    assert [request.path for request in flow.upstream.requests[-2:]] == ["/v1/chat/completions", "/v1/responses"]


def answer(flow: Flow, streamed: bool, body: Json) -> Json:
    return flow.stream(body)[1] if streamed else flow.create(body)


def without_plan(response: Json) -> Json:
    """What the client sees, without notes on how the request was fitted: dialects differ in what they lack."""
    seen = shown(response)
    own = response["id"].removeprefix("resp_")
    about = [said for said in seen["diagnostics"] if said["path"].startswith("output")]
    seen["diagnostics"] = json.loads(json.dumps(about).replace(own, "…"))
    return seen


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_custom_call_is_the_same_native_or_as_a_function(flow: Flow, streamed: bool) -> None:
    text = "*** Begin Patch\n*** End Patch\n"
    body = {"input": "Fix", "tools": [PATCH]}
    flow.script(
        chat(calls=[("call_p", "apply_patch", {"input": text})]),
        native(calls=[("call_p", "apply_patch", Free(text))]),
        native(calls=[("call_p", "apply_patch", {"input": text})]),
    )
    seen = [answer(flow, streamed, {"model": model, **body}) for model in (CHAT, NATIVE, NO_CUSTOM)]
    assert [without_plan(each) for each in seen[1:]] == [without_plan(seen[0])] * 2
    item = seen[0]["output"][0]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", text)
    assert flow.sent[1]["tools"] == [PATCH]
    assert [tool["type"] for tool in flow.sent[2]["tools"]] == ["function"]


def test_custom_input_streams_as_it_comes(flow: Flow) -> None:
    flow.script(native(calls=[("call_p", "note", Free('a "b"\nc'))], pieces=4))
    events, _ = flow.stream({"model": NATIVE, "input": "Fix", "tools": [{**PATCH, "name": "note"}]})
    told = [event["delta"] for event in events if event["type"] == "response.custom_tool_call_input.delta"]
    assert "".join(told) == 'a "b"\nc'
    assert len(told) > 1


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_broken_contract_is_repaired_by_asking_again(flow: Flow, streamed: bool) -> None:
    flow.script(native('{"n": "seven"}'), native('{"n": 7}'))
    response = answer(flow, streamed, {"model": DEEPSEEK, "input": "Go", "text": STRICT})
    assert message_text(response) == '{"n": 7}'
    again = flow.sent[1]["input"]
    assert again[:-2] == flow.sent[0]["input"]
    assert again[-2]["role"] == "assistant"
    assert again[-1]["role"] == "user"
    assert response["usage"]["total_tokens"] == 30


# The wire


def test_one_byte_at_a_time_is_the_same_as_all_at_once(flow: Flow) -> None:
    scene: Json = {"text": "Grüße, 世界", "reasoning": "hm", "calls": [CALL]}
    flow.script(native(**scene), native(**scene, slice=1))
    body = {"model": NATIVE, "input": "Go", "tools": [WEATHER]}
    assert shown(flow.stream(body)[1]) == shown(flow.stream(body)[1])


def test_what_comes_behind_the_terminal_event_is_not_read(flow: Flow) -> None:
    events = [
        *native_events(native_items("Hello")),
        {"type": "response.output_text.delta", "output_index": 0, "delta": "!"},
    ]
    flow.script(stream(named_sse(events), done=True))
    assert message_text(flow.stream({"model": NATIVE, "input": "Go"})[1]) == "Hello"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_whole_object_in_answer_to_a_stream_is_streamed(flow: Flow, streamed: bool) -> None:
    flow.script(reply(native_reply(native_items("Hello"))))
    assert message_text(answer(flow, streamed, {"model": NATIVE, "input": "Go"})) == "Hello"


def test_a_stream_without_its_terminal_event_fails(flow: Flow) -> None:
    flow.script(stream(named_sse(native_events(native_items("Hel"))[:-1]), done=False))
    response = flow.stream({"model": NATIVE, "input": "Go"})[1]
    assert response["status"] == "failed"
    assert message_text(response) == "Hel"


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (
            {
                "type": "response.failed",
                "response": native_reply([], status="failed", error={"code": "server_error", "message": "boom"}),
            },
            "server_error",
        ),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "try again in 3s"}, "rate_limit_exceeded"),
        (
            {"type": "error", "error": {"type": "context_length_exceeded", "message": "too long"}},
            "context_length_exceeded",
        ),
    ],
    ids=["failed", "flat error", "nested error"],
)
def test_a_failure_in_the_stream_is_one_terminal_event(flow: Flow, event: Json, code: str) -> None:
    events = [*native_events(native_items("Hel"))[:6], event]
    flow.script(stream(named_sse(events), done=False))
    response = flow.stream({"model": NATIVE, "input": "Go"})[1]
    assert response["status"] == "failed"
    assert response["error"]["code"] == code


def test_a_refused_request_keeps_its_status(flow: Flow) -> None:
    flow.script(error(400, "input[0] is odd"))
    refused = flow.post("/v1/responses", {"model": NATIVE, "input": "Go", "stream": True})
    assert refused.status == 400
    assert "input[0] is odd" in refused.error["message"]


def test_hosted_calls_and_citations_reach_the_client(flow: Flow) -> None:
    search = {
        "type": "web_search_call",
        "id": "ws_up",
        "status": "completed",
        "action": {"type": "search", "query": "rome weather", "sources": []},
    }
    citation = {"type": "url_citation", "url": "https://w.example", "title": "W", "start_index": 0, "end_index": 5}
    message = native_items("Sunny")[0]
    message["content"][0]["annotations"] = [citation]
    flow.script(reply(native_reply([search, message])), stream(named_sse(native_events([search, message])), done=False))
    whole, _ = flow.both({"model": NATIVE, "input": "Go", "tools": [{"type": "web_search"}]})
    assert [item["type"] for item in whole["output"]] == ["web_search_call", "message"]
    assert whole["output"][0]["action"]["query"] == "rome weather"
    assert whole["output"][1]["content"][0]["annotations"] == [citation]
    assert flow.sent[0]["tools"] == [{"type": "web_search"}]


def test_usage_has_its_details(flow: Flow) -> None:
    usage = {
        "input_tokens": 30,
        "output_tokens": 9,
        "total_tokens": 39,
        "input_tokens_details": {"cached_tokens": 20},
        "output_tokens_details": {"reasoning_tokens": 6},
    }
    flow.script(reply(native_reply(native_items("Hi"), usage=usage)))
    response = flow.create({"model": NATIVE, "input": "Go"})
    assert response["usage"]["input_tokens_details"]["cached_tokens"] == 20
    assert response["usage"]["output_tokens_details"]["reasoning_tokens"] == 6


# Tools that an endpoint refuses


@pytest.mark.parametrize("model", [NO_CUSTOM, "lmstudio/some-model", DEEPSEEK, NATIVE])
def test_no_endpoint_is_sent_a_tool_type_that_it_refuses(flow: Flow, model: str) -> None:
    flow.script(native(calls=[("call_g", "mcp__git__log", "{}")]))
    response = flow.create({"model": model, "input": "Go", "tools": [WEATHER, PATCH, GIT, {"type": "local_shell"}]})
    kinds = [tool["type"] for tool in flow.sent[0]["tools"]]
    takes_custom = model in (NATIVE, DEEPSEEK)
    assert kinds == ["function", "custom" if takes_custom else "function", "function", "function"]
    call = response["output"][0]
    assert (call["type"], call["namespace"], call["name"]) == ("function_call", "mcp__git", "log")


# Sealed reasoning

FOREIGN = "gAAAAABforeign-envelope"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", ["openai/gpt-5.2", "xai/grok-4.3"])
def test_the_vendors_own_envelope_travels_inside_ours_and_returns(flow: Flow, model: str, streamed: bool) -> None:
    asked: Json = {
        "model": model,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [WEATHER],
        "reasoning": {"effort": "low"},
    }
    question = {"role": "user", "content": "Weather?"}
    flow.script(native(summary="Which city?", sealed="vendor-blob", calls=[CALL]), native("Sunny."))
    first = answer(flow, streamed, {**asked, "input": [question]})
    reasoning = first["output"][0]
    assert reasoning["type"] == "reasoning"
    assert reasoning["encrypted_content"].startswith("isth2.")
    output = {"type": "function_call_output", "call_id": "call_w1", "output": "sunny"}
    answer(flow, streamed, {**asked, "input": [question, *first["output"], output]})
    assert flow.sent[0]["include"] == ["reasoning.encrypted_content"]
    assert flow.sent[0]["store"] is False
    sent = flow.sent[1]["input"]
    assert [item["type"] for item in sent] == ["message", "reasoning", "function_call", "function_call_output"]
    assert sent[1] == {
        "type": "reasoning",
        "id": "rs_up",
        "summary": [{"type": "summary_text", "text": "Which city?"}],
        "encrypted_content": "vendor-blob",
    }
    assert b"isth2." not in flow.upstream.requests[-1].body


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_envelope_without_a_word_of_reasoning_comes_back_as_well(flow: Flow, streamed: bool) -> None:
    asked: Json = {"model": "openai/gpt-5.2", "store": False, "include": ["reasoning.encrypted_content"]}
    question = {"role": "user", "content": "Weather?"}
    flow.script(native("Where?", sealed="vendor-blob"), native("Sunny."))
    first = answer(flow, streamed, {**asked, "input": [question]})
    answer(flow, streamed, {**asked, "input": [question, *first["output"], {"role": "user", "content": "Rome"}]})
    sent = flow.sent[1]["input"]
    assert [item["type"] for item in sent] == ["message", "reasoning", "message", "message"]
    assert sent[1]["encrypted_content"] == "vendor-blob"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_stored_conversation_keeps_the_vendors_envelope_without_being_asked(flow: Flow, streamed: bool) -> None:
    flow.script(native("Where?", sealed="vendor-blob", summary="hm"), native("Sunny."))
    first = answer(flow, streamed, {"model": "openai/gpt-5.2", "input": "Weather?"})
    answer(flow, streamed, {"model": "openai/gpt-5.2", "input": "Rome", "previous_response_id": first["id"]})
    assert flow.sent[1]["input"][1]["encrypted_content"] == "vendor-blob"
    assert "previous_response_id" not in flow.sent[1]


@pytest.mark.parametrize("model", [NATIVE, CHAT, "openai/gpt-5.2", "xai/grok-4.3", DEEPSEEK])
def test_a_foreign_envelope_is_never_sent_upstream(flow: Flow, model: str) -> None:
    flow.script(chat("Sunny.") if model == CHAT else native("Sunny."))
    past = [
        {"role": "user", "content": "Weather?"},
        {"type": "reasoning", "id": "rs_x", "summary": [], "encrypted_content": FOREIGN},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Where?"}]},
        {"role": "user", "content": "Rome"},
    ]
    response = flow.create({"model": model, "store": False, "input": past})
    assert FOREIGN.encode() not in flow.upstream.requests[-1].body
    paths = {said["path"]: said["code"] for said in response["isthmus"]["diagnostics"]}
    assert paths["input[1].encrypted_content"] == "bridge.item.ignored"


def test_an_envelope_of_one_vendor_is_not_sent_to_another(flow: Flow) -> None:
    asked: Json = {"store": False, "include": ["reasoning.encrypted_content"]}
    flow.script(native("Where?", sealed="vendor-blob", summary="hm"), native("Sunny."))
    first = flow.create({**asked, "model": "openai/gpt-5.2", "input": "Weather?"})
    past = [{"role": "user", "content": "Weather?"}, *first["output"], {"role": "user", "content": "Rome"}]
    second = flow.create({**asked, "model": "xai/grok-4.3", "input": past})
    assert "vendor-blob" not in json.dumps(flow.sent[1])
    assert "isth2." not in json.dumps(flow.sent[1])
    assert [said["path"] for said in second["isthmus"]["diagnostics"]] == ["input[1].encrypted_content"]


def test_an_endpoint_that_does_not_seal_gets_its_reasoning_as_text(flow: Flow) -> None:
    flow.script(native(reasoning="Which city?", calls=[CALL]), native("Sunny."))
    asked: Json = {"model": DEEPSEEK, "tools": [WEATHER], "reasoning": {"effort": "high"}}
    first = flow.create({**asked, "input": "Weather?"})
    output = {"type": "function_call_output", "call_id": "call_w1", "output": "sunny"}
    flow.create({**asked, "input": [output], "previous_response_id": first["id"]})
    sent = flow.sent[1]["input"]
    assert [item["type"] for item in sent] == ["message", "reasoning", "function_call", "function_call_output"]
    assert sent[1] == {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Which city?"}],
    }
