"""The OpenAI Agents SDKs leave an MCP server to the gateway, on a chat model: `HostedMCPTool`, `hostedMcpTool`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, HostedMCPTool, MCPToolApprovalRequest, OpenAIResponsesModel, RunConfig, Runner
from openai import AsyncOpenAI

from flowing import PLAIN, Flow, running_flow
from isthmus.testing import chat
from mcp_world import running_server, seen_by
from node_scripts import run_node

pytestmark = pytest.mark.real

QUIET = RunConfig(tracing_disabled=True)


@pytest.fixture
def server() -> Iterator[str]:
    with running_server() as url:
        yield url


@pytest.fixture
def flow(tmp_path: Path, server: str) -> Iterator[Flow]:
    place = server.removeprefix("http://").partition("/")[0]
    extra = f'[mcp.world]\nurl = "{server}"\n[mcp.hosts]\nprivate_hosts = ["{place}"]\n'
    with running_flow(tmp_path, extra=extra) as made:
        yield made


def run(flow: Flow, streamed: bool, *tools: HostedMCPTool) -> Any:
    async def main() -> Any:
        async with AsyncOpenAI(base_url=f"{flow.server.url}/v1", api_key="any") as client:
            model = OpenAIResponsesModel(model=PLAIN, openai_client=client)
            agent = Agent(name="Reporter", instructions="Use your tools.", model=model, tools=list(tools))
            if not streamed:
                return await Runner.run(agent, "Weather in Riga?", run_config=QUIET)
            result = Runner.run_streamed(agent, "Weather in Riga?", run_config=QUIET)
            async for _ in result.stream_events():
                pass
            return result

    return asyncio.run(main())


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("named", [True, False], ids=["by label", "by address"])
def test_a_hosted_server_is_called_for_the_agent(flow: Flow, server: str, named: bool, streamed: bool) -> None:
    label = "world" if named else "mine"
    config: Any = {"type": "mcp", "server_label": label, "require_approval": "never"}
    if not named:
        config |= {"server_url": server, "headers": {"X-Team": "blue"}}
    flow.script(chat(calls=[("c", f"{label}__weather", {"city": "Riga"})]), chat("It rains."))
    result = run(flow, streamed, HostedMCPTool(tool_config=config))
    assert result.final_output == "It rains."
    assert {"mcp_list_tools_item", "tool_call_item", "message_output_item"} <= {item.type for item in result.new_items}
    assert seen_by(server)["calls"] == ["weather Riga"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("approve", [True, False], ids=["approved", "denied"])
def test_the_agents_own_function_approves(flow: Flow, server: str, approve: bool, streamed: bool) -> None:
    asked: list[str] = []

    def decide(request: MCPToolApprovalRequest) -> Any:
        asked.append(request.data.name)
        return {"approve": approve} if approve else {"approve": False, "reason": "not today"}

    config: Any = {"type": "mcp", "server_label": "world", "require_approval": "always"}
    flow.script(chat(calls=[("c", "world__delete", {"name": "it"})]), chat("Well."))
    result = run(flow, streamed, HostedMCPTool(tool_config=config, on_approval_request=decide))
    assert result.final_output == "Well."
    assert asked == ["delete"]
    assert seen_by(server)["calls"] == (["delete it"] if approve else [])
    assert ("it is gone." if approve else "not today") in flow.sent[1]["messages"][-1]["content"]


@pytest.mark.parametrize("mode", ["whole", "streamed"])
@pytest.mark.parametrize("approval", ["never", "always"])
def test_an_agent_in_javascript_does_the_same(flow: Flow, server: str, approval: str, mode: str) -> None:
    flow.script(chat(calls=[("c", "mine__weather", {"city": "Riga"})]), chat("It rains."))
    told = run_node("hosted_mcp.mjs", flow.server.url, PLAIN, mode, server, approval)
    assert told["answer"] == "It rains."
    assert told["asked"] == (["weather"] if approval == "always" else [])
    assert seen_by(server)["calls"] == ["weather Riga"]
