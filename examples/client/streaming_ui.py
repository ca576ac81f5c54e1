"""Everything that happens, as it happens: what a chat window needs."""

import asyncio

from isthmus import Bridge, RunFinished, TextDelta, ToolFinished, ToolStarted, tool


@tool
async def get_weather(city: str) -> str:
    """The weather in a city."""
    await asyncio.sleep(0.05)
    return f"Sunny in {city}"


async def main() -> None:
    async with (
        Bridge.from_env() as bridge,
        bridge.run_stream(None, "What is the weather in Oslo?", tools=[get_weather]) as events,
    ):
        async for event in events:
            match event:
                case TextDelta(text):
                    print(text, end="", flush=True)
                case ToolStarted(call):
                    print(f"[{call.name} {call.raw_arguments} …]")
                case ToolFinished(result):
                    print(f"[{result.name}: {result.text}]")
                case RunFinished(result):
                    print(
                        f"\n({result.turns} turns, {result.usage.total_tokens} tokens, ${result.usage.cost or 0:.4f})"
                    )


asyncio.run(main())
