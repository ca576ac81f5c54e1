"""Real clients over WebSocket: the openai SDKs, and the sessions of both agents SDKs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from agents import Agent, ModelSettings, function_tool
from agents.responses_websocket_session import responses_websocket_session

from flowing import PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, error, stream
from node_scripts import run_node
from socketing import watch_frames

pytestmark = pytest.mark.real

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    """What came over sockets: that nothing went over HTTP in its place."""
    return watch_frames(monkeypatch)


def texts(body: Json) -> list[Any]:
    return [message["content"] for message in body["messages"]]


# ── openai ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def client(flow: Flow) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def finish(connection: Any) -> Any:
    for event in connection:
        assert event.type != "error", event
        if event.type == "response.completed":
            return event.response
    raise AssertionError("the socket was closed")


def test_the_sdk_continues_what_is_not_stored(flow: Flow, client: openai.OpenAI) -> None:
    flow.script(chat("Hello Alice."), chat("Alice."))
    with client.responses.connect() as connection:
        connection.response.create(model=PLAIN, input="My name is Alice.", store=False)
        first = finish(connection)
        connection.response.create(model=PLAIN, input="What is my name?", store=False, previous_response_id=first.id)
        assert finish(connection).output_text == "Alice."
    assert texts(flow.sent[1]) == ["My name is Alice.", "Hello Alice.", "What is my name?"]


def test_the_sdk_reads_an_error_and_goes_on(flow: Flow, client: openai.OpenAI) -> None:
    flow.script(error(429, "slow down", retry_after=7), chat("ok"))
    with client.responses.connect() as connection:
        for body, code in (
            ({"input": "x", "previous_response_id": "resp_nobody"}, "previous_response_not_found"),
            ({"input": "x"}, "rate_limit_exceeded"),
        ):
            connection.response.create(model=PLAIN, store=False, **body)  # type: ignore[arg-type]
            told: Any = connection.recv()
            assert (told.type, told.error.code) == ("error", code)
        connection.response.create(model=PLAIN, input="hi", store=False)
        assert finish(connection).output_text == "ok"


def test_the_sdk_runs_lanes_at_the_same_time(flow: Flow, client: openai.OpenAI) -> None:
    gate = Gate()
    first, *rest = chat_chunks("the slow one")
    flow.script(stream([first, gate, *rest]))
    with client.responses.connect() as connection:
        connection.response.create(model=PLAIN, input="slow", store=False, stream_id="slow")
        flow.wait_sent(1)
        flow.script(chat("the quick one"))
        connection.response.create(model=PLAIN, input="quick", store=False, stream_id="quick")
        ends: list[tuple[str, str]] = []
        for event in connection:
            if event.type == "response.completed":
                told: Any = event
                ends.append((told.stream_id, told.response.output_text))
                gate.open()
            if len(ends) == 2:
                break
    assert ends == [("quick", "the quick one"), ("slow", "the slow one")]


def test_the_async_sdk_prewarms(flow: Flow) -> None:
    flow.script(chat("Hello."))

    async def scenario() -> str:
        async with (
            openai.AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client,
            client.responses.connect() as connection,
        ):
            ids: list[str] = []
            for body in ({"input": "hi", "generate": False}, {"input": []}):
                more: Any = {"previous_response_id": ids[-1]} if ids else {}
                await connection.response.create(model=PLAIN, store=False, **body, **more)  # type: ignore[arg-type]
                async for event in connection:
                    if event.type == "response.completed":
                        ids.append(event.response.id)
                        last = event.response.output_text
                        break
            return last

    assert asyncio.run(scenario()) == "Hello."
    assert texts(flow.sent[0]) == ["hi"]


def test_the_sdk_steers(flow: Flow, client: openai.OpenAI) -> None:
    gate = Gate()
    role, first, *rest = chat_chunks("Bonjour.")
    flow.script(stream([role, first, gate, *rest]), chat("Hello."))
    types: list[str] = []
    ends: list[Any] = []
    target = ""
    with client.responses.connect() as connection:
        connection.response.create(model=PLAIN, input="hi", store=False)
        for event in connection:
            types.append(event.type)
            told: Any = event
            if event.type == "response.output_text.delta" and not ends and "response.steer.accepted" not in types:
                connection.response.steer(input="In English!", previous_response_id=target)
            if event.type == "response.created":
                target = told.response.id
            if event.type == "response.steer.accepted":
                gate.open()
            if event.type == "response.completed":
                ends.append(told.response)
            if len(ends) == 2:
                break
    assert [end.output_text for end in ends] == ["Bonjour.", "Hello."]
    assert ends[1].previous_response_id == ends[0].id
    assert texts(flow.sent[1])[-1] == "In English!"


# ── agents ─────────────────────────────────────────────────────────────────────────────────────────────


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def test_a_session_of_the_agents_sdk_uses_its_tools(flow: Flow, frames: list[Json]) -> None:
    flow.script(chat(calls=[("call_1", "weather", {"city": "Oslo"})]), chat("Sunny."), chat("Still sunny."))
    reporter = Agent(name="Reporter", model=PLAIN, tools=[weather], model_settings=ModelSettings(store=False))

    async def scenario() -> list[str]:
        async with responses_websocket_session(
            api_key="any", base_url=f"{flow.server.url}/v1", unknown_prefix_mode="model_id"
        ) as session:
            first = await session.run(reporter, "And the weather?")
            again: Any = [*first.to_input_list(), {"role": "user", "content": "Again?"}]
            streamed = session.run_streamed(reporter, again)
            async for _ in streamed.stream_events():
                pass
            return [str(first.final_output), str(streamed.final_output)]

    assert asyncio.run(scenario()) == ["Sunny.", "Still sunny."]
    assert len(frames) == 3
    assert "sunny in Oslo" in texts(flow.sent[1])


# ── JavaScript ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_javascript_sdk_continues_and_survives_an_error(flow: Flow) -> None:
    flow.script(chat("Hello Alice."), chat("Alice."), chat("Anew."))
    told = run_node("sockets.mjs", flow.server.url, PLAIN, "sdk")
    assert told["texts"] == ["Hello Alice.", "Alice.", "Anew."]
    assert told["refused"] == "previous_response_not_found"
    assert texts(flow.sent[1]) == ["My name is Alice.", "Hello Alice.", "What is my name?"]


def test_a_session_of_the_javascript_agents_sdk_uses_its_tools(flow: Flow, frames: list[Json]) -> None:
    flow.script(chat(calls=[("call_1", "weather", {"city": "Oslo"})]), chat("Sunny."), chat("Still sunny."))
    told = run_node("sockets.mjs", flow.server.url, PLAIN, "agents")
    assert told["texts"] == ["Sunny.", "Still sunny."]
    assert "tool_call_output_item" in told["calls"]
    assert len(frames) == 3
