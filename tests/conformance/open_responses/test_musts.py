"""What the specification demands in words, and the published suite does not notice: one test for each demand.

`docs/reference/open-responses.md` lists them; `test_page.py` holds the two together.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specified import WEATHER, Specified
from wire import document

Json = dict[str, Any]
TIME: Json = {"type": "function", "name": "get_time", "parameters": {"type": "object", "properties": {}}}


def events_of(body: bytes) -> list[tuple[str, str]]:
    """Each event's own name and its data."""
    pairs = []
    for block in body.decode().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if fields:
            assert "id" not in fields
            pairs.append((fields.get("event", ""), fields["data"]))
    return pairs


def streamed(asked: Specified, body: Json) -> Any:
    return asked.post("/v1/responses", {"model": asked.model, "stream": True, **body})


# ── transport ──────────────────────────────────────────────────────────────────────────────────────


def test_whole_answers_are_json(asked: Specified) -> None:
    answer = asked.post("/v1/responses", {"model": asked.model, "input": "Hi."})
    assert answer.headers["content-type"] == "application/json"


def test_streams_are_event_streams_and_end_with_done(asked: Specified) -> None:
    answer = streamed(asked, {"input": "Count from 1 to 5."})
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert b"\r" not in answer.body, "the published suite's own reader knows no other line end"


def test_the_event_field_is_the_type_of_the_body(asked: Specified) -> None:
    *events, done = events_of(streamed(asked, {"input": "Count from 1 to 5."}).body)
    assert done[1] == "[DONE]"
    assert events
    for name, data in events:
        assert f'"type":"{name}"' in data


# ── streams ────────────────────────────────────────────────────────────────────────────────────────


def test_events_are_numbered_and_in_order(asked: Specified) -> None:
    events, _ = asked.ask_stream("Count from 1 to 5.")  # `check_stream` is the state machine of the order
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[-1]["type"] == "response.completed"


def test_an_item_opens_before_its_parts_and_closes_after_them(asked: Specified) -> None:
    events, _ = asked.ask_stream("Count from 1 to 5.")
    kinds = [event["type"].removeprefix("response.") for event in events if "output_index" in event]
    deltas = kinds.count("output_text.delta")
    assert deltas
    assert [kind for kind in kinds if kind != "output_text.delta"] == [
        *("output_item.added", "content_part.added", "output_text.done", "content_part.done", "output_item.done")
    ]


def test_a_call_opens_with_its_name(asked: Specified) -> None:
    events, _ = asked.ask_stream("What is the weather in Paris?", tools=[WEATHER])
    added = [event["item"] for event in events if event["type"] == "response.output_item.added"]
    assert [item["name"] for item in added if item["type"] == "function_call"] == ["get_weather"]


def test_every_item_has_an_id_a_type_and_a_status(asked: Specified) -> None:
    thinks = {"reasoning": {"effort": "high"}} if asked.behind == "demo" else {}
    made = [
        *asked.ask("What is the weather in Paris?", tools=[WEATHER])["output"],
        *asked.ask("What is 2+2?", **thinks)["output"],
        *asked.post("/v1/responses/compact", {"model": asked.model, "input": "Hi."}).json["output"],
    ]
    for item in made:
        assert item["id"]
        assert item["status"] == "completed"
    wanted = {"function_call", "message", "compaction"} | ({"reasoning"} if thinks else set())
    assert {item["type"] for item in made} == wanted


def test_what_is_cut_is_incomplete_and_last(asked: Specified) -> None:
    events, response = asked.ask_stream("[[demo: length]] Count to 100.")
    assert (response["status"], response["output"][-1]["status"]) == ("incomplete", "incomplete")
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert events[-1]["type"] == "response.incomplete"
    assert all(item["status"] == "completed" for item in response["output"][:-1])


def test_what_breaks_while_it_streams_ends_with_response_failed(asked: Specified) -> None:
    answer = streamed(asked, {"input": "[[demo: cut]] Count to 100."})
    *events, (last, data), (_, done) = events_of(answer.body)
    assert events[0][0] == "response.created"
    assert (last, done) == ("response.failed", "[DONE]")
    response = msgspec.json.decode(data)["response"]
    assert document.judge("ResponseResource", response) == []
    assert response["status"] == "failed"
    assert response["error"]["code"]
    assert response["error"]["message"]


def test_what_is_missing_is_null_where_it_is_required_and_left_out_elsewhere(asked: Specified) -> None:
    response = asked.ask("Hi.", tools=[{"type": "function", "name": "get_time"}], tool_choice="none")
    nothing = ("incomplete_details", "previous_response_id", "instructions", "error", "reasoning", "max_output_tokens")
    for name in (*nothing, "max_tool_calls", "safety_identifier", "prompt_cache_key"):
        assert response[name] is None, name
    (tool,) = response["tools"]
    assert [name in tool for name in ("description", "parameters", "strict")] == [True] * 3
    optional = [part for item in response["output"] for part in (item, *item["content"])]
    assert all(value is not None for part in optional for value in part.values())
    usage = response["usage"]
    assert "cached_tokens" in usage["input_tokens_details"]
    assert "reasoning_tokens" in usage["output_tokens_details"]


# ── state ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_continuation_has_prior_input_then_output_then_its_own(asked: Specified) -> None:
    first = asked.ask("My name is Ada.")
    second = asked.ask("What is my name?", previous_response_id=first["id"])
    assert second["previous_response_id"] == first["id"]
    if asked.behind == "demo":
        assert "Ada" in second["output_text"]
    else:
        said = first["output_text"]
        assert asked.sent == [("user", "My name is Ada."), ("assistant", said), ("user", "What is my name?")]


