"""Microsoft's agent framework: background responses by its continuation tokens, polled and streamed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from agent_framework import Agent, Message
from agent_framework_openai import OpenAIChatClient

from flowing import PLAIN, Flow
from isthmus.testing import Gate, chat_chunks, chat_reply, reply, stream

pytestmark = pytest.mark.real

ASKED = [Message("user", ["Say it slowly."])]


@asynccontextmanager
async def client(flow: Flow) -> AsyncIterator[Any]:
    async with openai.AsyncOpenAI(api_key="any", base_url=f"{flow.server.url}/v1", max_retries=0) as sdk:
        yield OpenAIChatClient(PLAIN, async_client=sdk)


def test_a_background_response_is_polled_by_its_token(flow: Flow) -> None:
    gate = Gate()
    flow.script(reply(chat_reply("Done at last"), after=gate))

    async def scenario() -> tuple[Any, list[Any]]:
        async with client(flow) as asking:
            first = await asking.get_response(ASKED, options={"background": True})
            await gate.reached.waited()
            token, polled = first.continuation_token, []
            while token is not None:
                found = await asking.get_response(ASKED, options={"continuation_token": token})
                polled.append(found)
                token = found.continuation_token
                gate.open()
            return first, polled

    first, polled = asyncio.run(scenario())
    assert first.continuation_token is not None
    assert len(polled) > 1, "it was looked at while it was made"
    assert polled[0].continuation_token == first.continuation_token
    assert polled[-1].text == "Done at last"
    assert len(flow.sent) == 1


def test_a_stream_is_left_and_followed_again_by_its_token(flow: Flow) -> None:
    gate = Gate()
    chunks = chat_chunks("one two three", pieces=3)
    flow.script(stream([*chunks[:2], gate, *chunks[2:]]))

    async def scenario() -> tuple[str, str]:
        token, seen, again = None, "", ""
        async with client(flow) as asking:
            async for update in asking.get_response(ASKED, stream=True, options={"background": True}):
                token = update.continuation_token or token
                seen += update.text
                if seen:
                    break
        gate.open()
        async with client(flow) as asking:
            following = asking.get_response(ASKED, stream=True, options={"continuation_token": token})
            # Its updates repeat the whole text when it is done, to replace what was said piece by piece.
            again = (await following.get_final_response()).text
        return seen, again

    seen, again = asyncio.run(scenario())
    assert seen
    assert again == "one two three", "the token leads to the whole of it"
    assert len(flow.sent) == 1


def test_an_agent_goes_on_where_it_was_left(flow: Flow) -> None:
    gate = Gate()
    flow.script(reply(chat_reply("Done at last"), after=gate))

    async def scenario() -> str:
        async with client(flow) as asking:
            agent = Agent(client=asking, instructions="Be slow.")
            session = agent.create_session()
            answer = await agent.run("Say it.", session=session, options={"background": True})
            gate.open()
            while answer.continuation_token is not None:
                answer = await agent.run(session=session, options={"continuation_token": answer.continuation_token})
            return str(answer.text)

    assert asyncio.run(scenario()) == "Done at last"
    assert len(flow.sent) == 1
