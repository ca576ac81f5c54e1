"""Ten lines: a question, a tool, an answer. Without any key the built-in demo model answers."""

import asyncio

from isthmus import Bridge, tool


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}, 21 °C"


async def main() -> None:
    async with Bridge.from_env() as bridge:
        run = await bridge.run(None, "What is the weather in Oslo?", tools=[get_weather])
        print(run.output)


asyncio.run(main())
