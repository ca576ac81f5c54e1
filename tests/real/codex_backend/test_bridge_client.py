"""The Bridge client in-process on a real `codex app-server`: the same agent as everywhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isthmus import Bridge, dump_messages
from isthmus.client.repair import find_problems
from isthmus.testing import ScriptedUpstream
from reaching import MODEL, reach
from real.codex_backend.house import make_home
from real.codex_backend.rig import in_loop, outputs_in, real
from same_agent import SCRIPT, Receipt, agent

pytestmark = real


@in_loop
async def test_the_same_agent_has_the_same_transcript_on_codex(tmp_path: Path) -> None:
    async with reach("chat", SCRIPT) as (bridge, _):
        expected = transcript((await agent(bridge, MODEL)).messages)
    async with ScriptedUpstream([scene("responses") for scene in SCRIPT]) as upstream:
        home = make_home(tmp_path, upstream.base_url)
        async with Bridge({"codex": {"default": {"codex": {"home": str(home)}}}}) as bridge:
            run = await agent(bridge, "codex/gpt-5.5")
            assert await bridge.models()  # as Codex itself lists them
        assert run.output == Receipt(paid=100, to="Ada")
        assert [result.value for result in run.tool_results] == [500, "paid 100 to Ada", 500]
        assert find_problems(run.messages) == []
        assert [id for id, _ in outputs_in(upstream.requests[2].json)] == ["call_1", "call_2", "call_3"]
        assert transcript(run.messages) == expected


def transcript(messages: Any) -> Any:
    """The conversation, whoever answered: the provider's name is the only thing that may differ."""
    told = json.dumps(dump_messages(messages), sort_keys=True)
    return json.loads(told.replace('"codex"', '"openai"'))
