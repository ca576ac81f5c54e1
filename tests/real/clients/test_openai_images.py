"""The official SDKs and their images: drawn, changed and streamed, and as a tool of a model that knows none."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from agents import Agent, ImageGenerationTool, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI, OpenAI

from flowing import Flow
from flowing_providers import provider_flow
from isthmus.testing import chat

pytestmark = pytest.mark.real

set_tracing_disabled(True)
PAINT = chat(calls=[("call_1", "image_generation", {"prompt": "a fox"})])


@pytest.fixture
def drawing(tmp_path: Path) -> Iterator[Flow]:
    providers = {"plain": 'uses = "openai-compatible"'}
    with provider_flow(tmp_path, providers, extra="[images]\nprovider = 'demo'\n") as made:
        yield made


@pytest.fixture
def client(drawing: Flow) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{drawing.server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def test_images_are_drawn_and_changed(client: OpenAI) -> None:
    made = client.images.generate(prompt="a fox", model="gpt-image-1", n=2, size="256x256", background="opaque")
    assert made.data is not None
    assert len({each.b64_json for each in made.data}) == 2
    assert made.usage is not None
    assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens
    pictures = [base64.b64decode(each.b64_json or "") for each in made.data]
    one = client.images.edit(image=("a.png", pictures[0], "image/png"), prompt="bluer", model="gpt-image-1")
    several = client.images.edit(image=[("a.png", each, "image/png") for each in pictures], prompt="bluer")
    assert one.data is not None
    assert several.data is not None
    assert one.data[0].b64_json != several.data[0].b64_json


def test_partial_images_are_streamed(client: OpenAI) -> None:
    events = list(client.images.generate(prompt="a fox", stream=True, partial_images=2))
    assert [event.type for event in events] == [
        *["image_generation.partial_image"] * 2,
        "image_generation.completed",
    ]
    picture = base64.b64decode(events[-1].b64_json)
    changed = list(client.images.edit(image=("a.png", picture), prompt="bluer", stream=True, partial_images=1))
    assert [event.type for event in changed] == ["image_edit.partial_image", "image_edit.completed"]


def test_refusals_are_the_sdks_own_errors(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.images.generate(prompt="something unspeakable")
    assert refused.value.code == "invalid_prompt"
    with pytest.raises(openai.BadRequestError) as unknown:
        client.images.edit(image=("a.txt", b"no image"), prompt="bluer")
    assert unknown.value.param == "image[0]"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_model_draws_beside_a_search_for_tools(drawing: Flow, client: OpenAI, streamed: bool) -> None:
    """Both run on the server within one response; the client's own function waits for the client."""
    calls = [("c1", "tool_search", {"query": "weather"}), ("c2", "image_generation", {"prompt": "a fox"})]
    drawing.script(chat(calls=calls), chat(calls=[("c3", "weather", {"city": "Rome"})]), chat("Sunny, as the fox."))
    later: Any = {
        "type": "function",
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "defer_loading": True,
    }
    asked: Any = {
        "model": "plain/m",
        "input": "Draw a fox, and tell me the weather in Rome.",
        "tools": [{"type": "image_generation"}, {"type": "tool_search"}, later],
    }
    if streamed:
        with client.responses.stream(**asked) as stream:
            kinds = [event.type for event in stream]
            response: Any = stream.get_final_response()
        assert "response.image_generation_call.generating" in kinds
    else:
        response = client.responses.create(**asked)
    found = {item.type: item for item in response.output}
    assert set(found) == {"tool_search_call", "tool_search_output", "image_generation_call", "function_call"}
    assert base64.b64decode(found["image_generation_call"].result).startswith(b"\x89PNG")
    output: Any = {"type": "function_call_output", "call_id": found["function_call"].call_id, "output": "sunny"}
    done = client.responses.create(**{**asked, "input": [output], "previous_response_id": response.id})
    assert done.output_text == "Sunny, as the fox."


async def test_the_agents_sdks_image_tool_is_left_to_the_gateway(drawing: Flow) -> None:
    drawing.script(PAINT, chat("Here is your fox."))
    async with AsyncOpenAI(base_url=f"{drawing.server.url}/v1", api_key="any", max_retries=0) as client:
        agent = Agent(
            name="painter",
            model=OpenAIResponsesModel("plain/m", client),
            tools=[ImageGenerationTool(tool_config={"type": "image_generation", "quality": "low"})],
        )
        result = await Runner.run(agent, "Draw a fox.")
    assert result.final_output == "Here is your fox."
    drawn = [
        item.raw_item for item in result.new_items if getattr(item.raw_item, "type", "") == "image_generation_call"
    ]
    assert base64.b64decode(getattr(drawn[0], "result", "")).startswith(b"\x89PNG")
