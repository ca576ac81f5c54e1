"""The OpenAI Agents SDK: an agent with two tools, in both APIs, whole and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    ToolSearchTool,
    function_tool,
    tool_namespace,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

from flowing import FULL, PLAIN, Flow
from isthmus.testing import chat

pytestmark = pytest.mark.real

QUIET = RunConfig(tracing_disabled=True)


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@function_tool
def clock(zone: str) -> str:
    """The time in a zone."""
    return f"noon in {zone}"


class Report(BaseModel):
    city: str
    sunny: bool


def agent(client: AsyncOpenAI, api: str, model: str, **options: Any) -> Agent[Any]:
    kind = OpenAIResponsesModel if api == "responses" else OpenAIChatCompletionsModel
    return Agent(
        **{"name": "Reporter", "tools": [weather, clock], **options},
        instructions="Use your tools.",
        model=kind(model=model, openai_client=client),
        model_settings=ModelSettings(temperature=0.2),
    )


@pytest.mark.parametrize("model", [FULL, PLAIN])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_an_agent_uses_two_tools_and_answers(flow: Flow, api: str, streamed: bool, model: str) -> None:
    flow.script(
        chat(calls=[("call_1", "weather", {"city": "Rome"}), ("call_2", "clock", {"zone": "CET"})]),
        chat(calls=[("call_3", "weather", {"city": "Oslo"})]),
        chat("Sunny in both, and it is noon."),
    )
    assert (
        _run(flow, lambda client: agent(client, api, model), "Weather and time?", streamed)
        == "Sunny in both, and it is noon."
    )
    last = flow.sent[2]["messages"]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    assert [message["content"] for message in last if message["role"] == "tool"] == [
        "sunny in Rome",
        "noon in CET",
        "sunny in Oslo",
    ]
    assert last[0]["content"] == "Use your tools."
    assert {tool["function"]["name"] for tool in flow.sent[0]["tools"]} == {"weather", "clock"}
    assert all(sent["temperature"] == 0.2 for sent in flow.sent)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_an_agent_with_an_output_type_gets_it_after_a_tool_call(flow: Flow, api: str, streamed: bool) -> None:
    """A strict schema and tools in one request: where the reference fails."""
    flow.script(chat(calls=[("call_1", "weather", {"city": "Rome"})]), chat('{"city": "Rome", "sunny": true}'))
    answer = _run(flow, lambda client: agent(client, api, PLAIN, output_type=Report), "Weather?", streamed)
    assert answer == Report(city="Rome", sunny=True)


def test_a_conversation_goes_on_by_previous_response_id(flow: Flow) -> None:
    flow.script(chat("First."), chat("Second."))

    async def talk() -> None:
        async with _client(flow) as client:
            reporter = agent(client, "responses", PLAIN)
            first = await Runner.run(reporter, "one", run_config=QUIET)
            second = await Runner.run(reporter, "two", previous_response_id=first.last_response_id, run_config=QUIET)
        assert second.final_output == "Second."

    asyncio.run(talk())
    said = [message["content"] for message in flow.sent[1]["messages"]]
    assert said == ["Use your tools.", "one", "First.", "two"]


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_one_agent_hands_over_to_another(flow: Flow, api: str) -> None:
    flow.script(chat(calls=[("call_1", "transfer_to_expert", "{}")]), chat("I am the expert."))

    def both(client: AsyncOpenAI) -> Agent[Any]:
        expert = agent(client, api, PLAIN, name="Expert", handoff_description="Knows the weather")
        return agent(client, api, PLAIN, handoffs=[expert])

    assert _run(flow, both, "Weather?", False) == "I am the expert."
    assert "transfer_to_expert" in {tool["function"]["name"] for tool in flow.sent[0]["tools"]}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_agent_finds_its_deferred_tools_and_calls_them(flow: Flow, streamed: bool) -> None:
    flow.script(
        chat(calls=[("call_0", "tool_search", {"query": "settle a ticket, send a letter"})]),
        chat(calls=[("call_0", "tickets__close_ticket", {}), ("call_1", "send_mail", {})]),
        chat("Both are done."),
    )
    done: list[str] = []

    @function_tool(defer_loading=True)
    def send_mail() -> str:
        """Send a letter."""
        done.append("send_mail")
        return "sent"

    @function_tool(defer_loading=True)
    def close_ticket() -> str:
        """Settle a ticket."""
        done.append("close_ticket")
        return "closed"

    tickets = tool_namespace(name="tickets", description="Support tickets.", tools=[close_ticket])
    tools = [ToolSearchTool(), send_mail, *tickets]
    answer = _run(flow, lambda client: agent(client, "responses", PLAIN, tools=tools), "Both, please.", streamed)
    assert (answer, sorted(done)) == ("Both are done.", ["close_ticket", "send_mail"])
    assert [tool["function"]["name"] for tool in flow.sent[0]["tools"]] == ["tool_search"]
    answers = [message["content"] for message in flow.sent[2]["messages"] if message["role"] == "tool"]
    assert answers[1:] == ["closed", "sent"]


def _client(flow: Flow) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0)


def _run(flow: Flow, make: Callable[[AsyncOpenAI], Agent[Any]], words: str, streamed: bool) -> Any:
    async def run() -> Any:
        async with _client(flow) as client:
            if not streamed:
                return (await Runner.run(make(client), words, run_config=QUIET)).final_output
            result = Runner.run_streamed(make(client), words, run_config=QUIET)
            kinds = [event.type async for event in result.stream_events()]
            assert "raw_response_event" in kinds
            return result.final_output

    return asyncio.run(run())
