"""A file as a user would write it: checked with `mypy --strict`, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from pydantic import BaseModel

from isthmus import (
    Approve,
    Bridge,
    ChatResult,
    Deny,
    Limits,
    ModelInfo,
    RunFinished,
    RunResult,
    RunStream,
    TextDelta,
    Tool,
    ToolBox,
    ToolCall,
    ToolContext,
    ToolFinished,
    ToolResult,
    extract_tool_calls_from_message,
    format_tool_call_for_extraction,
    prepare_tool_call_message,
    tool,
    user,
)
from isthmus.tools.messages import Message


class City(BaseModel):
    name: str
    people: int


@dataclass
class Deps:
    token: str


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(timeout=5, needs_approval=lambda ctx, arguments: bool(arguments["dangerous"]))
async def deploy(ctx: ToolContext[Deps], target: str, dangerous: bool = False) -> str:
    """Deploy."""
    return f"{target} {ctx.deps.token}"


class Notes(ToolBox):
    @tool
    def note(self, text: str) -> None:
        """Note."""


async def use() -> None:
    assert_type(add(1, 2), int)
    plain = Tool.from_schema("t", "d", {"type": "object"}, lambda arguments: 1)
    async with Bridge.from_env() as bridge:
        assert_type(bridge, Bridge)
        reply = await bridge.chat("openai/gpt-5", [user("hi")], tools=[add, deploy], temperature=0.2)
        assert_type(reply, ChatResult)
        assert_type(await bridge.execute(reply.message, tools=[add]), list[ToolResult])

        text = await bridge.run("openai/gpt-5", "hi", tools=[add, deploy, plain, Notes(), print])
        assert_type(text, RunResult[str])
        assert_type(text.output, str | None)

        city = await bridge.run("openai/gpt-5", "hi", output_type=City, limits=Limits(max_turns=3), on_limit="finalize")
        assert_type(city, RunResult[City])
        assert_type(city.output, City | None)

        numbers = await bridge.run("openai/gpt-5", "hi", output_type=list[int])
        assert_type(numbers.output, list[int] | None)

        anything = await bridge.run("openai/gpt-5", "hi", output_type={"type": "object"})
        assert_type(anything, RunResult[Any])

        assert_type(bridge.run_stream("m", "hi", output_type=City), RunStream[City])
        async with bridge.run_stream("openai/gpt-5", "hi", tools=[add], deps=Deps("x")) as events:
            async for event in events:
                match event:
                    case TextDelta(words):
                        assert_type(words, str)
                    case ToolFinished(result):
                        assert_type(result, ToolResult)
                    case RunFinished():
                        pass
        assert_type(events.result, RunResult[str])

        decided = await bridge.resume(text, approvals={"a": Approve(), "b": Deny("no"), "c": True})
        assert_type(decided, RunResult[str])
        assert_type(await bridge.resume(city), RunResult[City])
        assert_type(await bridge.resume(city.messages, model="openai/gpt-5", tools=[add]), RunResult[str])
        assert_type(await bridge.resume(city.messages, output_type=City), RunResult[City])
        assert_type(await bridge.resume(text, output_type=list[int]), RunResult[list[int]])
        assert_type(await bridge.resume(text, output_type={"type": "object"}), RunResult[Any])
        assert_type(bridge.resume_stream(city), RunStream[City])
        assert_type(bridge.resume_stream(city.messages, output_type=City), RunStream[City])
        assert_type(await bridge.models(), list[ModelInfo])


def script(bridge: Bridge, message: Message, plain: dict[str, Any]) -> None:
    assert_type(bridge.run_sync("m", "hi", output_type=City).output, City | None)
    assert_type(bridge.resume_sync(bridge.run_sync("m", "hi", output_type=City)).output, City | None)
    assert_type(bridge.resume_sync([message], model="m").output, str | None)
    assert_type(prepare_tool_call_message(message), Message)
    assert_type(prepare_tool_call_message(plain), dict[str, Any])
    assert_type(extract_tool_calls_from_message(plain), list[ToolCall])
    assert_type(format_tool_call_for_extraction(message.tool_calls), list[dict[str, Any]])
