"""The official SDK on the Responses API: what it builds from our bytes is what was said."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, error, stream

pytestmark = pytest.mark.real

LOOK: Any = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    "strict": False,
}


class Number(BaseModel):
    n: int
    word: str


@pytest.fixture
def client(flow: Flow) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


# ── create ─────────────────────────────────────────────────────────────────────────────────────────────


def test_create(flow: Flow, client: OpenAI) -> None:
    flow.script(chat("Hello", reasoning="Hm"))
    response = client.responses.create(model=PLAIN, input="hi", instructions="Be kind.", temperature=0.5)
    assert (response.status, response.output_text) == ("completed", "Hello")
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert response.usage is not None
    assert response.usage.total_tokens == 15
    assert (response.temperature, response.instructions) == (0.5, "Be kind.")
    assert flow.sent[0]["messages"][0] == {"role": "system", "content": "Be kind."}


def test_create_streamed(flow: Flow, client: OpenAI) -> None:
    flow.script(chat("Hello", pieces=3))
    events = list(client.responses.create(model=PLAIN, input="hi", stream=True))
    assert [event.type for event in events][:2] == ["response.created", "response.in_progress"]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Hello"
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == "Hello"


def test_a_tool_round_trip_by_hand(flow: Flow, client: OpenAI) -> None:
    flow.script(chat(calls=[("call_1", "look", '{"at":"it"}')]), chat("A cat."))
    first = client.responses.create(model=FULL, input="Look", tools=[LOOK])
    [call] = first.output
    assert call.type == "function_call"
    history: Any = [
        {"role": "user", "content": "Look"},
        call.model_dump(exclude_none=True),
        {"type": "function_call_output", "call_id": call.call_id, "output": "a cat"},
    ]
    second = client.responses.create(model=FULL, input=history, tools=[LOOK])
    assert second.output_text == "A cat."
    assert [message["role"] for message in flow.sent[1]["messages"]] == ["user", "assistant", "tool"]


def test_a_chain_by_previous_response_id(flow: Flow, client: OpenAI) -> None:
    flow.script(chat("Two."), chat("Three."))
    first = client.responses.create(model=PLAIN, input="1+1?")
    second = client.responses.create(model=PLAIN, input="+1?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert [message["content"] for message in flow.sent[1]["messages"]] == ["1+1?", "Two.", "+1?"]


def test_all_output_sent_back_as_input_is_understood(flow: Flow, client: OpenAI) -> None:
    """What agents do that keep their own history: reasoning, message and calls go back as they came."""
    flow.script(chat("Let me look.", reasoning="I must.", calls=[("call_1", "look", "{}")]), chat("A cat."))
    first = client.responses.create(
        model=DEEPSEEK,
        input="Look",
        tools=[LOOK],
        store=False,
        reasoning={"effort": "high"},
        include=["reasoning.encrypted_content"],
    )
    items: Any = [{"role": "user", "content": "Look"}]
    items += [item.model_dump(exclude_none=True) for item in first.output]
    items.append({"type": "function_call_output", "call_id": "call_1", "output": "a cat"})
    client.responses.create(model=DEEPSEEK, input=items, tools=[LOOK], store=False, reasoning={"effort": "high"})
    assistant = flow.sent[1]["messages"][1]
    assert assistant["reasoning_content"] == "I must."
    assert assistant["tool_calls"][0]["id"] == "call_1"


# ── the stream helper and its accumulators ─────────────────────────────────────────────────────────────


def test_the_stream_helper_accumulates_text(flow: Flow, client: OpenAI) -> None:
    flow.script(chat("Hello there", reasoning="Hm", pieces=4))
    with client.responses.stream(model=PLAIN, input="hi") as helper:
        snapshots = [event.snapshot for event in helper if event.type == "response.output_text.delta"]
        final = helper.get_final_response()
    assert snapshots[-1] == "Hello there"
    assert [len(snapshot) for snapshot in snapshots] == sorted(len(snapshot) for snapshot in snapshots)
    assert final.output_text == "Hello there"


def test_the_stream_helper_accumulates_parallel_calls(flow: Flow, client: OpenAI) -> None:
    calls = [("call_1", "look", '{"at":"this"}'), ("call_2", "look", '{"at":"that"}')]
    flow.script(chat(calls=calls))
    with client.responses.stream(model=PLAIN, input="hi", tools=[LOOK]) as helper:
        snapshots = {
            event.item_id: event.snapshot for event in helper if event.type == "response.function_call_arguments.delta"
        }
        final = helper.get_final_response()
    assert sorted(snapshots.values()) == ['{"at":"that"}', '{"at":"this"}']
    assert [(item.type, getattr(item, "call_id", "")) for item in final.output] == [
        ("function_call", "call_1"),
        ("function_call", "call_2"),
    ]


@pytest.mark.parametrize("model", [FULL, DEEPSEEK, PLAIN])
def test_the_stream_helper_parses_structured_output(flow: Flow, client: OpenAI, model: str) -> None:
    flow.script(chat('{"n": 1, "word": "one"}'))
    with client.responses.stream(model=model, input="A number", text_format=Number) as helper:
        for _ in helper:
            pass
        final = helper.get_final_response()
    assert final.output_parsed == Number(n=1, word="one")


@pytest.mark.parametrize("model", [FULL, DEEPSEEK, PLAIN])
def test_parse_gives_the_pydantic_model(flow: Flow, client: OpenAI, model: str) -> None:
    flow.script(chat('{"n": 1, "word": "one"}'))
    response = client.responses.parse(model=model, input="A number", text_format=Number)
    assert response.output_parsed == Number(n=1, word="one")


def test_parse_is_repaired_behind_its_back(flow: Flow, client: OpenAI) -> None:
    flow.script(chat("It is one."), chat('```json\n{"n": 1, "word": "one"}\n```'))
    response = client.responses.parse(model=PLAIN, input="A number", text_format=Number)
    assert response.output_parsed == Number(n=1, word="one")
    assert len(flow.sent) == 2


def test_parse_reads_arguments_of_pydantic_tools(flow: Flow, client: OpenAI) -> None:
    flow.script(chat(calls=[("call_1", "Number", '{"n": 1, "word": "one"}')]))
    tool = openai.pydantic_function_tool(Number)
    flat: Any = {"type": "function", **tool["function"]}
    response = client.responses.parse(model=FULL, input="A number", tools=[flat])
    [call] = response.output
    assert call.type == "function_call"
    assert call.parsed_arguments == {"n": 1, "word": "one"}


# ── stored responses ───────────────────────────────────────────────────────────────────────────────────


def test_retrieve_list_and_delete(flow: Flow, client: OpenAI) -> None:
    flow.script(chat("Hello"))
    messages: Any = [{"role": "user", "content": f"line {number}"} for number in range(25)]
    response = client.responses.create(model=PLAIN, input=messages)
    assert client.responses.retrieve(response.id).output_text == "Hello"
    listed = list(client.responses.input_items.list(response.id, order="asc", limit=10))
    assert [_words(item) for item in listed] == [f"line {number}" for number in range(25)]
    client.responses.delete(response.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


def test_background_then_poll_then_cancel(flow: Flow, client: OpenAI) -> None:
    done, held = Gate(), Gate()
    flow.script(stream([done, *chat_chunks("Done")]), stream([*chat_chunks("Half")[:2], held]))
    first = client.responses.create(model=PLAIN, input="slow", background=True)
    assert first.status == "queued"
    done.open()
    events = list(client.responses.retrieve(first.id, stream=True))
    assert events[-1].type == "response.completed"
    assert client.responses.retrieve(first.id).output_text == "Done"
    second = client.responses.create(model=PLAIN, input="slower", background=True)
    held.reached.wait()
    assert client.responses.cancel(second.id).status == "cancelled"
    assert client.responses.retrieve(second.id).status == "cancelled"


def test_a_stream_is_read_on_after_it_was_left(flow: Flow, client: OpenAI) -> None:
    gate = Gate()
    chunks = chat_chunks("one two three", pieces=3)
    flow.script(stream([*chunks[:2], gate, *chunks[2:]]))
    seen: list[Any] = []
    with client.responses.create(model=PLAIN, input="x", background=True, stream=True) as events:
        for event in events:
            seen.append(event)
            if event.type == "response.output_text.delta":
                break
    gate.open()
    rest = client.responses.retrieve(seen[0].response.id, stream=True, starting_after=seen[-1].sequence_number)
    seen += list(rest)
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    assert "".join(e.delta for e in seen if e.type == "response.output_text.delta") == "one two three"


def test_input_tokens_and_models(flow: Flow, client: OpenAI) -> None:
    counted = client.responses.input_tokens.count(model=PLAIN, input="hello " * 100)
    assert 100 < counted.input_tokens < 400, "about a hundred; the estimate errs high"
    ids = [model.id for model in client.models.list()]
    assert DEEPSEEK in ids
    assert client.models.retrieve("gpt-alias").id == "gpt-alias"
    assert flow.sent == []


# ── errors ─────────────────────────────────────────────────────────────────────────────────────────────

ERRORS: dict[str, tuple[Any, type[openai.APIStatusError], str]] = {
    "429": (error(429, "slow down", retry_after=3), openai.RateLimitError, "rate_limit_exceeded"),
    "400": (error(400, "bad"), openai.BadRequestError, "invalid_prompt"),
    "404": (error(404, "no model"), openai.NotFoundError, "model_not_found"),
    "500": (error(500, "boom"), openai.InternalServerError, "server_error"),
    "401": (error(401, "key"), openai.PermissionDeniedError, "upstream_unauthorized"),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("case", ERRORS)
def test_errors_have_their_own_class(flow: Flow, client: OpenAI, case: str, streamed: bool) -> None:
    step, kind, code = ERRORS[case]
    flow.script(step)
    with pytest.raises(kind) as raised:
        client.responses.create(model=PLAIN, input="hi", stream=streamed)
    assert raised.value.code == code
    if case == "429":
        assert raised.value.response.headers["retry-after"] == "3"


def test_a_refused_request_names_its_param(flow: Flow, client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(model=PLAIN, input="hi", temperature="hot")  # type: ignore[call-overload]
    assert raised.value.param == "temperature"
    assert flow.sent == []


def test_a_stream_that_fails_tells_the_helper(flow: Flow, client: OpenAI) -> None:
    flow.script(stream(chat_chunks("Half")[:2], done=False))
    with client.responses.stream(model=PLAIN, input="hi") as helper:
        events = list(helper)
    assert events[-1].type == "response.failed"
    assert events[-1].response.error is not None


def test_the_sdk_retries_by_itself_on_429(flow: Flow) -> None:
    flow.script(error(429, "slow down", retry_after=0), chat("Hello"))
    with OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=1) as client:
        assert client.responses.create(model=PLAIN, input="hi").output_text == "Hello"
    assert len(flow.sent) == 2


# ── async ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_async_client_does_all_of_it(flow: Flow) -> None:
    flow.script(
        chat("Hello"),
        chat("streamed"),
        chat("helped", reasoning="Hm"),
        chat('{"n": 1, "word": "one"}'),
        chat(calls=[("call_1", "look", "{}")]),
    )

    async def talk() -> None:
        async with AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
            first = await client.responses.create(model=PLAIN, input="hi")
            assert first.output_text == "Hello"
            events = await client.responses.create(model=PLAIN, input="hi", stream=True)
            kinds = [event.type async for event in events]
            assert kinds[-1] == "response.completed"
            async with client.responses.stream(model=PLAIN, input="hi") as helper:
                assert [event.snapshot async for event in helper if event.type == "response.output_text.delta"]
                assert (await helper.get_final_response()).output_text == "helped"
            parsed = await client.responses.parse(model=PLAIN, input="A number", text_format=Number)
            assert parsed.output_parsed == Number(n=1, word="one")
            called = await client.responses.create(model=PLAIN, input="x", tools=[LOOK])
            assert called.output[0].type == "function_call"
            assert (await client.responses.retrieve(first.id)).output_text == "Hello"
            items = [item async for item in client.responses.input_items.list(first.id)]
            assert len(items) == 1
            with pytest.raises(openai.BadRequestError):  # as at OpenAI: only what is made in the background
                await client.responses.cancel(first.id)
            await client.responses.delete(first.id)
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(first.id)

    asyncio.run(talk())


def test_leaving_an_async_stream_stops_the_upstream(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([*chat_chunks("Half")[:2], gate]))

    async def talk() -> None:
        async with AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
            events = await client.responses.create(model=PLAIN, input="hi", stream=True)
            async for event in events:
                if event.type == "response.output_text.delta":
                    break
            await events.close()

    asyncio.run(talk())
    flow.wait_sent().closed.wait()


def _words(item: Any) -> str:
    content = item.content
    return content if isinstance(content, str) else "".join(part.text for part in content)
