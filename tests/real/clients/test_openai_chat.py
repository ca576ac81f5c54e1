"""The official SDK on Chat Completions, with its stream accumulators."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import chat, chat_chunks, error, stream

pytestmark = pytest.mark.real

HI: Any = [{"role": "user", "content": "hi"}]
LOOK: Any = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
}


class Number(BaseModel):
    n: int
    word: str


@pytest.fixture
def client(flow: Flow) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def test_create(flow: Flow, client: OpenAI) -> None:
    flow.script(chat("Hello"))
    completion = client.chat.completions.create(model=PLAIN, messages=HI)
    assert completion.choices[0].message.content == "Hello"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage is not None
    assert completion.usage.total_tokens == 15


def test_create_streamed_with_usage(flow: Flow, client: OpenAI) -> None:
    flow.script(chat("Hello"))
    chunks = list(
        client.chat.completions.create(model=PLAIN, messages=HI, stream=True, stream_options={"include_usage": True})
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 15


def test_the_stream_helper_accumulates_everything(flow: Flow, client: OpenAI) -> None:
    calls = [("call_1", "look", '{"at":"this"}'), ("call_2", "look", '{"at":"that"}')]
    flow.script(chat("Let me look.", calls=calls))
    with client.chat.completions.stream(
        model=FULL, messages=HI, tools=[LOOK], stream_options={"include_usage": True}
    ) as helper:
        kinds = [event.type for event in helper]
        final = helper.get_final_completion()
    assert kinds.count("tool_calls.function.arguments.done") == 2
    message = final.choices[0].message
    assert message.content == "Let me look."
    assert [(call.id, call.function.arguments) for call in message.tool_calls or ()] == [
        ("call_1", '{"at":"this"}'),
        ("call_2", '{"at":"that"}'),
    ]
    assert final.choices[0].finish_reason == "tool_calls"
    assert final.usage is not None


@pytest.mark.parametrize("model", [FULL, DEEPSEEK, PLAIN])
def test_parse_and_the_parsing_stream(flow: Flow, client: OpenAI, model: str) -> None:
    flow.script(chat('{"n": 1, "word": "one"}'), chat('{"n": 1, "word": "one"}'))
    parsed = client.chat.completions.parse(model=model, messages=HI, response_format=Number)
    assert parsed.choices[0].message.parsed == Number(n=1, word="one")
    with client.chat.completions.stream(model=model, messages=HI, response_format=Number) as helper:
        for _ in helper:
            pass
        assert helper.get_final_completion().choices[0].message.parsed == Number(n=1, word="one")


def test_parse_raises_on_length_as_it_should(flow: Flow, client: OpenAI) -> None:
    flow.script(chat('{"n": 1', finish="length"))
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(model=PLAIN, messages=HI, response_format=Number)


def test_pydantic_tools_are_parsed(flow: Flow, client: OpenAI) -> None:
    flow.script(chat(calls=[("call_1", "Number", '{"n": 1, "word": "one"}')]))
    parsed = client.chat.completions.parse(model=FULL, messages=HI, tools=[openai.pydantic_function_tool(Number)])
    [call] = parsed.choices[0].message.tool_calls or ()
    assert call.function.parsed_arguments == Number(n=1, word="one")
    assert flow.sent[0]["tools"][0]["function"]["strict"] is True


def test_errors_have_their_own_class(flow: Flow, client: OpenAI) -> None:
    flow.script(error(429, "slow down"))
    with pytest.raises(openai.RateLimitError):
        client.chat.completions.create(model=PLAIN, messages=HI)
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model=PLAIN, messages=[*HI, {"role": "robot", "content": "x"}])
    assert refused.value.param == "messages[1].role"


def test_a_stream_that_fails_raises(flow: Flow, client: OpenAI) -> None:
    flow.script(stream(chat_chunks("Half")[:2], done=False))
    with pytest.raises(openai.APIError, match="finish reason"):
        list(client.chat.completions.create(model=PLAIN, messages=HI, stream=True))


def test_the_async_client_does_all_of_it(flow: Flow) -> None:
    flow.script(chat("Hello"), chat("streamed"), chat("helped", calls=[("call_1", "look", "{}")]))

    async def talk() -> None:
        async with AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
            whole = await client.chat.completions.create(model=PLAIN, messages=HI)
            assert whole.choices[0].message.content == "Hello"
            chunks = await client.chat.completions.create(model=PLAIN, messages=HI, stream=True)
            texts = [chunk.choices[0].delta.content or "" async for chunk in chunks]
            assert "".join(texts) == "streamed"
            async with client.chat.completions.stream(model=FULL, messages=HI, tools=[LOOK]) as helper:
                async for _ in helper:
                    pass
                final = await helper.get_final_completion()
            assert final.choices[0].message.content == "helped"
            assert final.choices[0].finish_reason == "tool_calls"

    asyncio.run(talk())
