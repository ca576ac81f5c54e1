"""The three rungs, one by one: `chat` asks, `execute` carries out, and a second `chat` answers."""

import asyncio

from isthmus import Bridge, Message, tool, user


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}"


async def main() -> None:
    async with Bridge.from_env() as bridge:
        messages = [user("What is the weather in Oslo?")]
        reply = await bridge.chat(None, messages, tools=[get_weather])
        print("the model asks for:", [(call.name, dict(call.arguments or {})) for call in reply.tool_calls])

        results = await bridge.execute(reply.message, tools=[get_weather])
        print("the results are:", [result.value for result in results])

        messages += [reply.message, Message("tool", tuple(result.part() for result in results))]
        print((await bridge.chat(None, messages, tools=[get_weather])).text)


asyncio.run(main())
