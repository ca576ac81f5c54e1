"""The web search tools of client libraries, unchanged, on a model whose provider does not search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, WebSearchTool
from openai import AsyncOpenAI, OpenAI
from openai.types.responses.web_search_tool import Filters

from isthmus.testing import ScriptedUpstream, chat
from node_scripts import run_node
from serving import running_gateway_server

pytestmark = pytest.mark.real

MODEL = "deepseek/deepseek-v4-pro"
SEARCH = chat(None, reasoning="Search.", calls=[("call_1", "web_search", {"query": "otters"})])
ANSWER = chat("Fish, says [otters: wiki](https://demo.example/wiki/otters).")
CONFIG = """
[server]
port = 0
[store]
url = "memory:"
[models]
demo = false
[providers.deepseek]
base_url = "{url}"
api_key = "x"
retries = 0
[search]
backend = "demo"
"""


@contextmanager
def served() -> Iterator[tuple[str, ScriptedUpstream]]:
    with (
        ScriptedUpstream.running([SEARCH, ANSWER]) as upstream,
        running_gateway_server(CONFIG.format(url=upstream.base_url)) as gateway,
    ):
        yield gateway.url, upstream


def was_searched(upstream: ScriptedUpstream) -> None:
    """The model read what the search had found, within the domain that the client named."""
    result = upstream.requests[1].json["messages"][-1]
    assert result["role"] == "tool"
    assert "https://demo.example/wiki/otters" in result["content"]
    assert "https://news.demo.example/news/otters" not in result["content"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_an_agent_searches_with_the_sdks_own_tool(streamed: bool) -> None:
    with served() as (url, upstream):
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as client:
            agent: Agent[Any] = Agent(
                name="Reader",
                tools=[WebSearchTool(filters=Filters(allowed_domains=["demo.example"]), search_context_size="low")],
                model=OpenAIResponsesModel(model=MODEL, openai_client=client),
            )
            quiet = RunConfig(tracing_disabled=True)
            if streamed:
                result: Any = Runner.run_streamed(agent, "what do otters eat?", run_config=quiet)
                async for _ in result.stream_events():
                    pass
            else:
                result = await Runner.run(agent, "what do otters eat?", run_config=quiet)
        assert str(result.final_output).startswith("Fish, says")
        calls = [item.raw_item for item in result.new_items if item.type == "tool_call_item"]
        assert [(call.type, call.status, call.action.query) for call in calls] == [
            ("web_search_call", "completed", "otters")
        ]
        was_searched(upstream)


@pytest.mark.parametrize("mode", ["whole", "streamed"])
def test_an_agent_in_javascript_searches_with_the_sdks_own_tool(mode: str) -> None:
    with served() as (url, upstream):
        told = run_node("web_search.mjs", url, MODEL, mode)
        assert told["answer"].startswith("Fish, says")
        assert [(call["name"], call["status"]) for call in told["calls"]] == [("web_search_call", "completed")]
        was_searched(upstream)


def test_the_openai_sdk_reads_the_call_its_sources_and_the_citation() -> None:
    with served() as (url, upstream), OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as client:
        with client.responses.stream(
            model=MODEL,
            input="what do otters eat?",
            tools=[{"type": "web_search", "filters": {"allowed_domains": ["demo.example"]}}],
            include=["web_search_call.action.sources"],
        ) as stream:
            kinds = [event.type for event in stream]
            response = stream.get_final_response()
        call: Any = response.output[0] if response.output[0].type != "reasoning" else response.output[1]
        message: Any = response.output[-1]
        assert [kind for kind in kinds if "web_search" in kind] == [
            "response.web_search_call.in_progress",
            "response.web_search_call.searching",
            "response.web_search_call.completed",
        ]
        assert call.action.sources[0].url == "https://demo.example/wiki/otters"
        (citation,) = message.content[0].annotations
        text = message.content[0].text
        assert (citation.type, citation.url) == ("url_citation", "https://demo.example/wiki/otters")
        assert text[citation.start_index : citation.end_index].startswith("[otters: wiki](https://demo.example")
        was_searched(upstream)
