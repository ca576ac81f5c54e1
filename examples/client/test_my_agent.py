"""How to test an agent without a model: run it with `pytest`, or as a script."""

import asyncio

from isthmus import Bridge, RunResult, tool
from isthmus.testing import ExecutionTracker, ScriptedModel, say


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def my_agent(bridge: Bridge, question: str, tracker: ExecutionTracker) -> RunResult[str]:
    return await bridge.run(None, question, tools=[tracker.track(add)])


def test_the_agent_adds_and_answers() -> None:
    model = ScriptedModel([say(calls=[("call_1", "add", {"a": 1, "b": 2})]), "It is 3."])
    tracker = ExecutionTracker()
    run = asyncio.run(my_agent(Bridge(connect=model), "What is 1 + 2?", tracker))
    assert run.output == "It is 3."
    assert tracker.executions[0].arguments == {"a": 1, "b": 2}
    assert model.requests[1]["input"][-1]["output"] == "3"


if __name__ == "__main__":
    test_the_agent_adds_and_answers()
    print("the agent works")
