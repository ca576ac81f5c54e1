"""One agent (two tools, one approval, structured output), unchanged on every wire: equal transcripts."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel

from isthmus import Approve, Bridge, RunResult, dump_messages, tool
from isthmus.client.repair import find_problems
from reaching import MODEL, WIRES, reach, results_sent, scene


class Receipt(BaseModel):
    paid: int
    to: str


@tool
async def balance(account: str) -> int:
    """The balance of an account."""
    return 500


@tool(needs_approval=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


SCRIPT = [
    scene("Let me look.", calls=[("call_1", "balance", {"account": "main"})]),
    scene(calls=[("call_2", "pay", {"to": "Ada", "amount": 100}), ("call_3", "balance", {"account": "main"})]),
    scene('{"paid": 100, "to": "Ada"}'),
]


async def agent(bridge: Bridge) -> RunResult[Receipt]:
    run = await bridge.run(MODEL, "Pay Ada 100.", tools=[balance, pay], output_type=Receipt)
    while run.pending:
        run = await bridge.resume(run, approvals={call.id: Approve() for call in run.pending})
    return run


def test_the_same_agent_has_the_same_transcript_on_every_wire() -> None:
    async def act(wire: str) -> tuple[Any, Any, Any]:
        async with reach(wire, SCRIPT) as (bridge, upstream):
            run = await agent(bridge)
            assert find_problems(run.messages) == []
            assert run.output == Receipt(paid=100, to="Ada")
            last = results_sent(upstream.requests[2].json)
            return dump_messages(run.messages), [one.value for one in run.tool_results], last

    found = {wire: asyncio.run(act(wire)) for wire in WIRES}
    assert all(one == found["chat"] for one in found.values())
    assert found["chat"][1] == [500, "paid 100 to Ada", 500]
    assert found["chat"][2] == {"call_1": "500", "call_2": "paid 100 to Ada", "call_3": "500"}
