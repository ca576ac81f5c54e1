"""`/v1/messages` over HTTP: exact frames, whole answers, counts, models, and errors in Anthropic's shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from claude_requests import recorded, recorded_requests
from flowing import DEEPSEEK, FULL, PLAIN, ZHIPU, Flow
from isthmus.testing import Gate, chat, chat_chunks, error, reply, stream
from serving import running_gateway_server
from talking import ANTHROPIC, Talk

Json = dict[str, Any]
HI = [{"role": "user", "content": "hi"}]
LOOK = {"name": "look", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}
CALL = ("call_1", "look", '{"at":"it"}')


def failed(answer: Any) -> Json:
    """The error object, whose shape is checked: exactly what Anthropic's clients read."""
    body = answer.json
    assert set(body) == {"type", "error", "request_id"}, body
    assert body["type"] == "error"
    assert body["request_id"] == answer.headers["request-id"] == answer.headers["x-request-id"]
    told: Json = body["error"]
    assert {"type", "message"} <= set(told), told
    return told


def test_a_whole_answer_is_exact(flow: Flow) -> None:
    flow.script(chat("Hello", reasoning="Hm", usage={"prompt_tokens": 10, "completion_tokens": 5}))
    message = flow.message({"model": PLAIN, "messages": HI})
    thought, text = message["content"]
    assert (thought["type"], thought["thinking"]) == ("thinking", "Hm")
    assert text == {"type": "text", "text": "Hello"}
    assert message["id"].startswith("msg_")
    assert {name: message[name] for name in ("type", "role", "model", "stop_reason", "stop_sequence")} == {
        "type": "message",
        "role": "assistant",
        "model": PLAIN,
        "stop_reason": "end_turn",
        "stop_sequence": None,
    }
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (10, 5)
    assert flow.sent == [{"model": "some-model", "messages": HI, "max_tokens": 1000}]


