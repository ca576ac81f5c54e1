"""Limits end runs, they do not destroy them; failures keep what was done."""

import asyncio

from isthmus import Bridge, Limits, Retry, partial_result, tool
from isthmus.errors import IsthmusError


@tool(timeout=0.1)
async def slow_search(query: str) -> str:
    """Search, slowly."""
    await asyncio.sleep(60)
    return query


async def main() -> None:
    async with Bridge.from_env() as bridge:
        run = await bridge.run(
            None, 'Go. [[demo: call slow_search {"query": "x"}]]', tools=[slow_search], limits=Limits(max_turns=8)
        )
        print(run.stop_reason, "-", run.tool_results[0].text)

        run = await bridge.run(
            None,
            'Go. [[demo: call slow_search {"query": "x"}]]',
            tools=[slow_search],
            limits=Limits(max_turns=1),
            on_limit="finalize",
        )
        print(run.stop_reason, "- but there is an answer:", bool(run.output))

        try:
            await bridge.run(None, "[[demo: error 503]] hello", retry=Retry(attempts=2, base=0.01, longest_wish=0.0))
        except IsthmusError as error:
            print(type(error).__name__, error.code, error.retryable, error.status)
            kept = partial_result(error)
            print("kept messages:", len(kept.messages) if kept else 0)


asyncio.run(main())
