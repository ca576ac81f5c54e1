"""Upstreams that speak Anthropic Messages, strictly: what the vendor would refuse with a 400 is refused here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flowing import Flow, lent
from flowing_providers import provider_flow
from isthmus import Bridge, Limits, tool
from isthmus.testing import CUT, ScriptedUpstream, chat, reply, stream
from speaking_messages import called, claude, claude_error, events, hidden, message, named_sse, said, thought
from strict_anthropic import strictly
from talking import message_text, shown

Json = dict[str, Any]

PROVIDERS = {
    "anthropic": "uses = 'anthropic'",
    "deepseek": "uses = 'deepseek'\ndialect = 'messages'",
    "chatty": "uses = 'openai'\ndialect = 'chat'",
}
OPUS = "anthropic/claude-opus-5-5"
HAIKU = "anthropic/claude-haiku-4-5"
OPUS_46 = "anthropic/claude-opus-4-6"
MODELS = [OPUS, HAIKU, OPUS_46, "anthropic/claude-opus-4-8", "anthropic/claude-sonnet-5"]
LOOK: Json = {
    "type": "function",
    "name": "look",
    "description": "Looks.",
    "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
}
PATCH: Json = {"type": "custom", "name": "apply_patch", "description": "Edits files."}
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}},
    "required": ["n"],
    "additionalProperties": False,
}
STRICT: Json = {"format": {"type": "json_schema", "name": "number", "schema": SCHEMA, "strict": True}}
PNG = "data:image/png;base64,aGVsbG8="
SEALED = ["reasoning.encrypted_content"]


@pytest.fixture(scope="module")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with provider_flow(tmp_path_factory.mktemp("messages"), PROVIDERS) as house:
        yield house


@pytest.fixture
def flow(_house: Flow) -> Iterator[Flow]:
    with lent(_house) as mine:
        yield mine


def answer(flow: Flow, streamed: bool, body: Json) -> Json:
    return flow.stream(body)[1] if streamed else flow.create(body)


both = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@both
def test_text_and_usage_come_through(flow: Flow, streamed: bool) -> None:
    flow.script(strictly(claude(said("Hello there."))))
    response = answer(flow, streamed, {"model": OPUS, "instructions": "Be kind.", "input": "Hi"})
    assert (response["status"], message_text(response)) == ("completed", "Hello there.")
    usage = response["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (33, 7, 40)
    assert usage["input_tokens_details"]["cached_tokens"] == 20
    assert usage["output_tokens_details"]["reasoning_tokens"] == 2
    request = flow.upstream.requests[-1]
    assert request.path == "/v1/messages"
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("sk-upstream-secret", "2023-06-01")
    assert "authorization" not in headers
    assert flow.sent[0]["system"][0]["text"] == "Be kind."
    assert flow.sent[0]["max_tokens"] == 128_000


@both
def test_a_client_sees_the_same_as_through_chat_completions(flow: Flow, streamed: bool) -> None:
    asked = {"input": "Go", "tools": [LOOK]}
    usage = {"input_tokens": 10, "output_tokens": 5}
    flow.script(
        chat("Looking.", calls=[("call_1", "look", {"n": 1}), ("call_2", "look", {"n": 2})], usage=(10, 5)),
        claude(said("Looking."), called("call_1", "look", n=1), called("call_2", "look", n=2), usage=usage),
    )
    seen = [shown(answer(flow, streamed, {"model": model, **asked})) for model in ("chatty/gpt-4o", OPUS)]
    for one in seen:
        one["output"] = sorted(({**item, "id": ""} for item in one["output"]), key=lambda item: item["type"])
        del one["diagnostics"]
    assert seen[0] == seen[1]


@both
@pytest.mark.parametrize("model", MODELS)
def test_twenty_turns_of_tools_with_thinking_meet_no_refusal(flow: Flow, model: str, streamed: bool) -> None:
    """A client that stores nothing sends every item back; thinking stands before, between and after calls."""
    items: list[Json] = [{"role": "user", "content": "Find it."}]
    body = {"model": model, "tools": [LOOK, PATCH], "reasoning": {"effort": "high", "summary": "auto"}}
    for turn in range(20):
        blocks = [thought(f"Turn {turn}"), called(f"toolu_{turn}a", "look", n=turn)]
        if turn % 3 == 0:
            blocks = [*blocks[:1], hidden(), said("Looking."), *blocks[1:]]
        if turn % 4 == 1:
            blocks += [thought(""), called(f"toolu_{turn}b", "apply_patch", input="*** Begin Patch")]
        flow.script(strictly(claude(*blocks)))
        response = answer(flow, streamed, {**body, "input": items, "store": False, "include": SEALED})
        assert response["status"] == "completed", response["error"]
        items += response["output"]
        for item in response["output"]:
            if item["type"] in ("function_call", "custom_tool_call"):
                items.append({"type": f"{item['type']}_output", "call_id": item["call_id"], "output": f"saw {turn}"})
        if turn % 5 == 2:
            items.append({"role": "developer", "content": "Be quick."})
        sent = flow.sent[-1]
        thinks = sent["thinking"]["type"]
        assert thinks == ("enabled" if model == HAIKU else "adaptive"), "thinking stayed on"
        past = [message["content"] for message in sent["messages"] if message["role"] == "assistant"]
        assert past == [given(content) for content in past], "blocks stand where they stood"
    flow.script(strictly(claude(thought("Done"), said("Found."))))
    assert message_text(answer(flow, streamed, {**body, "input": items, "store": False})) == "Found."
    told = flow.sent[-1]["messages"]
    kinds = [block["type"] for message in told for block in message["content"]]
    assert kinds.count("thinking") == 25
    assert kinds.count("redacted_thinking") == 7
    assert [block["type"] for block in told[3]["content"]] == ["thinking", "tool_use", "thinking", "tool_use"]


def given(content: list[Json]) -> list[Json]:
    """Thinking leads, and no block is without what follows it."""
    assert content[0]["type"] == "thinking"
    assert content[-1]["type"] == "tool_use"
    return content


@both
def test_a_stored_chain_brings_its_thinking_back_too(flow: Flow, streamed: bool) -> None:
    flow.script(
        strictly(claude(thought("Hm"), called("toolu_1", "look", n=1))),
        strictly(claude(said("Found."))),
    )
    body = {"model": HAIKU, "tools": [LOOK], "reasoning": {"effort": "low"}}
    first = answer(flow, streamed, {**body, "input": "Find it."})
    output = [{"type": "function_call_output", "call_id": "toolu_1", "output": "there"}]
    second = answer(flow, streamed, {**body, "input": output, "previous_response_id": first["id"]})
    assert message_text(second) == "Found."
    assert flow.sent[1]["messages"][1]["content"][0] == thought("Hm")
    assert flow.sent[1]["thinking"] == {"type": "enabled", "budget_tokens": 1024}


def test_without_its_thinking_a_tool_turn_of_a_model_with_a_budget_goes_on_without(flow: Flow) -> None:
    flow.script(strictly(claude(said("Found."))))
    items = [
        {"role": "user", "content": "Find it."},
        {"type": "function_call", "call_id": "call|1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call|1", "output": "there"},
    ]
    body = {"model": HAIKU, "tools": [LOOK], "reasoning": {"effort": "high"}, "input": items}
    response = flow.create(body)
    assert flow.sent[0]["thinking"] == {"type": "disabled"}
    told = [one for one in response["isthmus"]["diagnostics"] if one["path"] == "reasoning.effort"]
    assert "thinking" in told[0]["message"]


def test_thinking_of_another_model_or_provider_is_not_sent(flow: Flow) -> None:
    flow.script(
        strictly(claude(thought("Hm"), called("toolu_1", "look", n=1))),
        strictly(claude(said("Found."))),
        claude(said("Found.")),
    )
    ask = {"tools": [LOOK], "reasoning": {"effort": "high"}, "include": SEALED, "store": False}
    first = flow.create({**ask, "model": OPUS, "input": "Find it."})
    output = {"type": "function_call_output", "call_id": "toolu_1", "output": "there"}
    items = [{"role": "user", "content": "Find it."}, *first["output"], output]
    for model in ("anthropic/claude-opus-4-8", "deepseek/deepseek-v4-pro"):
        told = flow.create({**ask, "model": model, "input": items})["isthmus"]["diagnostics"]
        assert [one["path"] for one in told if "encrypted_content" in one["path"]] == ["input[1].encrypted_content"]
        assert [block["type"] for block in flow.sent[-1]["messages"][1]["content"]] == ["tool_use"]


@pytest.mark.parametrize("model", [OPUS, HAIKU])
def test_a_signature_that_is_refused_costs_the_thinking_and_not_the_conversation(flow: Flow, model: str) -> None:
    """A block that the vendor does not know any more: once more without, and every later turn again."""
    strange = {**thought("Hm"), "signature": "sig.of.another.day"}
    ask = {"model": model, "tools": [LOOK], "reasoning": {"effort": "high"}, "include": SEALED, "store": False}
    flow.script(claude(strange, called("toolu_1", "look", n=1)))
    first = flow.create({**ask, "input": "Find it."})
    items = [
        {"role": "user", "content": "Find it."},
        *first["output"],
        {"type": "function_call_output", "call_id": "toolu_1", "output": "there"},
    ]
    for _ in range(2):
        flow.script(strictly(claude(said("Found."))), strictly(claude(said("Found."))))
        response = flow.create({**ask, "input": items})
        assert message_text(response) == "Found."
        assert "bridge.history.repaired" in [one["code"] for one in response["isthmus"]["diagnostics"]]
        assert flow.sent[-2]["messages"][1]["content"][0] == strange
        assert [block["type"] for block in flow.sent[-1]["messages"][1]["content"]] == ["tool_use"]


@both
def test_images_and_documents_travel_in_messages_and_in_results(flow: Flow, streamed: bool) -> None:
    flow.script(strictly(claude(said("A cat."))))
    picture = {"type": "input_image", "image_url": PNG}
    pdf = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "What?"}, picture, pdf]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "see"}, picture]},
        {"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/cat.png"}]},
    ]
    answer(flow, streamed, {"model": OPUS, "input": items, "tools": [LOOK]})
    first, _, last = (message["content"] for message in flow.sent[0]["messages"])
    source = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
    assert first[1] == {"type": "image", "source": source}
    assert (first[2]["type"], first[2]["title"]) == ("document", "a.pdf")
    assert last[0]["content"] == [{"type": "text", "text": "see"}, {"type": "image", "source": source}]
    assert last[1]["source"] == {"type": "url", "url": "https://example.org/cat.png"}


@both
def test_a_schema_is_enforced_by_the_vendor(flow: Flow, streamed: bool) -> None:
    flow.script(strictly(claude(said('{"n": 7}'))))
    response = answer(flow, streamed, {"model": OPUS, "input": "Go", "text": STRICT, "reasoning": {"effort": "low"}})
    assert message_text(response) == '{"n": 7}'
    config = flow.sent[0]["output_config"]
    assert config["effort"] == "low"
    assert config["format"]["schema"]["additionalProperties"] is False
    assert "minimum" not in config["format"]["schema"]["properties"]["n"]


@both
def test_a_broken_answer_to_a_schema_in_words_is_asked_for_again(flow: Flow, streamed: bool) -> None:
    flow.script(claude(said('{"n": "seven"}')), claude(said('{"n": 7}')))
    body = {"model": "deepseek/deepseek-v4-pro", "input": "Go", "text": STRICT}
    assert message_text(answer(flow, streamed, body)) == '{"n": 7}'
    again = flow.sent[1]["messages"]
    assert [message["role"] for message in again] == ["user", "assistant", "user"]
    assert again[:1] == flow.sent[0]["messages"]


@both
def test_a_forced_tool_a_stop_and_an_identifier_are_spelled_as_the_vendor_wants(flow: Flow, streamed: bool) -> None:
    flow.script(strictly(claude(called("toolu_1", "look", n=1))))
    body = {
        "model": OPUS_46,
        "input": "Go",
        "tools": [LOOK],
        "tool_choice": {"type": "function", "name": "look"},
        "parallel_tool_calls": False,
        "temperature": 1.5,
        "safety_identifier": "u-1",
        "reasoning": {"effort": "high"},
    }
    answer(flow, streamed, body)
    sent = flow.sent[0]
    assert sent["tool_choice"] == {"type": "tool", "name": "look", "disable_parallel_tool_use": True}
    assert sent["thinking"] == {"type": "disabled"}, "thinking gives way to the choice"
    assert (sent["temperature"], sent["metadata"]) == (1, {"user_id": "u-1"})


def test_strict_mode_refuses_what_would_be_degraded(flow: Flow) -> None:
    body = {"model": OPUS_46, "input": "Go", "temperature": 1.5}
    refused = flow.post("/v1/responses", body, {"isthmus-strict": "true"})
    assert refused.status == 400
    assert "temperature" in refused.error["message"]


# How it ends


@both
@pytest.mark.parametrize(
    ("stop", "status", "reason"),
    [
        ("end_turn", "completed", None),
        ("stop_sequence", "completed", None),
        ("max_tokens", "incomplete", "max_output_tokens"),
        ("model_context_window_exceeded", "incomplete", "max_output_tokens"),
        ("refusal", "incomplete", "content_filter"),
        ("pause_turn", "incomplete", "max_output_tokens"),
    ],
)
def test_each_stop_reason_has_its_status(
    flow: Flow, stop: str, status: str, reason: str | None, streamed: bool
) -> None:
    flow.script(strictly(claude(said("Once upon"), stop=stop)))
    response = answer(flow, streamed, {"model": OPUS, "input": "Go"})
    assert response["status"] == status
    assert (response["incomplete_details"] or {}).get("reason") == reason


def search(number: int) -> list[Json]:
    id = f"srvtoolu_{number}"
    found = [
        {"type": "web_search_result", "url": f"https://example.org/{number}", "title": "t", "encrypted_content": "e"}
    ]
    return [
        {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": f"q{number}"}},
        {"type": "web_search_tool_result", "tool_use_id": id, "content": found},
    ]


@both
def test_a_paused_turn_goes_back_and_goes_on_within_bounds(flow: Flow, streamed: bool) -> None:
    body = {"model": OPUS, "input": "News?", "tools": [{"type": "web_search"}]}
    cited = {"type": "web_search_result_location", "url": "https://example.org/2", "title": "t", "cited_text": "x"}
    flow.script(
        claude(thought("Hm"), said("Looking."), *search(1), stop="pause_turn"),
        claude(*search(2), stop="pause_turn"),
        claude(said("All quiet.", citations=[cited])),
    )
    response = answer(flow, streamed, body)
    assert response["status"] == "completed"
    kinds = [item["type"] for item in response["output"]]
    assert kinds == ["reasoning", "message", "web_search_call", "web_search_call", "message"]
    assert response["output"][2]["action"]["query"] == "q1"
    assert response["output"][-1]["content"][0]["annotations"][0]["url"] == "https://example.org/2"
    assert response["usage"]["total_tokens"] == 120
    assert flow.sent[0]["tools"][0]["type"] == "web_search_20250305"
    assert flow.sent[2]["messages"][-1] == {
        "role": "assistant",
        "content": [thought("Hm"), said("Looking."), *search(1), *search(2)],
    }
    flow.script(*(claude(*search(number), stop="pause_turn") for number in range(6)))
    endless = answer(flow, streamed, body)
    assert (endless["status"], endless["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


@both
def test_a_refusal_says_why(flow: Flow, streamed: bool) -> None:
    details = {"type": "refusal", "category": "x", "explanation": "I will not."}
    flow.script(strictly(claude(stop="refusal", stop_details=details)))
    response = answer(flow, streamed, {"model": OPUS, "input": "Go"})
    assert response["output"][0]["content"] == [{"type": "refusal", "refusal": "I will not."}]


@pytest.mark.parametrize(
    ("status", "kind", "words", "ours", "code"),
    [
        (400, "invalid_request_error", "messages: bad", 400, "invalid_prompt"),
        (400, "invalid_request_error", "prompt is too long: 9 > 8", 400, "context_length_exceeded"),
        (401, "authentication_error", "invalid x-api-key", 403, "upstream_unauthorized"),
        (402, "billing_error", "no credit", 429, "insufficient_quota"),
        (403, "permission_error", "not yours", 403, "upstream_unauthorized"),
        (404, "not_found_error", "model: claude-x", 404, "model_not_found"),
        (413, "request_too_large", "too large", 400, "context_length_exceeded"),
        (429, "rate_limit_error", "slow down", 429, "rate_limit_exceeded"),
        (500, "api_error", "oops", 502, "server_error"),
        (504, "timeout_error", "too late", 504, "upstream_timeout"),
        (529, "overloaded_error", "Overloaded", 503, "server_is_overloaded"),
    ],
)
def test_every_error_of_the_vendor_has_a_code(
    flow: Flow, status: int, kind: str, words: str, ours: int, code: str
) -> None:
    flow.script(claude_error(status, kind, words))
    refused = flow.post("/v1/responses", {"model": OPUS, "input": "Go"})
    assert (refused.status, refused.error["code"]) == (ours, code)
    error = {"type": "error", "error": {"type": kind, "message": words}}
    flow.script(stream(named_sse([*events([said("Hel")])[:4], error]), done=False))
    response = flow.stream({"model": OPUS, "input": "Go"})[1]
    assert (response["status"], response["error"]["code"]) == ("failed", code)
    assert message_text(response) == "Hel"[:2] or message_text(response)


def test_a_wait_that_the_vendor_asks_for_is_passed_on(flow: Flow) -> None:
    flow.script(claude_error(429, "rate_limit_error", "slow down", retry_after=7))
    assert flow.post("/v1/responses", {"model": OPUS, "input": "Go"}).headers["retry-after"] == "7"


def test_a_stream_that_is_cut_fails_and_keeps_what_was_said(flow: Flow) -> None:
    told = list(named_sse(events([said("Hello there.")], pieces=2)))
    flow.script(stream(told[:4], done=False), stream([*told[:4], CUT], done=False))
    for _ in range(2):
        response = flow.stream({"model": OPUS, "input": "Go"})[1]
        assert response["status"] == "failed"
        assert message_text(response) == "Hello "


@both
def test_a_whole_object_in_answer_to_a_stream_is_streamed(flow: Flow, streamed: bool) -> None:
    flow.script(reply(message([said("Hello")])))
    assert message_text(answer(flow, streamed, {"model": OPUS, "input": "Go"})) == "Hello"


def test_one_byte_at_a_time_is_the_same_as_all_at_once(flow: Flow) -> None:
    scene = [thought("Grüße"), said("Hallo, 世界"), called("toolu_1", "look", n=1)]
    flow.script(claude(*scene), claude(*scene, slice=1))
    body = {"model": OPUS, "input": "Go", "tools": [LOOK]}
    assert shown(flow.stream(body)[1]) == shown(flow.stream(body)[1])


def test_a_second_dialect_of_a_file_goes_to_its_own_path_with_its_own_header(flow: Flow) -> None:
    flow.script(claude(said("Hello")))
    flow.create({"model": "deepseek/deepseek-v4-pro", "input": "Go", "reasoning": {"effort": "high"}, "stop": ["END"]})
    request = flow.upstream.requests[-1]
    assert request.path == "/v1/messages"
    assert {name.lower() for name in request.headers} >= {"x-api-key", "anthropic-version"}
    assert flow.sent[0]["thinking"] == {"type": "enabled"}
    assert flow.sent[0]["output_config"] == {"effort": "high"}
    assert flow.sent[0]["stop_sequences"] == ["END"]
    assert flow.sent[0]["max_tokens"] == 393_216
    assert "cache_control" not in str(flow.sent[0])


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-haiku-4-5"])
async def test_the_library_runs_twenty_tool_turns_with_thinking(model: str) -> None:
    seen: list[int] = []

    @tool
    def look(n: int) -> str:
        """Looks."""
        seen.append(n)
        return f"saw {n}"

    turns = [strictly(claude(thought(f"Turn {n}"), called(f"toolu_{n}", "look", n=n))) for n in range(20)]
    with ScriptedUpstream.running([*turns, strictly(claude(thought("Done"), said("Found.")))]) as upstream:
        profiles = {"anthropic": {"prod": {"base_url": upstream.url, "api_key": "k"}}}
        async with Bridge(profiles) as bridge:
            run = await bridge.run(
                f"anthropic@prod/{model}",
                "Find it.",
                tools=[look],
                limits=Limits(max_turns=30),
                reasoning_effort="high",
            )
    assert run.output == "Found."
    assert seen == list(range(20))
    last = upstream.requests[-1].json["messages"]
    modes = {request.json["thinking"]["type"] for request in upstream.requests}
    assert modes == {"enabled" if "haiku" in model else "adaptive"}
    assert [block["type"] for message in last for block in message["content"]].count("thinking") == 20


def test_a_conversation_is_compacted_by_the_model_itself(flow: Flow) -> None:
    items = [
        {"role": "user", "content": "Find it."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "there"},
        {"role": "assistant", "content": "Found."},
    ]
    flow.script(strictly(claude(said("They looked and found it."))), strictly(claude(said("Yes."))))
    compacted = flow.post("/v1/responses/compact", {"model": OPUS, "input": items}).json
    after = flow.create({"model": OPUS, "input": [*compacted["output"], {"role": "user", "content": "Sure?"}]})
    assert message_text(after) == "Yes."
    assert "They looked and found it." in str(flow.sent[1]["messages"])