def test_a_stream_is_the_same_message_in_frames(flow: Flow) -> None:
    flow.script(*[chat("Let me look.", reasoning="Hm", calls=[CALL, ("call_2", "look", "{}")])] * 2)
    message = flow.messages({"model": DEEPSEEK, "messages": HI, "tools": [LOOK]})
    assert [block["type"] for block in message["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert message["stop_reason"] == "tool_use"
    assert [(block["id"], block["input"]) for block in message["content"][2:]] == [
        ("call_1", {"at": "it"}),
        ("call_2", {}),
    ]


def test_the_plan_is_told_in_the_header_at_the_start_and_at_the_end(flow: Flow) -> None:
    flow.script(chat("a"))
    asked = {"model": DEEPSEEK, "max_tokens": 9, "messages": HI, "top_k": 4, "stream": True}
    with flow.streaming("/v1/messages", asked) as frames:
        assert frames.headers["isthmus-plan"] == "ignored=1"
        told = list(frames)
    for place in (told[0]["message"], told[-2]):
        assert place["isthmus"]["provider"] == "deepseek"
        assert [said["path"] for said in place["isthmus"]["diagnostics"]] == ["top_k"]


def test_the_first_frame_estimates_the_input_and_the_last_one_knows_it(flow: Flow) -> None:
    flow.script(chat("a", usage={"prompt_tokens": 500, "completion_tokens": 5}))
    frames = flow.message_stream({"model": PLAIN, "messages": [{"role": "user", "content": "word " * 400}]})
    assert 300 < frames[0]["message"]["usage"]["input_tokens"] < 1000
    assert frames[-2]["usage"]["input_tokens"] == 500


def test_a_silent_upstream_is_bridged_with_pings(special: Callable[..., Flow]) -> None:
    flow = special(extra="[server]\nheartbeat = 0.05\nping = 0\n")
    gate = Gate()
    first, *rest = chat_chunks("Hello")
    flow.script(stream([first, gate, *rest]))
    with flow.streaming("/v1/messages", {"model": PLAIN, "max_tokens": 9, "messages": HI, "stream": True}) as frames:
        assert frames.next()["type"] == "message_start"  # type: ignore[index]
        for _ in range(3):
            assert frames.next() == {"type": "ping"}
        gate.open()
        assert [frame["type"] for frame in frames if frame["type"] != "ping"][-1] == "message_stop"


@pytest.mark.parametrize(
    ("upstream", "status", "kind"),
    [
        (error(400, "bad"), 400, "invalid_request_error"),
        (error(401, "no"), 403, "permission_error"),
        (error(404, "no such model"), 404, "not_found_error"),
        (error(429, "slow down"), 429, "rate_limit_error"),
        (error(500, "oops"), 502, "api_error"),
        (error(503, "busy"), 529, "overloaded_error"),
        (error(529, "busy"), 529, "overloaded_error"),
        (error(504, "late"), 504, "timeout_error"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_failure_of_the_upstream_keeps_its_meaning(
    flow: Flow, upstream: Any, status: int, kind: str, streamed: bool
) -> None:
    flow.script(upstream)
    answer = flow.post("/v1/messages", {"model": PLAIN, "max_tokens": 9, "messages": HI, "stream": streamed})
    assert (answer.status, failed(answer)["type"]) == (status, kind)


def test_a_limit_says_when_to_come_back(flow: Flow) -> None:
    flow.script(reply({"error": {"message": "slow"}}, status=429, headers={"retry-after": "2"}))
    answer = flow.post("/v1/messages", {"model": PLAIN, "max_tokens": 9, "messages": HI})
    assert (answer.status, answer.headers["retry-after"]) == (429, "2")
    assert "x-should-retry" not in answer.headers


def test_a_conversation_that_is_too_long_says_so_with_figures(flow: Flow) -> None:
    words = "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens."
    flow.script(error(400, words, code="context_length_exceeded"))
    answer = flow.post("/v1/messages", {"model": PLAIN, "max_tokens": 9, "messages": HI, "stream": True})
    told = failed(answer)
    assert answer.status == 400
    assert told["message"] == "prompt is too long: 5000 tokens > 4096 maximum"
    assert words in told["said"]


@pytest.mark.parametrize(
    ("body", "status", "kind", "words"),
    [
        (b"{", 400, "invalid_request_error", "JSON"),
        ({"model": PLAIN, "messages": HI}, 400, "invalid_request_error", "`max_tokens` is missing"),
        ({"model": "nobody/x", "max_tokens": 1, "messages": HI}, 404, "not_found_error", "nobody"),
        (
            {"model": PLAIN, "max_tokens": 1, "messages": HI, "mcp_servers": [{"type": "url"}]},
            400,
            "invalid_request_error",
            "`mcp_servers`",
        ),
        (
            {"model": PLAIN, "max_tokens": 1, "messages": HI, "tools": [{"type": "web_search_20250305", "name": "w"}]},
            400,
            "invalid_request_error",
            "`web_search`",
        ),
    ],
)
def test_a_request_that_cannot_be_served_is_refused(flow: Flow, body: Any, status: int, kind: str, words: str) -> None:
    answer = flow.post("/v1/messages", body)
    told = failed(answer)
    assert (answer.status, told["type"]) == (status, kind)
    assert words in told["message"]
    assert answer.headers["x-should-retry"] == "false"


def test_a_search_is_asked_of_a_provider_that_has_one(flow: Flow) -> None:
    flow.script(chat("Found."))
    body = {**recorded("web-search-side-call").body, "model": ZHIPU, "stream": False, "max_tokens": 9}
    assert flow.message(body)["content"][-1]["text"] == "Found."
    assert flow.sent[0]["tools"][0]["type"] == "web_search"


def test_strict_mode_refuses_what_would_be_changed(flow: Flow) -> None:
    body = {"model": DEEPSEEK, "max_tokens": 9, "messages": HI, "top_k": 4}
    answer = flow.post("/v1/messages", body, {"isthmus-strict": "true"})
    assert answer.status == 400
    assert "top_k" in failed(answer)["message"]


@pytest.mark.parametrize("name", ["first-turn-unknown-model", "interactive-turn"])
@pytest.mark.parametrize("model", [DEEPSEEK, "zhipu/glm-5.3"])
def test_strict_mode_takes_what_claude_code_sends_of_its_own_accord(flow: Flow, name: str, model: str) -> None:
    """Marks for a cache, who asks, facts for the vendor's classifiers: no word of the answer depends on them."""
    flow.script(chat("Hello"))
    asked = recorded(name)
    body = {**asked.body, "model": model, "stream": False}
    answer = flow.post("/v1/messages", body, {**asked.headers, "isthmus-strict": "true"})
    assert answer.status == 200, answer.body
    told = {said["path"]: said["action"] for said in answer.json["isthmus"]["diagnostics"]}
    assert told["system[0]"] == told["system[1].cache_control"] == "ignored"
    assert ("safeguards" in told) == (name == "interactive-turn")
    assert told["x-claude-code-session-id"] == "ignored"


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"speed": "fast"}, "speed"),
        ({"inference_geo": "eu"}, "inference_geo"),
        ({"thinking": {"type": "enabled", "budget_tokens": 5000}}, "thinking.budget_tokens"),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "context_management.edits[0]"),
        ({"output_config": {"effort": "medium"}}, "output_config.effort"),
    ],
)
def test_strict_mode_refuses_what_an_answer_depends_on(flow: Flow, more: Json, path: str) -> None:
    body = {**recorded("first-turn-unknown-model").body, "model": DEEPSEEK, **more}
    answer = flow.post("/v1/messages", body, {"isthmus-strict": "true"})
    assert answer.status == 400
    told = failed(answer)
    assert f"`{path}`" in told["message"]
    assert "cache" not in told["message"]
    assert flow.sent == []


