"""One agent (two tools, one approval, structured output), to be run unchanged on every wire."""

from __future__ import annotations

from pydantic import BaseModel

from isthmus import Approve, Bridge, RunResult, tool
from reaching import scene


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


async def agent(bridge: Bridge, model: str) -> RunResult[Receipt]:
    run = await bridge.run(model, "Pay Ada 100.", tools=[balance, pay], output_type=Receipt)
    while run.pending:
        run = await bridge.resume(run, approvals={call.id: Approve() for call in run.pending})
    return run
