"""Whole requests through the gateway, the real Codex and a scripted upstream: text, tools, formats, images."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.testing import Gate, stream
from real.codex_backend.house import (
    CHAT_WEATHER,
    House,
    answers,
    calls_in,
    chat_calls,
    chat_text,
    finish_reasons,
)
from real.codex_backend.rig import (
    TIME,
    WEATHER,
    calls,
    closed_message,
    completed,
    opened_message,
    outputs_in,
    real,
    says,
    text_delta,
    tool_names,
)
from talking import message_text

pytestmark = real

PARIS = ("call_paris", "get_weather", '{ "city": "Paris" }')
OSLO = ("call_oslo", "get_weather", '{"city":"Oslo"}')
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)


def test_text_is_the_same_whole_and_streamed(house: House) -> None:
    house.script(says("Hel", "lo"), says("Hel", "lo"))
    whole, _ = house.both(house.ask())
    assert message_text(whole) == "Hello"
    assert whole["usage"]["input_tokens"] == 10
    assert whole["usage"]["input_tokens_details"]["cached_tokens"] == 3
    assert whole["usage"]["output_tokens_details"]["reasoning_tokens"] == 2


def test_words_reach_a_responses_client_as_they_are_said(house: House) -> None:
    gate = Gate("rest")
    parts = [*opened_message(), text_delta("a"), gate, text_delta("b"), closed_message("ab"), completed()]
    house.script(stream(parts, done=False))
    with house.streaming("/v1/responses", house.ask(stream=True)) as events:
        assert events.until("response.output_text.delta")["delta"] == "a"
        gate.open()
        assert events.until("response.output_text.delta")["delta"] == "b"
        assert events.until("response.completed")["response"]["status"] == "completed"


def test_words_reach_a_chat_client_as_they_are_said(house: House) -> None:
    gate = Gate("rest")
    parts = [*opened_message(), text_delta("a"), gate, text_delta("b"), closed_message("ab"), completed()]
    house.script(stream(parts, done=False))
    with house.streaming("/v1/chat/completions", house.say(stream=True)) as chunks:
        first = next(chunk for chunk in chunks if chunk["choices"][0]["delta"].get("content"))
        assert first["choices"][0]["delta"]["content"] == "a"
        gate.open()
        rest = list(chunks)
    assert chat_text(rest) == "b"
    assert finish_reasons(rest) == ["stop"]


def test_a_whole_chat_answer(house: House) -> None:
    house.script(says("Hel", "lo"))
    completion = house.chat(house.say(temperature=0.1))
    assert completion["choices"][0]["message"]["content"] == "Hello"
    assert completion["choices"][0]["finish_reason"] == "stop"
    assert completion["usage"]["prompt_tokens"] == 10
    assert "temperature" in str(completion["isthmus"]["diagnostics"])


def test_the_model_sees_what_the_client_wrote_and_nothing_else(house: House) -> None:
    house.script(says("Hi"))
    house.create(house.ask("Hello?", instructions="Be brief.", tools=[WEATHER]))
    (body,) = house.sent
    texts = [(item["role"], item["content"][0]["text"]) for item in body["input"]]
    assert texts == [("developer", "Be brief."), ("user", "Hello?")]
    assert tool_names(body) == ["get_weather"]
    assert "instructions" not in body


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_a_tool_call_and_its_answer_are_one_turn_of_one_thread_in_responses(house: House, streamed: bool) -> None:
    send = (lambda body: house.stream(body)[1]) if streamed else house.create
    house.script(calls(PARIS), says("Sunny"))
    first = send(house.ask("Weather?", tools=[WEATHER]))
    assert calls_in(first) == [PARIS], "the argument text is the model's own, byte for byte"
    assert first["status"] == "completed"
    last = send(house.ask(answers(first, call_paris="21 degrees"), tools=[WEATHER], previous_response_id=first["id"]))
    assert message_text(last) == "Sunny"
    assert outputs_in(house.sent[1]) == [("call_paris", "21 degrees")]
    assert len(set(house.threads)) == 1
    assert last["usage"]["input_tokens"] == 10, "each leg has its own usage"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_a_tool_call_and_its_answer_are_one_turn_of_one_thread_in_chat(house: House, streamed: bool) -> None:
    house.script(calls(PARIS), says("Sunny"))
    asked = house.say("Weather?", tools=[CHAT_WEATHER])
    made, reason = _chat_calls(house, asked, streamed)
    assert (made, reason) == ([PARIS], "tool_calls")
    function = {"name": PARIS[1], "arguments": PARIS[2]}
    asked["messages"] += [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_paris", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_paris", "content": "21 degrees"},
    ]
    if streamed:
        assert chat_text(house.chat_stream(asked)) == "Sunny"
    else:
        assert house.chat(asked)["choices"][0]["message"]["content"] == "Sunny"
    assert outputs_in(house.sent[1]) == [("call_paris", "21 degrees")]
    assert len(set(house.threads)) == 1


def _chat_calls(house: House, asked: dict[str, Any], streamed: bool) -> tuple[list[tuple[str, str, str]], str]:
    if streamed:
        chunks = house.chat_stream(asked)
        return chat_calls(chunks), *finish_reasons(chunks)
    (choice,) = house.chat(asked)["choices"]
    made = [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in choice["message"]["tool_calls"]
    ]
    return made, choice["finish_reason"]


def test_full_history_finds_the_turn_as_well_as_an_id_does(house: House) -> None:
    house.script(calls(PARIS), says("Sunny"))
    question = {"type": "message", "role": "user", "content": "Weather?"}
    first = house.create(house.ask([question], tools=[WEATHER], store=False))
    again = [question, *first["output"], *answers(first, call_paris="21")]
    assert message_text(house.create(house.ask(again, tools=[WEATHER], store=False))) == "Sunny"
    assert len(set(house.threads)) == 1


@pytest.mark.parametrize("order", [["call_paris", "call_oslo"], ["call_oslo", "call_paris"]], ids=["same", "other"])
def test_parallel_calls_are_answered_in_any_order(house: House, order: list[str]) -> None:
    house.script(calls(PARIS, OSLO), says("Both"))
    first = house.create(house.ask("Weather?", tools=[WEATHER]))
    assert calls_in(first) == [PARIS, OSLO]
    made = {item["call_id"]: item for item in answers(first, call_paris="sun", call_oslo="snow")}
    given = [made[call_id] for call_id in order]
    last = house.create(house.ask(given, tools=[WEATHER], previous_response_id=first["id"]))
    assert message_text(last) == "Both"
    assert outputs_in(house.sent[1]) == [("call_paris", "sun"), ("call_oslo", "snow")]
    assert len(set(house.threads)) == 1


def test_several_rounds_of_tools_and_a_further_question_stay_in_one_thread(house: House) -> None:
    house.script(*(calls((f"call_{n}", "get_weather", "{}")) for n in range(3)), says("Done"), says("Bye"))
    response = house.create(house.ask("Go", tools=[WEATHER]))
    for number in range(3):
        outputs = answers(response, **{f"call_{number}": str(number)})
        response = house.create(house.ask(outputs, tools=[WEATHER], previous_response_id=response["id"]))
    assert message_text(response) == "Done"
    response = house.create(house.ask("Thanks", tools=[WEATHER], previous_response_id=response["id"]))
    assert message_text(response) == "Bye"
    assert outputs_in(house.sent[4]) == [("call_0", "0"), ("call_1", "1"), ("call_2", "2")]
    assert len(set(house.threads)) == 1, "the provider's prompt cache stays warm"


def test_a_forced_choice_offers_only_that_tool_and_says_so(house: House) -> None:
    house.script(calls(("call_t", "get_time", "{}")), says("Noon"))
    choice = {"type": "function", "name": "get_time"}
    first = house.create(house.ask("When?", tools=[WEATHER, TIME], tool_choice=choice))
    assert tool_names(house.sent[0]) == ["get_time"]
    assert "get_time" in house.sent[0]["input"][0]["content"][0]["text"]
    assert {told["path"]: told["action"] for told in first["isthmus"]["diagnostics"]}["tool_choice"] == "degraded"
    # The client lets the model choose freely again: that is another thread, with the same past.
    outputs = answers(first, call_t="12:00")
    last = house.create(house.ask(outputs, tools=[WEATHER, TIME], previous_response_id=first["id"]))
    assert message_text(last) == "Noon"
    assert tool_names(house.sent[1]) == ["get_weather", "get_time"]
    assert outputs_in(house.sent[1]) == [("call_t", "12:00")]


def test_choice_none_offers_nothing(house: House) -> None:
    house.script(says("Hi"))
    house.create(house.ask(tools=[WEATHER], tool_choice="none"))
    assert tool_names(house.sent[0]) == []


def test_a_tool_with_the_name_of_a_built_in_keeps_its_name_for_the_client(house: House) -> None:
    patch = {**WEATHER, "name": "apply_patch"}
    house.script(calls(("call_p", "client_apply_patch", "{}")), says("Done"))
    first = house.create(house.ask("Patch", tools=[patch]))
    assert calls_in(first) == [("call_p", "apply_patch", "{}")]
    house.create(house.ask(answers(first, call_p="ok"), tools=[patch], previous_response_id=first["id"]))
    assert outputs_in(house.sent[1]) == [("call_p", "ok")]
    assert len(set(house.threads)) == 1


def test_a_free_text_tool_is_called_with_its_text(house: House) -> None:
    note = {"type": "custom", "name": "note", "description": "Write it down."}
    house.script(calls(("call_n", "note", '{"input":"milk"}')), says("Noted"))
    first = house.create(house.ask("Remember milk", tools=[note]))
    (item,) = first["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "note", "milk")
    output = {"type": "custom_tool_call_output", "call_id": "call_n", "output": "ok"}
    last = house.create(house.ask([output], tools=[note], previous_response_id=first["id"]))
    assert message_text(last) == "Noted"
    assert len(set(house.threads)) == 1


def test_reasoning_summaries_are_streamed_and_effort_goes_up(house: House) -> None:
    house.script(says("Hi", thought="Let me think."))
    events, response = house.stream(house.ask(reasoning={"effort": "high", "summary": "auto"}))
    assert house.sent[0]["reasoning"] == {"effort": "high", "summary": "auto"}
    assert "Let me think." in str(response["output"][0])
    assert response["output"][0]["type"] == "reasoning"
    assert any(event["type"].startswith("response.reasoning") for event in events)


def test_a_strict_schema_is_the_upstreams_format(house: House) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "name": "n", "schema": schema, "strict": True}
    house.script(says('{"a":"b"}'), says('{"a":"b"}'))
    response = house.create(house.ask(text={"format": form}))
    assert message_text(response) == '{"a":"b"}'
    sent = house.sent[0]["text"]["format"]
    assert (sent["type"], sent["schema"]) == ("json_schema", schema)
    wrapped = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
    completion = house.chat(house.say(response_format=wrapped))
    assert completion["choices"][0]["message"]["content"] == '{"a":"b"}'
    assert house.sent[1]["text"]["format"]["schema"] == schema


def test_a_strict_schema_that_is_not_kept_fails_the_response(house: House) -> None:
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    form = {"type": "json_schema", "name": "n", "schema": schema, "strict": True}
    house.script(says("no json"))
    response = house.create(house.ask(text={"format": form}))
    assert response["status"] == "failed"
    assert response["error"]["code"] == "bridge.response.invalid_output_format"


def test_images_travel_as_data_urls_and_others_are_told(house: House) -> None:
    house.script(says("A pixel"))
    content = [
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "image_url": PIXEL},
        {"type": "input_image", "image_url": "https://example.org/a.png"},
    ]
    response = house.create(house.ask([{"type": "message", "role": "user", "content": content}]))
    assert PIXEL in str(house.sent[0]["input"])
    assert '"https://example.org/a.png"' not in str(house.sent[0]["input"])
    assert any(told["path"] == "input[0].content[2]" for told in response["isthmus"]["diagnostics"])


def test_the_models_are_those_that_the_binary_lists(house: House) -> None:
    listed = house.get("/v1/models").json["data"]
    names = [model["id"] for model in listed]
    assert "codex/gpt-5.5" in names
    assert len(names) > 3
    assert listed[0]["isthmus"]["reasoning_efforts"]


def test_readiness_tells_of_the_process(house: House) -> None:
    assert house.get("/ready").json["providers"] == {"codex": "ok"}
    assert house.health.state == "ready"


def test_tokens_can_be_estimated_and_the_plan_explained(house: House) -> None:
    counted = house.post("/v1/responses/input_tokens", house.ask("x" * 400, tools=[WEATHER])).json
    assert counted["input_tokens"] > 100