def test_a_response_may_be_stored_and_gone_on_from(flow: Flow) -> None:
    flow.script(chat("one"), chat("two"))
    first = flow.message({"model": PLAIN, "messages": HI, "store": True})
    id = "resp_" + first["id"].removeprefix("msg_")
    assert flow.get(f"/v1/responses/{id}").json["output_text"] == "one"
    again = {"model": PLAIN, "messages": [{"role": "user", "content": "more"}], "previous_response_id": id}
    assert flow.message(again)["content"][0]["text"] == "two"
    assert [turn["content"] for turn in flow.sent[1]["messages"]] == ["hi", "one", "more"]


def test_a_fallback_answers_under_the_name_that_was_asked(special: Callable[..., Flow]) -> None:
    flow = special(extra=f'[models.fallbacks]\n"{DEEPSEEK}" = ["{PLAIN}"]\n')
    flow.script(error(500, "down"), chat("from the other"))
    message = flow.message({"model": DEEPSEEK, "messages": HI})
    assert (message["model"], message["content"][0]["text"]) == (DEEPSEEK, "from the other")
    assert message["isthmus"]["provider"] == "plain"
    assert "bridge.attempt.failed" in [said["code"] for said in message["isthmus"]["diagnostics"]]


# Keys, paths, limits

_KEYED = """
[models]
demo = true
[server]
port = 0
api_keys = ["sk-door"]
max_body = 20000
[store]
url = "memory:"
[log]
level = "error"
"""


@pytest.mark.parametrize("headers", [{"x-api-key": "sk-door"}, {"authorization": "Bearer sk-door"}])
def test_both_kinds_of_key_open_the_door(headers: dict[str, str]) -> None:
    with running_gateway_server(_KEYED) as gateway:
        talk = Talk(gateway.url)
        assert talk.message({"model": "demo/demo", "messages": HI}, headers)["content"]
        for wrong in ({}, {"x-api-key": "nope"}):
            answer = talk.post("/v1/messages", {}, wrong)
            assert (answer.status, failed(answer)["type"]) == (401, "authentication_error")
            assert answer.headers["x-should-retry"] == "false"  # Claude Code would ask eight times more
        large = talk.post("/v1/messages", b"x" * 30_000, headers)
        assert (large.status, failed(large)["type"]) == (413, "request_too_large")
        hello = talk.request("HEAD", "/api/hello")
        assert (hello.status, hello.body) == (200, b"")
        assert talk.get("/api/hello").json == {"status": "ok"}


def test_a_gateway_that_shuts_down_says_so_as_an_overloaded_one(special: Callable[..., Flow]) -> None:
    flow = special()
    flow.server.gateway.draining = True
    answer = flow.post("/v1/messages", {"model": PLAIN, "max_tokens": 9, "messages": HI})
    assert (answer.status, failed(answer)["type"]) == (529, "overloaded_error")
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("path", ["/v1/messages?beta=true", "/v1/v1/messages", "/messages", "//v1/messages/"])
def test_the_path_is_understood_however_the_base_url_was_written(flow: Flow, path: str) -> None:
    flow.script(chat("a"))
    assert flow.post(path, {"model": PLAIN, "max_tokens": 9, "messages": HI}).status == 200


