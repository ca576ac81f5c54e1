"""A person decides: the run pauses before a dangerous call, is saved, and goes on later, perhaps elsewhere."""

import asyncio
import json

from isthmus import Approve, Bridge, Deny, dump_messages, load_messages, tool


@tool(needs_approval=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


async def main() -> None:
    async with Bridge.from_env() as bridge:
        run = await bridge.run(
            None,
            'Tidy up. [[demo: call delete_file {"path": "/tmp/old"}]] [[demo: call delete_file {"path": "/etc"}]]',
            tools=[delete_file],
        )
        print(run.stop_reason, [call.raw_arguments for call in run.pending])
        saved = json.dumps(dump_messages(run.messages))  # in a database, until somebody has time

    async with Bridge.from_env() as bridge:
        messages = load_messages(json.loads(saved))
        decisions = {
            call.id: Approve() if call.arguments == {"path": "/tmp/old"} else Deny("not that one")
            for call in messages[-1].tool_calls
        }
        run = await bridge.resume(messages, tools=[delete_file], approvals=decisions)
        for result in run.tool_results:
            print(f"{result.status}: {result.text}")


asyncio.run(main())
