"""The kit for tests of tool loops: the seed's criteria for the echo tool, and the tracker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.testing import (
    ExecutionTracker,
    ScriptedModel,
    create_test_tool,
    create_tool_call,
    echo_handler,
    say,
    validate_tool_execution,
)
from isthmus.wiring_bridge import Bridge


def test_create_test_tool_returns_a_valid_definition_with_a_schema() -> None:
    declaration = create_test_tool().declaration()
    assert declaration["name"] == "e2e_echo_tool"
    assert declaration["parameters"]["properties"]["message"]["type"] == "string"


def test_the_handler_returns_predictable_testable_results() -> None:
    result = asyncio.run(echo_handler({"message": "hi", "extra": 1}))
    assert result["echoed"] == "hi"
    assert validate_tool_execution(result)


@pytest.mark.parametrize("params", [{}, {"message": 5}, {"message": None}], ids=repr)
def test_the_handler_refuses_a_missing_or_wrong_message(params: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="`message`"):
        asyncio.run(echo_handler(params))


GOOD = {"echoed": "x", "timestamp": "now", "testSuccess": True}


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (GOOD, True),
        ({**GOOD, "more": 1}, True),
        ({**GOOD, "echoed": ""}, True),
        ({**GOOD, "testSuccess": 1}, False),
        ({**GOOD, "testSuccess": "true"}, False),
        ({**GOOD, "echoed": 5}, False),
        ({**GOOD, "timestamp": None}, False),
        ({}, False),
        (None, False),
        ([GOOD], False),
        ("text", False),
    ],
    ids=repr,
)
def test_validation_returns_clear_boolean_results(result: object, verdict: bool) -> None:
    assert validate_tool_execution(result) is verdict


def test_create_tool_call_generates_valid_calls_with_ids_that_never_repeat() -> None:
    calls = [create_tool_call("hi") for _ in range(1000)]
    assert len({call.id for call in calls}) == 1000
    assert calls[0].arguments == {"message": "hi"}


def test_the_handler_is_not_collected_as_a_test(tmp_path: Path) -> None:
    file = tmp_path / "test_collects.py"
    file.write_text("from isthmus.testing import test_tool_handler\n\ndef test_one(): pass\n")
    out = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", str(file)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    assert "test_one" in out
    assert "test_tool_handler" not in out


def test_the_whole_flow_works_with_a_real_client_and_a_tracked_tool() -> None:
    async def main() -> None:
        tracker = ExecutionTracker()
        model = ScriptedModel([say(calls=[("c1", "e2e_echo_tool", {"message": "hi"})]), "done"])
        async with Bridge(connect=model) as bridge:
            run = await bridge.run("any", "echo", tools=[tracker.track(create_test_tool())])
        assert run.output == "done"
        assert validate_tool_execution(run.tool_results[0].value)
        assert tracker.count("e2e_echo_tool") == 1
        assert tracker.executions[0].arguments == {"message": "hi"}
        assert model.remaining == 0

    asyncio.run(main())


def test_a_script_that_is_used_up_says_so() -> None:
    async def main() -> None:
        async with Bridge(connect=ScriptedModel([])) as bridge:
            await bridge.chat("any", "hi")

    with pytest.raises(AssertionError, match="no step left"):
        asyncio.run(main())
