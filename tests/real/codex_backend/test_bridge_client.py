"""The Bridge client in-process on a real `codex app-server`: the same agent as everywhere else."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from isthmus import Approve, Bridge, RunResult, tool
from isthmus.client.repair import find_problems
from isthmus.testing import ScriptedUpstream
from real.codex_backend.house import make_home
from real.codex_backend.rig import calls, in_loop, outputs_in, real, says

pytestmark = real


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


async def agent(bridge: Bridge) -> RunResult[Receipt]:
    run = await bridge.run("codex/gpt-5.5", "Pay Ada 100.", tools=[balance, pay], output_type=Receipt)
    while run.pending:
        run = await bridge.resume(run, approvals={call.id: Approve() for call in run.pending})
    return run


@in_loop
async def test_the_same_agent_runs_on_codex(tmp_path: Path) -> None:
    script = [
        calls(("call_1", "balance", '{"account":"main"}')),
        calls(("call_2", "pay", '{"to":"Ada","amount":100}'), ("call_3", "balance", '{"account":"main"}')),
        says(json.dumps({"paid": 100, "to": "Ada"})),
    ]
    async with ScriptedUpstream(script) as upstream:
        home = make_home(tmp_path, upstream.base_url)
        async with Bridge({"codex": {"default": {"codex": {"home": str(home)}}}}) as bridge:
            run = await agent(bridge)
            assert await bridge.models()  # as Codex itself lists them
        assert run.output == Receipt(paid=100, to="Ada")
        assert [result.value for result in run.tool_results] == [500, "paid 100 to Ada", 500]
        assert find_problems(run.messages) == []
        assert [id for id, _ in outputs_in(upstream.requests[2].json)] == ["call_1", "call_2", "call_3"]
