"""The demo model as a client meets it: through the OpenAI SDK, over a socket."""

from __future__ import annotations

import json

import openai
import pydantic
import pytest

from demo_requests import TIME, WEATHER, request
from demo_running import posted, run, user
from isthmus.demo import DemoServer


def test_text_comes_whole() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        reply = await client.chat.completions.create(model="demo", messages=user("count to 3"))
        assert reply.choices[0].message.content == "1, 2, 3."
        assert reply.choices[0].finish_reason == "stop"
        assert reply.usage is not None
        assert reply.usage.total_tokens > 0

    run(test)


def test_the_stream_is_the_whole_answer_in_pieces() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        messages = user("hello")
        reply = await client.chat.completions.create(model="demo-thinking", messages=messages)
        stream = await client.chat.completions.create(
            model="demo-thinking", messages=messages, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        assert deltas[0].role == "assistant"
        assert "".join(delta.content or "" for delta in deltas) == reply.choices[0].message.content
        thoughts = [getattr(delta, "reasoning_content", "") for delta in deltas]
        assert "".join(thoughts) == reply.choices[0].message.reasoning_content  # type: ignore[attr-defined]
        assert chunks[-2].choices[0].finish_reason == "stop"
        assert (chunks[-1].choices, chunks[-1].usage) == ([], reply.usage)
        assert {chunk.id for chunk in chunks} == {reply.id}

    run(test)


def test_usage_is_streamed_only_on_request_and_done_ends_it() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        async with posted(demo, request("say hi", stream=True)) as reply:
            body = await reply.text()
        assert reply.content_type == "text/event-stream"
        assert body.endswith("data: [DONE]\n\n")
        assert '"usage"' not in body

    run(test)


def test_a_long_answer_streams_to_its_end() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        stream = await client.chat.completions.create(model="demo", messages=user("lorem 5000"), stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        assert len(text.split()) == 5000

    run(test)


def test_tools_are_called_in_parallel_and_their_results_reported() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        messages = user("weather in Paris and London")
        async with client.chat.completions.stream(model="demo", messages=messages, tools=[WEATHER, TIME]) as stream:  # type: ignore[list-item]
            completion = await stream.get_final_completion()
        message = completion.choices[0].message
        made = [call.function for call in message.tool_calls or ()]
        assert [(call.name, json.loads(call.arguments)["city"]) for call in made] == [
            ("get_weather", "Paris"),
            ("get_weather", "London"),
        ]
        assert completion.choices[0].finish_reason == "tool_calls"
        results = [{"role": "tool", "tool_call_id": call.id, "content": "rain"} for call in message.tool_calls or ()]
        whole = await client.chat.completions.create(
            model="demo",
            messages=[*messages, message.to_dict(), *results],  # type: ignore[list-item]
            tools=[WEATHER, TIME],  # type: ignore[list-item]
        )
        assert whole.choices[0].message.content == "Done.\nget_weather answered: rain\nget_weather answered: rain"

    run(test)


class Person(pydantic.BaseModel):
    name: str
    age: int
    friends: list[str]


def test_a_pydantic_model_is_filled() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        reply = await client.chat.completions.parse(
            model="demo", messages=user("Ada is 36; her friends are Bob and Eve"), response_format=Person
        )
        assert reply.choices[0].message.parsed == Person(name="Ada", age=36, friends=["Bob", "Eve"])

    run(test)


def test_models_are_listed() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        assert [model.id async for model in client.models.list()] == ["demo", "demo-paced", "demo-thinking"]
        assert (await client.models.retrieve("demo")).owned_by == "isthmus"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("other")

    run(test)


def test_a_large_request_is_taken() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        messages = [*user("x " * 2_000_000), {"role": "assistant", "content": "ok"}, *user("say hi")]
        reply = await client.chat.completions.create(model="demo", messages=messages)
        assert reply.choices[0].message.content == "hi"
        assert reply.usage is not None
        assert reply.usage.prompt_tokens > 1_000_000
        assert reply.usage.prompt_tokens_details is not None
        assert reply.usage.prompt_tokens_details.cached_tokens == 1_000_004

    run(test)