def test_a_wrong_path_or_method_is_told_in_the_same_shape(flow: Flow) -> None:
    answer = flow.post("/api/v1/messages", {})
    assert (answer.status, failed(answer)["type"]) == (404, "not_found_error")
    assert "/v1/messages" in failed(answer)["message"]
    wrong = flow.get("/v1/messages")
    assert (wrong.status, failed(wrong)["type"]) == (405, "invalid_request_error")
    assert wrong.headers["allow"] == "POST"
    elsewhere = flow.request("GET", "/v1/nothing", headers=ANTHROPIC)
    assert failed(elsewhere)["type"] == "not_found_error"
    assert flow.get("/v1/nothing").error["type"] == "invalid_request_error"  # others read it as ever


def test_any_beta_is_taken(flow: Flow) -> None:
    flow.script(chat("a"))
    assert flow.message({"model": PLAIN, "messages": HI}, {"anthropic-beta": "no-list-knows-2031-01-01,x"})


# Counting, and models


@pytest.mark.parametrize("given", [one for one in recorded_requests() if "count" in one.path], ids=lambda one: one.name)
def test_tokens_are_counted_here_and_err_high(flow: Flow, given: Any) -> None:
    answer = flow.post("/v1/messages/count_tokens?beta=true", {**given.body, "model": DEEPSEEK}, given.headers)
    assert answer.status == 200
    words = len(repr(given.body["messages"])) + len(repr(given.body["tools"]))
    assert answer.json["input_tokens"] > words / 4
    assert flow.sent == []


def test_a_count_holds_tools_system_pictures_and_documents(flow: Flow) -> None:
    def count(**fields: Any) -> int:
        asked = {"model": FULL, "messages": HI, **fields}
        return int(flow.post("/v1/messages/count_tokens", asked).json["input_tokens"])

    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk=" * 500}}
    bare = count()
    assert count(system="word " * 100) > bare + 100
    assert count(tools=[{**LOOK, "description": "word " * 100}]) > bare + 100
    assert bare + 1000 < count(messages=[{"role": "user", "content": [image]}]) < bare + 6000
    wrong = flow.post("/v1/messages/count_tokens", {"model": "nobody/x", "messages": HI})
    assert (wrong.status, failed(wrong)["type"]) == (404, "not_found_error")


def test_models_are_listed_in_pages_for_clients_of_anthropic(flow: Flow) -> None:
    def page(query: str) -> Json:
        listed: Json = flow.request("GET", f"/v1/models{query}", headers=ANTHROPIC).json
        return listed

    whole = page("?limit=1000")
    ids = [model["id"] for model in whole["data"]]
    assert (whole["first_id"], whole["last_id"], whole["has_more"]) == (ids[0], ids[-1], False)
    assert {"type", "id", "display_name", "created_at", "max_input_tokens", "max_tokens"} <= set(whole["data"][0])
    first = page("?limit=2")
    assert ([model["id"] for model in first["data"]], first["has_more"]) == (ids[:2], True)
    second = page(f"?limit=2&after_id={first['last_id']}")
    assert [model["id"] for model in second["data"]] == ids[2:4]
    back = page(f"?limit=1&before_id={second['first_id']}")
    assert ([model["id"] for model in back["data"]], back["has_more"]) == ([ids[1]], True)
    odd = flow.request("GET", "/v1/models?after_id=nothing", headers=ANTHROPIC)
    assert (odd.status, failed(odd)["type"]) == (400, "invalid_request_error")


def test_every_model_has_a_name_that_claude_code_shows_and_it_leads_there(flow: Flow) -> None:
    listed = flow.request("GET", "/v1/models?limit=1000", headers=ANTHROPIC).json["data"]
    ids = [model["id"] for model in listed]
    assert len(set(ids)) == len(ids)
    hidden = [id for id in ids if not id.startswith(("claude", "anthropic"))]
    assert {f"claude-{id}" for id in hidden} <= set(ids)
    flow.script(chat("a"), chat("b"))
    assert flow.message({"model": f"claude-{DEEPSEEK}", "messages": HI})["model"] == f"claude-{DEEPSEEK}"
    assert flow.message({"model": "claude-gpt-alias[1m]", "messages": HI})["isthmus"]["alias"] == "gpt-alias"
    assert [body["model"] for body in flow.sent] == ["deepseek-v4-pro"] * 2
    one = flow.request("GET", f"/v1/models/claude-{DEEPSEEK}", headers=ANTHROPIC).json
    assert (one["type"], one["id"]) == ("model", DEEPSEEK)


def test_a_bare_name_of_claude_is_nobodys_prefix(flow: Flow) -> None:
    flow.script(chat("a"))
    flow.message({"model": "claude-haiku-4-5", "messages": HI})
    assert flow.sent[0]["model"] == "claude-haiku-4-5"
