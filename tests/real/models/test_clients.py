"""The OpenAI SDK, `Bridge` and Codex on top of the real server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from openai import OpenAI
from pydantic import BaseModel

from isthmus import Bridge
from isthmus.client.retry import NO_RETRY
from real.codex.rig import BINARY, UNKNOWN
from real.codex.rig import Rig as CodexRig
from real.models.rig import ASKS_COLOUR, ASKS_WEATHER, CHAT, DIALECTS, MODEL, NATIVE, WEATHER, Rig, gateway_config, real
from serving import running_gateway_server

pytestmark = real


_SHORT = """
web_search = "disabled"
include_permissions_instructions = false
include_apps_instructions = false
include_environment_context = false
tools.view_image = false
skills.bundled.enabled = false
skills.include_instructions = false
"""


class Pick(BaseModel):
    colour: Literal["ultraviolet"]


@pytest.fixture
def client(rig: Rig) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{rig.gateway.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def test_the_sdk_parses(client: OpenAI) -> None:
    response = client.responses.parse(model=CHAT, input="Say hello.", text_format=Pick)
    assert response.output_parsed == Pick(colour="ultraviolet")


@pytest.mark.parametrize("model", DIALECTS)
def test_the_sdk_streams(client: OpenAI, model: str) -> None:
    tools: Any = [{**WEATHER, "strict": False}]
    with client.responses.stream(model=model, input=ASKS_WEATHER, tools=tools) as stream:
        numbers = [event.sequence_number for event in stream]
        response = stream.get_final_response()
    assert numbers == list(range(len(numbers)))
    assert [item.type for item in response.output][-1] == "function_call"
    assert response.usage is not None
    assert response.usage.output_tokens > 0


@pytest.mark.parametrize("dialect", ["chat", "responses"])
def test_bridge_streams_one_after_the_other_without_a_failed_attempt(rig: Rig, dialect: str) -> None:
    async def ask() -> list[str]:
        place = {"base_url": f"{rig.relay.url}/v1", "dialect": dialect, "retries": 0}
        async with Bridge({"llama-cpp": {"default": place}}, retry=NO_RETRY) as bridge:
            return [(await bridge.run(f"llama-cpp/{MODEL}", ASKS_COLOUR)).output for _ in range(6)]

    answers = asyncio.run(ask())
    assert len(set(answers)) == 1
    assert answers[0], "a connection that the server has closed is replaced at once: no attempt is lost on it"


@pytest.mark.parametrize("dialect", ["chat", "responses"])
def test_bridge_runs_a_tool_and_comes_to_an_end(rig: Rig, dialect: str) -> None:
    asked: list[str] = []

    def get_weather(city: str) -> str:
        """Weather of a city."""
        asked.append(city)
        return "sunny"

    async def run() -> str:
        place = {"base_url": f"{rig.relay.url}/v1", "dialect": dialect}
        async with Bridge({"llama-cpp": {"default": place}}, tools=[get_weather]) as bridge:
            return (await bridge.run(f"llama-cpp/{MODEL}", ASKS_WEATHER)).output

    assert asyncio.run(run())
    assert asked


@pytest.mark.skipif(BINARY is None, reason="no codex binary")
@pytest.mark.parametrize("target", [CHAT, NATIVE], ids=["chat", "native"])
def test_codex_comes_to_an_end(rig: Rig, tmp_path: Path, target: str) -> None:
    """Its own prompt does not fit a tiny model's patience: it gets a short one, and hardly a tool."""
    prompt = tmp_path / "prompt.md"
    prompt.write_text("You answer questions.")
    with running_gateway_server(gateway_config(rig.relay.url, f'aliases = {{ "*" = "{target}" }}')) as gateway:
        codex = CodexRig(tmp_path, None, gateway, target)  # type: ignore[arg-type]  # nothing is scripted here
        features = ("shell_tool", "multi_agent", "goals", "tool_suggest", "image_generation")
        arguments = [word for name in features for word in ("-c", f"features.{name}=false")]
        outcome = codex.exec(
            ASKS_COLOUR, *arguments, slug=UNKNOWN, root=f'{_SHORT}model_instructions_file = "{prompt}"'
        )
    assert outcome.worked().said
    assert outcome.usage["output_tokens"] > 0
