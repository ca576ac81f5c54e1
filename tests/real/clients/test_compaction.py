"""Compaction as real clients ask for it: the openai SDK, and the sessions of both agents SDKs."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession
from agents.memory import OpenAIResponsesCompactionSession

from flowing import PLAIN, Flow
from isthmus.testing import chat
from node_scripts import run_node

pytestmark = pytest.mark.real

NOTES = "The bridge is red and half built."
ALIAS = "gpt-alias"
"""Both sessions compact for names of OpenAI's only; the gateway leads it to another vendor."""


def texts(body: dict[str, Any]) -> str:
    return str([message["content"] for message in body["messages"]])


def test_the_sdk_compacts_and_goes_on_from_the_window(flow: Flow) -> None:
    flow.script(chat(NOTES), chat("Going on."))
    with openai.OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
        window = client.responses.compact(model=PLAIN, input=[{"role": "user", "content": "Build a red bridge."}])
        assert [item.type for item in window.output] == ["message", "compaction"]
        assert window.usage.total_tokens == 15
        again: Any = [item.to_dict(warnings=False) for item in window.output]
        response = client.responses.create(model=PLAIN, input=[*again, {"role": "user", "content": "Go on."}])
    assert response.output_text == "Going on."
    assert NOTES in texts(flow.sent[1])


def test_a_session_of_the_agents_sdk_is_compacted_after_a_turn(flow: Flow) -> None:
    flow.script(chat("Half of it stands."), chat(NOTES), chat("Done."))

    turns = iter([True, False])

    async def scenario() -> tuple[list[str], str]:
        async with openai.AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
            session = OpenAIResponsesCompactionSession(
                "s", SQLiteSession("s"), client=client, model=ALIAS, compaction_mode="input",
                should_trigger_compaction=lambda _: next(turns),
            )  # fmt: skip
            builder = Agent(name="Builder", model=OpenAIResponsesModel(model=ALIAS, openai_client=client))
            quiet = RunConfig(tracing_disabled=True)
            await Runner.run(builder, "Build a red bridge.", session=session, run_config=quiet)
            kept: Any = await session.get_items()
            second = await Runner.run(builder, "Go on.", session=session, run_config=quiet)
            return [item.get("type", "message") for item in kept], str(second.final_output)

    kept, answer = asyncio.run(scenario())
    assert (kept, answer) == (["message", "compaction"], "Done.")
    assert NOTES in texts(flow.sent[2])
    assert "Half of it stands." not in texts(flow.sent[2])


def test_a_session_of_the_javascript_sdk_is_compacted_after_a_turn(flow: Flow) -> None:
    flow.script(chat("Half of it stands."), chat(NOTES), chat("Done."))
    told = run_node("compaction.mjs", flow.server.url, ALIAS)
    assert told["answers"] == ["Half of it stands.", "Done."]
    assert told["kept"] == ["message", "compaction"]
    assert NOTES in texts(flow.sent[2])
    assert "Half of it stands." not in texts(flow.sent[2])
