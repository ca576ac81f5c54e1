"""Where clients stumble: thinking that they cannot show, addresses nearly right, keys and schemas that fail."""

from __future__ import annotations

import asyncio

import anthropic
import openai
import pytest
from openai import AzureOpenAI, OpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, ThinkingPart
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from flowing import DEEPSEEK, PLAIN, Flow
from isthmus.testing import chat, error
from node_scripts import run_node

pytestmark = pytest.mark.real

THOUGHT = "Let me think."


def test_the_ai_sdk_and_the_agents_sdk_for_javascript_show_thinking(flow: Flow) -> None:
    flow.script(*(chat("So.", reasoning=THOUGHT) for _ in range(3)))
    assert run_node("thinking.mjs", flow.server.url, DEEPSEEK) == {
        "whole": THOUGHT,
        "streamed": THOUGHT,
        "agent": THOUGHT,
    }


def test_pydantic_ai_shows_thinking(flow: Flow) -> None:
    flow.script(chat("So.", reasoning=THOUGHT))

    async def scenario() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
            model = OpenAIResponsesModel(DEEPSEEK, provider=OpenAIProvider(openai_client=client))
            run = await Agent(model).run("Why?")
        parts = [part for message in run.all_messages() for part in message.parts]
        return [part.content for part in parts if isinstance(part, ThinkingPart)]

    assert asyncio.run(scenario()) == [THOUGHT]


@pytest.mark.parametrize("base", ["", "/", "/v1", "//v1", "/v1/", "/v1/v1"])
def test_a_base_url_that_is_nearly_right_works(flow: Flow, base: str) -> None:
    flow.script(chat("Hello"))
    client = OpenAI(base_url=f"{flow.server.url}{base}", api_key="any", max_retries=0)
    with client:
        assert client.responses.create(model=PLAIN, input="hi").output_text == "Hello"


def test_azures_client_is_told_the_right_address(flow: Flow) -> None:
    with AzureOpenAI(
        azure_endpoint=flow.server.url, azure_deployment="gpt", api_key="any", api_version="2024-10-21"
    ) as client:
        with pytest.raises(openai.NotFoundError, match=f"the base URL is `{flow.server.url}/v1`"):
            client.chat.completions.create(model=PLAIN, messages=[{"role": "user", "content": "hi"}])
        with pytest.raises(openai.NotFoundError, match=f"`{flow.server.url}/v1/responses`"):
            client.responses.create(model=PLAIN, input="hi")


def test_a_bad_key_of_the_provider_is_not_tried_again(flow: Flow) -> None:
    flow.script(*(error(401, "bad key") for _ in range(2)))
    with OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=2) as client:
        with pytest.raises(openai.PermissionDeniedError) as refused:
            client.responses.create(model=PLAIN, input="hi")
        assert refused.value.code == "upstream_unauthorized"
    asked = anthropic.Anthropic(base_url=flow.server.url, api_key="any", max_retries=2)
    with asked as messages, pytest.raises(anthropic.PermissionDeniedError):
        messages.messages.create(model=PLAIN, max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    assert len(flow.sent) == 2, "each was asked once"


class Number(BaseModel):
    n: int


@pytest.mark.parametrize("model", [PLAIN, DEEPSEEK])
def test_a_schema_that_is_never_met_is_a_failure_with_a_reason_and_no_broken_object(flow: Flow, model: str) -> None:
    flow.script(*(chat('{"n": "one"}') for _ in range(4)))
    with OpenAI(base_url=f"{flow.server.url}/v1", api_key="any") as client:
        whole = client.responses.parse(model=model, input="A number", text_format=Number)
        with client.responses.stream(model=model, input="A number", text_format=Number) as stream:
            last = list(stream)[-1]
    assert last.type == "response.failed"
    for response in (whole, last.response):
        assert (response.status, response.output_text) == ("failed", "")
        assert response.error is not None
        assert "/n" in response.error.message
    assert whole.output_parsed is None
    assert len(flow.sent) == 4, "twice each: it was asked again once, and by nobody else"
