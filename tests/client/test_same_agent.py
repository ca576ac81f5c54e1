"""One agent, unchanged on every wire: equal transcripts. The real codex binary is asked the same in `tests/real`."""

from __future__ import annotations

import asyncio
from typing import Any

from isthmus import dump_messages
from isthmus.client.repair import find_problems
from reaching import MODEL, WIRES, reach, results_sent
from same_agent import SCRIPT, Receipt, agent


def test_the_same_agent_has_the_same_transcript_on_every_wire() -> None:
    async def act(wire: str) -> tuple[Any, Any, Any]:
        async with reach(wire, SCRIPT) as (bridge, upstream):
            run = await agent(bridge, MODEL)
            assert find_problems(run.messages) == []
            assert run.output == Receipt(paid=100, to="Ada")
            last = results_sent(upstream.requests[2].json)
            return dump_messages(run.messages), [one.value for one in run.tool_results], last

    found = {wire: asyncio.run(act(wire)) for wire in WIRES}
    assert all(one == found["chat"] for one in found.values())
    assert found["chat"][1] == [500, "paid 100 to Ada", 500]
    assert found["chat"][2] == {"call_1": "500", "call_2": "paid 100 to Ada", "call_3": "500"}