def test_an_unknown_parent_is_refused(asked: Specified) -> None:
    refused = asked.post("/v1/responses", {"model": asked.model, "input": "x", "previous_response_id": "resp_none"})
    assert (refused.status, refused.error["code"]) == (400, "previous_response_not_found")


# ── tools ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "get_weather"}], ids=["any", "named"])
def test_a_required_tool_is_called(asked: Specified, choice: Any) -> None:
    response = asked.ask("Hello.", tools=[WEATHER], tool_choice=choice)
    assert [item["name"] for item in response["output"] if item["type"] == "function_call"] == ["get_weather"]


def test_none_calls_nothing(asked: Specified) -> None:
    response = asked.ask("What is the weather in Paris?", tools=[WEATHER], tool_choice="none")
    assert "function_call" not in [item["type"] for item in response["output"]]


@pytest.mark.parametrize("mode", [{"mode": "auto"}, {"mode": "required"}, {}], ids=["auto", "required", "left out"])
def test_a_call_outside_allowed_tools_never_comes_through(asked: Specified, mode: Json) -> None:
    allowed = {"type": "allowed_tools", **mode, "tools": [{"type": "function", "name": "get_time"}]}
    response = asked.ask("What is the weather in Paris?", tools=[WEATHER, TIME], tool_choice=allowed)
    called = [item["name"] for item in response["output"] if item["type"] == "function_call"]
    assert "get_weather" not in called
    if mode == {"mode": "required"}:
        assert called == ["get_time"]
    assert response["tool_choice"] == {"mode": "auto", **allowed}
    assert [tool["name"] for tool in response["tools"]] == ["get_weather", "get_time"], (
        "all of them stay in the context"
    )


# ── truncation, tiers, errors ──────────────────────────────────────────────────────────────────────


def test_disabled_truncation_never_shortens(asked: Specified) -> None:
    assert asked.ask("Hi.")["truncation"] == "disabled"
    if asked.behind != "chat":
        pytest.skip("the demo model reads everything; a native provider is told, and sees to it itself")
    long = asked.post("/v1/responses", {"model": asked.model, "input": "word " * 250_000})
    assert long.status == 400
    assert long.error["code"] == "context_length_exceeded"


def test_the_service_tier_is_always_told(asked: Specified) -> None:
    assert asked.ask("Hi.", service_tier="flex")["service_tier"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("POST", "/v1/responses", b"{", 400, "invalid_request"),
        ("POST", "/v1/responses", b'{"input": 7}', 400, "invalid_request"),
        ("GET", "/v1/responses/resp_none", b"", 404, "not_found"),
        ("GET", "/v1/nowhere", b"", 404, "not_found"),
    ],
)
def test_errors_have_their_four_fields_and_a_listed_type(
    asked: Specified, method: str, path: str, body: bytes, status: int, kind: str
) -> None:
    refused = asked.request(method, path, body or None)
    assert refused.status == status
    assert set(refused.error) == {"message", "type", "param", "code"}
    assert refused.error["type"] == (kind if asked.specified else "invalid_request_error")


def test_a_header_asks_for_either_spelling(asked: Specified) -> None:
    for spelling, kind in (("open-responses", "not_found"), ("openai", "invalid_request_error")):
        refused = asked.request("GET", "/v1/responses/resp_none", headers={"isthmus-compat": spelling})
        assert refused.error["type"] == kind
    refused = asked.request("GET", "/v1/responses/resp_none", headers={"isthmus-compat": "klingon"})
    assert (refused.status, refused.error["param"]) == (400, "Isthmus-Compat")


def test_raw_reasoning_has_the_spelling_that_was_asked_for(asked: Specified) -> None:
    if asked.behind in ("chat", "messages"):
        pytest.skip("OpenAI's Chat Completions show no thinking, Anthropic's Messages summaries only")
    body: Json = {"input": "Think. What is 2+2?", "reasoning": {"effort": "high"}}
    events, response = asked.ask_stream(**body)
    word = "response.reasoning" if asked.specified else "response.reasoning_text"
    kinds = [event["type"] for event in events if event["type"].startswith("response.reasoning")]
    assert {*kinds} == {f"{word}.delta", f"{word}.done"}
    again = asked.get(f"/v1/responses/{response['id']}?stream=true")
    assert {name for name, _ in events_of(again.body) if "reasoning" in name} == {*kinds}
    codex = asked.post(
        "/v1/responses", {"model": asked.model, "stream": True, **body}, headers={"originator": "codex_cli_rs"}
    )
    assert b"response.reasoning_text.delta" in codex.body, "Codex reads no other"


def test_thinking_that_is_asked_for_as_a_summary_has_one_spelling(asked: Specified) -> None:
    if asked.behind in ("chat", "native"):
        pytest.skip("OpenAI's Chat Completions show no thinking, and a native provider makes its own summaries")
    events, response = asked.ask_stream("Think. What is 2+2?", reasoning={"effort": "high", "summary": "auto"})
    assert all(document.knows_event(event["type"]) for event in events)
    kinds = {event["type"].removeprefix("response.") for event in events if "reasoning" in event["type"]}
    words = {f"reasoning_summary_text.{end}" for end in ("delta", "done")}
    assert kinds == {"reasoning_summary_part.added", "reasoning_summary_part.done", *words}
    (thought,) = [item for item in response["output"] if item["type"] == "reasoning"]
    assert thought["summary"][0]["text"]
