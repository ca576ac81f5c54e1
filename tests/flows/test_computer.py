"""`computer` on chat models: a function for those that see, left out aloud for those that do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowing import Flow
from flowing_providers import provider_flow
from isthmus.testing import chat

CLICK = {"type": "click", "x": 10, "y": 20, "button": "left"}
SCREEN = "data:image/png;base64,iVBORw0KGgo="
PREVIEW = {"type": "computer_use_preview", "display_width": 1024, "display_height": 768, "environment": "browser"}


@pytest.fixture
def models(tmp_path: Path) -> Iterator[Flow]:
    facts = 'uses = "openai-compatible"\nmodels = { "*" = { messages = { input = [%s] } } }'
    with provider_flow(tmp_path, {"blind": facts % "", "seeing": facts % '"image"'}) as made:
        yield made


def ask(tool: Any = None, **more: Any) -> dict[str, Any]:
    return {"model": "seeing/m", "input": "Open the page.", "tools": [tool or {"type": "computer"}], **more}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_actions_come_back_as_a_computer_call(models: Flow, streamed: bool) -> None:
    actions = [CLICK, {"type": "type", "text": "hello"}, {"type": "wait"}]
    models.script(chat(calls=[("call_1", "computer", {"actions": actions})]))
    response = models.stream(ask())[1] if streamed else models.create(ask())
    (call,) = response["output"]
    assert (call["type"], call["status"], call["call_id"]) == ("computer_call", "completed", "call_1")
    assert (call["actions"], call["pending_safety_checks"]) == (actions, [])
    assert "action" not in call
    (said,) = response["isthmus"]["diagnostics"]
    assert (said["path"], said["action"]) == ("tools[0]", "degraded")


def test_the_older_tool_does_one_thing_at_a_time(models: Flow) -> None:
    models.script(chat(calls=[("call_1", "computer_use_preview", {"action": CLICK})]))
    (call,) = models.create(ask(PREVIEW))["output"]
    assert call["action"] == CLICK
    assert "actions" not in call
    assert "1024 by 768" in models.sent[0]["tools"][0]["function"]["description"]
    models.script(chat(calls=[("call_2", "computer_use_preview", {"actions": [CLICK, CLICK]})]))
    (plain,) = models.create(ask(PREVIEW))["output"]
    assert plain["type"] == "function_call", "half of what was meant must not be done"


def test_a_screenshot_is_shown_to_the_model(models: Flow) -> None:
    models.script(chat(calls=[("call_1", "computer", {"actions": [CLICK]})]), chat("It is open."))
    first = models.create(ask())
    shown = {"type": "computer_screenshot", "image_url": SCREEN}
    output = {"type": "computer_call_output", "call_id": "call_1", "output": shown}
    done = models.create(ask(previous_response_id=first["id"], input=[output]))
    assert done["output"][0]["content"][0]["text"] == "It is open."
    call, result, *after = models.sent[1]["messages"][-3:]
    assert call["tool_calls"][0]["function"]["name"] == "computer"
    assert (result["role"], result["tool_call_id"]) == ("tool", "call_1")
    assert SCREEN in str(after)


def test_a_model_that_sees_nothing_is_not_offered_one(models: Flow) -> None:
    models.script(chat("I cannot see it."))
    response = models.create(ask(model="blind/m"))
    (said,) = response["isthmus"]["diagnostics"]
    assert (said["path"], said["action"]) == ("tools[0]", "ignored")
    assert "takes no images" in said["message"]
    assert "tools" not in models.sent[0]


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "file_search", "vector_store_ids": ["vs_1"]},
        {"type": "shell", "environment": {"type": "container_auto"}},
    ],
    ids=lambda tool: tool["type"],
)
def test_what_only_openai_runs_is_told_beside_others_and_refused_alone(models: Flow, tool: dict[str, Any]) -> None:
    models.script(chat("Without it."))
    beside = models.create({**ask(tool), "tools": [tool, {"type": "function", "name": "look"}]})
    (said,) = beside["isthmus"]["diagnostics"]
    assert (said["path"], said["action"]) == ("tools[0]", "ignored")
    alone = models.post("/v1/responses", ask(tool))
    assert (alone.status, alone.json["error"]["param"]) == (400, "tools[0]")
    forced = models.post("/v1/responses", {**ask(tool), "tool_choice": {"type": tool["type"]}})
    assert forced.status == 400
    assert len(models.sent) == 1


def test_programs_are_left_out_and_their_tools_called_directly(models: Flow) -> None:
    models.script(chat("Directly."))
    tools = [{"type": "programmatic_tool_calling"}, {"type": "function", "name": "look"}]
    (said,) = models.create({**ask(), "tools": tools})["isthmus"]["diagnostics"]
    assert (said["path"], said["action"]) == ("tools[0]", "ignored")
    forced = models.post("/v1/responses", {**ask(), "tools": tools, "tool_choice": {"type": tools[0]["type"]}})
    assert (forced.status, forced.json["error"]["param"]) == (400, "tool_choice")
