"""Conversations with the clients that know them: the official SDKs, both agents SDKs, and the AI SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from agents import Agent, OpenAIConversationsSession, OpenAIResponsesModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI, OpenAI

from flowing import PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, stream
from node_scripts import run_node

pytestmark = pytest.mark.real

QUIET = RunConfig(tracing_disabled=True)


@pytest.fixture
def client(flow: Flow) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def sent(flow: Flow, index: int = -1) -> list[tuple[str, Any]]:
    return [(message["role"], message.get("content")) for message in flow.sent[index]["messages"]]


# ── openai for Python ──────────────────────────────────────────────────────────────────────────────────


def test_every_endpoint(flow: Flow, client: OpenAI) -> None:
    made = client.conversations.create(
        items=[{"type": "message", "role": "user", "content": "one"}], metadata={"topic": "demo"}
    )
    assert (made.object, made.metadata) == ("conversation", {"topic": "demo"})
    assert client.conversations.retrieve(made.id) == made
    assert client.conversations.update(made.id, metadata={"a": "b"}).metadata == {"a": "b"}
    added = client.conversations.items.create(
        made.id,
        items=[{"type": "message", "role": "user", "content": f"{number}"} for number in range(20)],
        include=["reasoning.encrypted_content"],
    )
    assert len(added.data) == 20
    assert (added.first_id, added.last_id, added.has_more) == (added.data[0].id, added.data[-1].id, False)
    listed: list[Any] = list(client.conversations.items.list(made.id, order="asc", limit=6))
    assert [item.content[0].text for item in listed] == ["one", *(str(number) for number in range(20))]
    newest: Any = client.conversations.items.list(made.id, limit=1).data[0]
    assert newest.content[0].text == "19"
    assert client.conversations.items.retrieve(newest.id, conversation_id=made.id) == newest
    assert client.conversations.items.delete(newest.id, conversation_id=made.id).id == made.id
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.retrieve(newest.id, conversation_id=made.id)
    assert client.conversations.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError) as gone:
        client.conversations.retrieve(made.id)
    assert gone.value.code == "conversation_not_found"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_turns_keep_their_memory(flow: Flow, client: OpenAI, streamed: bool) -> None:
    id = client.conversations.create().id
    flow.script(chat("Hello Ann."), chat("Ann."))
    for words in ("I am Ann.", "Who am I?"):
        if streamed:
            with client.responses.stream(model=PLAIN, input=words, conversation=id) as events:
                response: Any = events.get_final_response()
        else:
            response = client.responses.create(model=PLAIN, input=words, conversation={"id": id})
        assert response.conversation.id == id
    assert sent(flow) == [("user", "I am Ann."), ("assistant", "Hello Ann."), ("user", "Who am I?")]
    again: Any = [item.to_dict() for item in client.conversations.items.list(id, order="asc")]
    flow.script(chat("ok"))
    client.responses.create(model=PLAIN, input=[*again, {"role": "user", "content": "on"}])
    assert sent(flow) == [
        *[("user", "I am Ann."), ("assistant", "Hello Ann."), ("user", "Who am I?")],
        *[("assistant", "Ann."), ("user", "on")],
    ]


def test_a_second_turn_is_a_bad_request_which_the_sdk_does_not_repeat(flow: Flow) -> None:
    gate = Gate()
    with OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=2) as client:
        id = client.conversations.create().id
        flow.script(stream([gate, *chat_chunks("first")]))
        with client.responses.create(model=PLAIN, input="one", conversation=id, stream=True) as events:
            gate.reached.wait()
            with pytest.raises(openai.BadRequestError) as locked:
                client.responses.create(model=PLAIN, input="two", conversation=id)
            assert (locked.value.code, locked.value.param) == ("conversation_locked", "conversation")
            gate.open()
            assert [event.type for event in events][-1] == "response.completed"


def test_over_a_websocket(flow: Flow, client: OpenAI) -> None:
    id = client.conversations.create().id
    flow.script(chat("Hello Ann."), chat("Ann."))
    with client.responses.connect() as connection:
        for words in ("I am Ann.", "Who am I?"):
            connection.response.create(model=PLAIN, input=words, conversation=id)
            for event in connection:
                if event.type == "response.completed":
                    break
    assert sent(flow) == [("user", "I am Ann."), ("assistant", "Hello Ann."), ("user", "Who am I?")]


# ── the agents SDK for Python ──────────────────────────────────────────────────────────────────────────


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def with_agent(flow: Flow, talk: Any) -> Any:
    async def main() -> Any:
        async with AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
            model = OpenAIResponsesModel(model=PLAIN, openai_client=client)
            return await talk(client, Agent(name="Reporter", model=model, tools=[weather]))

    return asyncio.run(main())


def test_a_session_of_the_agents_sdk_keeps_its_memory(flow: Flow) -> None:
    flow.script(chat(calls=[("call_1", "weather", {"city": "Rome"})]), chat("Sunny."), chat("Rome."), chat("Again."))

    async def talk(client: AsyncOpenAI, agent: Agent[Any]) -> list[Any]:
        session = OpenAIConversationsSession(openai_client=client)
        first = await Runner.run(agent, "Weather in Rome?", session=session, run_config=QUIET)
        assert first.final_output == "Sunny."
        second = await Runner.run(agent, "Which city was it?", session=session, run_config=QUIET)
        assert second.final_output == "Rome."
        kept: list[Any] = await session.get_items()
        popped: Any = await session.pop_item()
        assert popped["content"][0]["text"] == "Rome."
        await Runner.run(agent, "Once more?", session=session, run_config=QUIET)
        await session.clear_session()
        assert await session.get_items() == []
        return kept

    kept = with_agent(flow, talk)
    assert [item["type"] for item in kept] == [
        *("message", "function_call", "function_call_output", "message"),
        *("message", "message"),
    ]
    assert [role for role, _ in sent(flow, 2)] == ["user", "assistant", "tool", "assistant", "user"]
    assert sent(flow, 2)[2] == ("tool", "sunny in Rome")


def test_an_agent_speaks_in_a_conversation_by_its_id(flow: Flow) -> None:
    flow.script(chat(calls=[("call_1", "weather", {"city": "Rome"})]), chat("Sunny."), chat("Rome."))

    async def talk(client: AsyncOpenAI, agent: Agent[Any]) -> None:
        id = (await client.conversations.create()).id
        for words, answer in (("Weather in Rome?", "Sunny."), ("Which city was it?", "Rome.")):
            result = await Runner.run(agent, words, conversation_id=id, run_config=QUIET)
            assert result.final_output == answer

    with_agent(flow, talk)
    assert [role for role, _ in sent(flow)] == ["user", "assistant", "tool", "assistant", "user"]


# ── JavaScript ─────────────────────────────────────────────────────────────────────────────────────────


def test_every_endpoint_from_node(flow: Flow) -> None:
    flow.script(chat("Hello Ann."), chat("Ann."))
    told = run_node("conversations.mjs", flow.server.url, PLAIN, "openai")
    assert told["listed"] == ["one", *(str(number) for number in range(20))]
    assert told["metadata"] == {"a": "b"}
    assert told["newest"] == "19"
    assert told["deleted"] is True
    assert told["gone"] == [404, 404]
    assert told["echo"] == told["id"]
    assert sent(flow) == [("user", "I am Ann."), ("assistant", "Hello Ann."), ("user", "Who am I?")]


def test_a_session_of_the_agents_sdk_for_javascript_keeps_its_memory(flow: Flow) -> None:
    flow.script(chat("Hello Ann."), chat("Ann."))
    told = run_node("conversations.mjs", flow.server.url, PLAIN, "agents")
    assert told["answers"] == ["Hello Ann.", "Ann."]
    assert told["kept"] == ["message"] * 4
    assert sent(flow) == [("user", "I am Ann."), ("assistant", "Hello Ann."), ("user", "Who am I?")]


@pytest.mark.parametrize("mode", ["ai", "ai-streamed"])
def test_the_ai_sdk_keeps_its_memory_in_a_conversation(flow: Flow, mode: str) -> None:
    flow.script(chat(calls=[("call_1", "weather", {"city": "Rome"})]), chat("Sunny."), chat("Rome."))
    told = run_node("conversations.mjs", flow.server.url, PLAIN, mode)
    assert told["answers"] == ["Sunny.", "Rome."]
    # With the output of a tool it sends the prompt once more, and so that is said twice in the conversation.
    assert [role for role, _ in sent(flow)] == ["user", "assistant", "tool", "user", "assistant", "user"]
    assert ("tool", "sunny in Rome") in sent(flow)
    assert sent(flow)[-2:] == [("assistant", "Sunny."), ("user", "Which city was it?")]
    assert sorted(told["kept"]) == ["function_call", "function_call_output", *["message"] * 5]
