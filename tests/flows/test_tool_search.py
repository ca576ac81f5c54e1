"""Hosted tool search over HTTP: what is deferred reaches the upstream once the model has looked for it."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.bridge.tools.search import MAX_SEARCHES
from isthmus.testing import chat

Json = dict[str, Any]
NOTHING: Json = {"type": "object", "properties": {}}
MAIL: Json = {
    "type": "function", "name": "send_mail", "description": "Send a letter.", "parameters": NOTHING,
    "defer_loading": True,
}  # fmt: skip
CLOSE: Json = {
    "type": "function", "name": "close", "description": "Settle a ticket.", "parameters": NOTHING,
    "defer_loading": True,
}  # fmt: skip
TICKETS: Json = {"type": "namespace", "name": "tickets", "description": "Support tickets.", "tools": [CLOSE]}
NOW: Json = {"type": "function", "name": "clock", "description": "The time.", "parameters": NOTHING}
TOOLS: list[Json] = [{"type": "tool_search"}, NOW, MAIL, TICKETS]
ASK: Json = {"input": "Close ticket 7.", "tools": TOOLS}


def look(query: str, id: str = "call_0") -> tuple[str, str, Json]:
    return (id, "tool_search", {"query": query})


def declared(body: Json) -> list[str]:
    return [tool["function"]["name"] for tool in body["tools"]]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", [PLAIN, FULL, DEEPSEEK])
def test_the_model_searches_and_calls_what_it_found(flow: Flow, model: str, streamed: bool) -> None:
    flow.script(
        chat(calls=[look("settle a ticket")], usage={"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}),
        chat(
            calls=[("call_0", "tickets__close", {})],
            usage={"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22},
        ),
    )
    request = {**ASK, "model": model}
    response = flow.stream(request)[1] if streamed else flow.create(request)
    search, found, call = [item for item in response["output"] if item["type"] != "reasoning"]
    assert (search["type"], search["execution"], search["call_id"]) == ("tool_search_call", "server", None)
    assert search["arguments"] == {"query": "settle a ticket"}
    assert (found["type"], found["execution"], found["status"]) == ("tool_search_output", "server", "completed")
    assert found["tools"] == [TICKETS]
    assert (call["type"], call["name"], call["namespace"]) == ("function_call", "close", "tickets")
    assert response["usage"]["total_tokens"] == 33
    assert declared(flow.sent[0]) == ["tool_search", "clock"]
    assert declared(flow.sent[1]) == ["tool_search", "clock", "tickets__close"]
    asked, answered = flow.sent[1]["messages"][-2:]
    assert asked["tool_calls"][0]["function"]["name"] == "tool_search"
    assert answered["tool_call_id"] == asked["tool_calls"][0]["id"]
    assert "tickets__close" in answered["content"]


def test_a_stream_tells_the_search_before_the_model_answers_again(flow: Flow) -> None:
    flow.script(chat(calls=[look("letter")]), chat("Which address?"))
    events, _ = flow.stream({**ASK, "model": PLAIN})
    items = [
        (event["type"].rpartition(".")[2], event["item"]["type"], event["item"]["status"])
        for event in events
        if event["type"].startswith("response.output_item")
    ]
    assert items == [
        ("added", "tool_search_call", "in_progress"),
        ("done", "tool_search_call", "completed"),
        ("added", "tool_search_output", "in_progress"),
        ("done", "tool_search_output", "completed"),
        ("added", "message", "in_progress"),
        ("done", "message", "completed"),
    ]


def test_found_tools_stay_found_in_the_turns_that_follow(flow: Flow) -> None:
    flow.script(chat(calls=[look("letter")]), chat(calls=[("call_1", "send_mail", {})]), chat("Sent."), chat("Sent."))
    first = flow.create({**ASK, "model": PLAIN})
    call = first["output"][-1]
    assert (call["name"], call["namespace"]) == ("send_mail", "send_mail")
    answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
    flow.create({**ASK, "model": PLAIN, "previous_response_id": first["id"], "input": [answer]})
    said = [{"type": "message", "role": "user", "content": ASK["input"]}, *first["output"], answer]
    flow.create({**ASK, "model": PLAIN, "input": said})
    assert flow.sent[2] == flow.sent[3]
    assert declared(flow.sent[2]) == ["tool_search", "clock", "send_mail"]
    assert [message["role"] for message in flow.sent[2]["messages"]] == [
        "user", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    assert flow.sent[2]["messages"][3]["tool_calls"][0]["function"]["name"] == "send_mail"


def test_a_search_beside_a_call_of_the_client_waits_for_the_client(flow: Flow) -> None:
    flow.script(chat(calls=[look("letter", "call_1"), ("call_2", "clock", {})]))
    response = flow.create({**ASK, "model": PLAIN})
    assert [item["type"] for item in response["output"]] == ["tool_search_call", "tool_search_output", "function_call"]
    assert response["status"] == "completed"


def test_a_search_that_finds_nothing_says_so(flow: Flow) -> None:
    flow.script(chat(calls=[look("paint")]), chat("I cannot paint."))
    response = flow.create({**ASK, "model": PLAIN})
    assert response["output"][1]["tools"] == []
    assert flow.sent[1]["messages"][-1]["content"] == "No tools found."
    assert declared(flow.sent[1]) == declared(flow.sent[0])


def test_a_model_that_only_searches_is_told_of_everything_in_the_end(flow: Flow) -> None:
    flow.script(*(chat(calls=[look("paint")]) for _ in range(MAX_SEARCHES)), chat("Done."))
    response = flow.create({**ASK, "model": PLAIN})
    assert response["output"][-1]["content"][0]["text"] == "Done."
    assert declared(flow.sent[-1]) == ["clock", "send_mail", "tickets__close"]


def test_an_upstream_that_fails_after_a_search_fails_the_response_once(flow: Flow) -> None:
    flow.script(chat(calls=[look("letter")]), {"status": 500, "body": {"error": {"message": "out of order"}}})
    events, response = flow.stream({**ASK, "model": PLAIN})
    assert response["status"] == "failed"
    assert [event["type"] for event in events].count("response.failed") == 1
    assert [item["type"] for item in response["output"]] == ["tool_search_call", "tool_search_output"]


def test_arguments_that_are_no_json_are_searched_as_they_stand(flow: Flow) -> None:
    flow.script(chat(calls=[("call_1", "tool_search", "letter")]), chat("ok"))
    response = flow.create({**ASK, "model": PLAIN})
    assert response["output"][0]["arguments"] == {"query": "letter"}
    assert response["output"][1]["tools"] == [MAIL]


def test_a_search_cut_off_by_the_length_is_not_shown(flow: Flow) -> None:
    flow.script(chat(calls=[("call_1", "tool_search", '{"query": "let')], finish="length"))
    response = flow.create({**ASK, "model": PLAIN})
    assert (response["status"], response["output"]) == ("incomplete", [])


def test_strict_mode_and_a_contract_hold_through_a_search(flow: Flow) -> None:
    schema = {"type": "object", "properties": {"sent": {"type": "boolean"}}, "required": ["sent"]}
    text = {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}}
    flow.script(chat(calls=[look("letter")]), chat("sure"), chat('{"sent": true}'))
    response = flow.create({**ASK, "model": DEEPSEEK, "text": text})
    assert response["output"][-1]["content"][0]["text"] == '{"sent": true}'
    assert "send_mail" in declared(flow.sent[2])
