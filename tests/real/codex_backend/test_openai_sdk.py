"""The official client, used as its users write it, against a provider that uses Codex: nothing is special."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI

from doc_pages import ADDRESS, ROOT, read_programs
from real.codex_backend.house import MODEL, House
from real.codex_backend.rig import calls, outputs_in, real, says

pytestmark = real

SIGN: dict[str, Any] = {
    "name": "get_tide",
    "description": "High water at a harbour today.",
    "parameters": {
        "type": "object",
        "properties": {"harbour": {"type": "string", "description": "A harbour such as Brest"}},
        "required": ["harbour"],
    },
}


def get_tide(harbour: str) -> str:
    return f"{harbour}: high water at 14:10."


@pytest.fixture
def client(house: House) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{house.server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_the_responses_tool_calling_example(house: House, client: OpenAI) -> None:
    house.script(calls(("call_1", "get_tide", '{"harbour":"Brest"}')), says("At ", "14:10."))
    tools: Any = [{"type": "function", **SIGN}]
    input_list: Any = [{"role": "user", "content": "When is high water in Brest?"}]
    response = client.responses.create(model=MODEL, tools=tools, input=input_list)
    input_list += response.output
    for item in response.output:
        if item.type == "function_call" and item.name == "get_tide":
            tide = get_tide(**json.loads(item.arguments))
            output = {"type": "function_call_output", "call_id": item.call_id, "output": json.dumps({"tide": tide})}
            input_list.append(output)
    response = client.responses.create(
        model=MODEL, instructions="Answer with the time alone.", tools=tools, input=input_list
    )
    assert response.output_text == "At 14:10."
    assert outputs_in(house.sent[1]) == [("call_1", '{"tide": "Brest: high water at 14:10."}')]


def test_the_chat_tool_calling_example(house: House, client: OpenAI) -> None:
    house.script(calls(("call_1", "get_tide", '{"harbour":"Brest"}')), says("At 14:10."))
    tools: Any = [{"type": "function", "function": SIGN}]
    messages: Any = [{"role": "user", "content": "When is high water in Brest?"}]
    completion = client.chat.completions.create(model=MODEL, messages=messages, tools=tools, tool_choice="auto")
    message = completion.choices[0].message
    assert completion.choices[0].finish_reason == "tool_calls"
    messages.append(message)
    for call in message.tool_calls or []:
        assert call.type == "function"
        told = get_tide(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
    completion = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
    assert completion.choices[0].message.content == "At 14:10."
    assert outputs_in(house.sent[1]) == [("call_1", "Brest: high water at 14:10.")]
    assert len(set(house.threads)) == 1


def test_the_streaming_helpers(house: House, client: OpenAI) -> None:
    house.script(
        says("One ", "two"), says("One ", "two"), calls(("call_1", "get_tide", '{"harbour":"Brest"}')), says("Yes")
    )
    with client.responses.stream(model=MODEL, input="Count") as events:
        texts = [event.delta for event in events if event.type == "response.output_text.delta"]
        assert events.get_final_response().output_text == "".join(texts) == "One two"
    with client.chat.completions.stream(model=MODEL, messages=[{"role": "user", "content": "Count"}]) as chunks:
        assert chunks.get_final_completion().choices[0].message.content == "One two"
    tools: Any = [{"type": "function", **SIGN}]
    with client.responses.stream(model=MODEL, input="Tide in Brest?", tools=tools) as events:
        response = events.get_final_response()
    call: Any = response.output[0]
    answer: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "14:10"}]
    with client.responses.stream(model=MODEL, input=answer, tools=tools, previous_response_id=response.id) as events:
        assert events.get_final_response().output_text == "Yes"
    assert house.threads[2] == house.threads[3]


def test_the_program_of_the_guide(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    """As it stands on the page, but for where this gateway listens and what the scripted account has."""
    (shown,) = read_programs(ROOT / "docs" / "guides" / "codex-backend.md")
    house.script(calls(("call_1", "get_tide", '{"harbour":"Brest"}')), says("At 14:10."))
    program = shown.source.replace(ADDRESS, house.server.url).replace("codex/gpt-6.1-sol", MODEL)
    exec(compile(program, str(shown), "exec"), {})
    assert capsys.readouterr().out == "At 14:10.\n"
    assert outputs_in(house.sent[1]) == [("call_1", "14:10")]
