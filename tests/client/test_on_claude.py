"""`Bridge` on Claude: twenty turns of tools with thinking, on a server that forgives nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus import Bridge, Limits, tool
from isthmus.client.repair import find_problems
from isthmus.testing import ScriptedUpstream
from speaking_messages import called, claude, hidden, said, thought
from strict_anthropic import strictly

TURNS = 20


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-opus-4-6", "claude-haiku-4-5"])
def test_twenty_turns_of_tools_with_thinking_meet_no_refusal(model: str, streamed: bool) -> None:
    seen: list[int] = []

    @tool
    def look(n: int) -> str:
        """Looks."""
        seen.append(n)
        return f"saw {n}"

    def blocks(n: int) -> list[Any]:
        first = [thought(f"Turn {n}"), called(f"toolu_{n}a", "look", n=2 * n)]
        hides = [hidden()] if n % 3 == 0 else []
        return [*hides, *first, thought("Another."), called(f"toolu_{n}b", "look", n=2 * n + 1)]

    async def main() -> None:
        steps = [strictly(claude(*blocks(n))) for n in range(TURNS)]
        with ScriptedUpstream.running([*steps, strictly(claude(thought("So."), said("Found.")))]) as upstream:
            place = {"base_url": upstream.base_url, "api_key": "sk-test"}
            async with Bridge({"anthropic": {"default": place}}) as bridge:
                run = await bridge.run(
                    f"anthropic/{model}",
                    "Find it.",
                    tools=[look],
                    stream=streamed,
                    limits=Limits(max_turns=TURNS + 1, max_tool_calls=3 * TURNS),
                    reasoning={"effort": "high", "summary": "auto"},
                )
            assert (run.output, run.stop_reason) == ("Found.", "completed"), run
            assert find_problems(run.messages) == []
            last = upstream.requests[-1].json["messages"]
            thinking = [block for turn in last for block in turn["content"] if block["type"] == "thinking"]
            assert len(thinking) == 2 * TURNS, "every thought is back, between its calls"
            assert all(block["signature"] for block in thinking)

    asyncio.run(main())
    assert seen == list(range(2 * TURNS))
