"""Proofs for `[tools]`: how much of one response the tools that run here may take."""

from __future__ import annotations

import asyncio
from typing import Any

from isthmus.bridge.types.managed import ManagedCall, Ran
from isthmus.conduct.hosted import Hosted
from isthmus.ports.tools import Tell
from isthmus.testing import ScriptedTool, ScriptedUpstream, chat
from settings.proving import Scene, ask, proves

UPSTREAM = {"providers.main.base_url": '"@UPSTREAM@"'}
SEARCH = {"tools": [{"type": "web_search"}], "store": False}


def _look(*queries: str) -> Any:
    return chat(calls=[(f"call_{n}", "web_search", {"query": query}) for n, query in enumerate(queries)])


async def _asked(scene: Scene, tool: ScriptedTool, *steps: Any) -> tuple[dict[str, Any], list[Any]]:
    """The response, and what the upstream was asked, with this tool within the limits that were configured."""
    with ScriptedUpstream.running(steps, default=chat("There.")) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            gateway.hosted = Hosted([tool], gateway.hosted.limits)
            response = await ask(gateway, **SEARCH)
        return response, [request.json for request in upstream.requests]


@proves("tools.max_rounds", "1")
async def after_one_round_the_search_is_not_offered(scene: Scene) -> None:
    tool = ScriptedTool("web_search", Ran("found"), search="scripted")
    _, sent = await _asked(scene, tool, _look("a"))
    assert ["tools" in body for body in sent] == [True, False]


@proves("tools.max_parallel", "1")
async def one_call_runs_at_a_time(scene: Scene) -> None:
    async def search(call: ManagedCall, tell: Tell) -> Ran:
        await asyncio.sleep(0)
        return Ran("found")

    tool = ScriptedTool("web_search", search, search="scripted")
    await _asked(scene, tool, _look("a", "b", "c"))
    assert (len(tool.calls), tool.most) == (3, 1)


@proves("tools.timeout", "0.05")
async def a_slow_call_has_failed(scene: Scene) -> None:
    async def search(call: ManagedCall, tell: Tell) -> Ran:
        await asyncio.sleep(1.0)
        return Ran("found")

    response, _ = await _asked(scene, ScriptedTool("web_search", search, search="scripted"), _look("a"))
    assert response["output"][0]["status"] == "failed"


@proves("tools.max_result", "5")
async def a_longer_result_is_cut(scene: Scene) -> None:
    _, sent = await _asked(scene, ScriptedTool("web_search", Ran("x" * 100), search="scripted"), _look("a"))
    assert sent[1]["messages"][-1]["content"].startswith("xxxxx\n[cut")
