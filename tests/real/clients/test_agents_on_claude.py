"""The OpenAI Agents SDK on Claude: twenty turns of tools with thinking, and a server that forgives nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents import Agent, ModelSettings, OpenAIResponsesModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI
from openai.types.shared import Reasoning

from flowing_providers import provider_flow
from speaking_messages import called, claude, said, thought
from strict_anthropic import strictly

pytestmark = pytest.mark.real

TURNS = 20
QUIET = RunConfig(tracing_disabled=True)


@pytest.mark.parametrize("kept", ["by the client", "by the gateway"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-opus-4-6", "claude-haiku-4-5"])
async def test_twenty_turns_of_tools_with_thinking_meet_no_refusal(
    tmp_path: Path, model: str, streamed: bool, kept: str
) -> None:
    seen: list[int] = []

    @function_tool
    def look(n: int) -> str:
        """Looks."""
        seen.append(n)
        return f"saw {n}"

    turns = [claude(thought(f"Turn {n}"), called(f"toolu_{n}", "look", n=n)) for n in range(TURNS)]
    with provider_flow(tmp_path, {"anthropic": ""}) as flow:
        flow.script(*(strictly(step) for step in (*turns, claude(thought("So."), said("Found.")))))
        stateless = kept == "by the client"
        async with AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any") as client:
            agent = Agent(
                name="Finder",
                instructions="Find it.",
                tools=[look],
                model=OpenAIResponsesModel(model=f"anthropic/{model}", openai_client=client),
                model_settings=ModelSettings(
                    reasoning=Reasoning(effort="high"),
                    store=not stateless,
                    response_include=["reasoning.encrypted_content"] if stateless else [],
                ),
            )
            if streamed:
                run = Runner.run_streamed(agent, "Go on.", max_turns=30, run_config=QUIET)
                async for _ in run.stream_events():
                    pass
                output = run.final_output
            else:
                output = (await Runner.run(agent, "Go on.", max_turns=30, run_config=QUIET)).final_output
        assert output == "Found."
        assert seen == list(range(TURNS))
        sent = [block for message in flow.sent[-1]["messages"] for block in message["content"]]
        thoughts = [block["thinking"] for block in sent if block["type"] == "thinking"]
        assert thoughts == [f"Turn {n}" for n in range(TURNS)]
