"""pydantic-ai over WebSocket: an agent with a tool, on the default lane and on named ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

from flowing import PLAIN, Flow
from isthmus.testing import chat, error
from socketing import watch_frames

pytestmark = pytest.mark.real

Json = dict[str, Any]


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    """What came over sockets: that nothing went over HTTP in its place."""
    return watch_frames(monkeypatch)


def agent(client: AsyncOpenAI, *, lanes: bool) -> Agent[None, str]:
    profile = OpenAIModelProfile(
        openai_responses_supports_websocket=True, openai_responses_supports_websocket_stream_id=lanes
    )
    model = OpenAIResponsesModel(PLAIN, provider=OpenAIProvider(openai_client=client), profile=profile)
    settings = OpenAIResponsesModelSettings(openai_transport="websocket", openai_store=False)
    made = Agent(model, model_settings=settings)

    @made.tool_plain
    def weather(city: str) -> str:
        return f"sunny in {city}"

    return made


def test_an_agent_uses_its_tool(flow: Flow, frames: list[Json]) -> None:
    flow.script(chat(calls=[("call_1", "weather", {"city": "Oslo"})]), chat("Sunny."), chat("Still sunny."))

    async def scenario() -> list[str]:
        async with AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
            reporter = agent(client, lanes=False)
            async with reporter:
                first = await reporter.run("And the weather?")
                second = await reporter.run("Again?", message_history=first.all_messages())
                return [first.output, second.output]

    assert asyncio.run(scenario()) == ["Sunny.", "Still sunny."]
    assert len(frames) == 3
    assert not any("stream_id" in frame for frame in frames)
    said = [message["content"] for message in flow.sent[2]["messages"]]
    assert [text for text in said if isinstance(text, str)][-3:] == ["sunny in Oslo", "Sunny.", "Again?"]


def test_runs_at_the_same_time_have_a_lane_each(flow: Flow, frames: list[Json]) -> None:
    flow.script(*[chat("ok")] * 4)

    async def scenario() -> list[str]:
        async with AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
            talker = agent(client, lanes=True)
            async with talker:
                return [run.output for run in await asyncio.gather(*[talker.run("hi") for _ in range(4)])]

    assert asyncio.run(scenario()) == ["ok"] * 4
    assert len({frame.get("stream_id") for frame in frames}) > 1


def test_an_error_of_one_run_leaves_the_socket_to_the_next(flow: Flow, frames: list[Json]) -> None:
    flow.script(error(400, "no such thing"), chat("ok"))

    async def scenario() -> str:
        async with AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
            talker = agent(client, lanes=True)
            async with talker:
                with pytest.raises(Exception, match="no such thing"):
                    await talker.run("hi")
                return (await talker.run("hi")).output

    assert asyncio.run(scenario()) == "ok"
    assert len(frames) == 2
