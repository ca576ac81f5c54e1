"""The cases of the published compliance suite that go over HTTP, by its own names, from the specification's facts."""

from __future__ import annotations

from typing import Any

from specified import PNG, WEATHER, Specified
from wire import document

Json = dict[str, Any]


def said(text: str, role: str = "user", **more: Any) -> Json:
    return {"type": "message", "role": role, "content": text, **more}


def complete(response: Json) -> None:
    assert response["output"]
    assert response["status"] == "completed"


def test_basic_response(asked: Specified) -> None:
    complete(asked.ask([said("Say hello in exactly 3 words.")]))


def test_assistant_phase(asked: Specified) -> None:
    talk = [
        said("Count."),
        said("I am counting.", "assistant", phase="commentary"),
        said("One.", "assistant", phase="final_answer"),
        said("Go on."),
    ]
    complete(asked.ask(talk))


def test_response_output_phase_schema() -> None:
    message: Json = {"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": []}
    for phase in ("commentary", "final_answer"):
        assert document.judge("ItemField", {**message, "phase": phase}) == []
    assert document.judge("ItemField", {**message, "phase": None}) != []


def test_streaming_response(asked: Specified) -> None:
    events, response = asked.ask_stream([said("Count from 1 to 5.")])
    assert events
    assert all(document.knows_event(event["type"]) for event in events)
    complete(response)


def test_system_prompt(asked: Specified) -> None:
    complete(asked.ask([said("You are a pirate.", "system"), said("Say hello.")]))


def test_tool_calling(asked: Specified) -> None:
    response = asked.ask([said("What is the weather in Paris?")], tools=[WEATHER])
    assert "function_call" in [item["type"] for item in response["output"]]


def test_image_input(asked: Specified) -> None:
    parts = [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": PNG}]
    complete(asked.ask([{"type": "message", "role": "user", "content": parts}]))


def test_multi_turn(asked: Specified) -> None:
    complete(asked.ask([said("My name is Alice."), said("Hello Alice!", "assistant"), said("What is my name?")]))


def test_compact_response(asked: Specified) -> None:
    body = {"model": asked.model, "prompt_cache_key": "k", "input": [said("Hi."), said("Hello!", "assistant")]}
    made = asked.post("/v1/responses/compact", body)
    assert made.status == 200
    assert document.judge("CompactResource", made.json) == []
    assert made.json["object"] == "response.compaction"
    assert made.json["output"][-1]["type"] == "compaction"


def test_compact_missing_model(asked: Specified) -> None:
    assert asked.post("/v1/responses/compact", {"input": [said("Hi.")]}).status in (400, 422)
