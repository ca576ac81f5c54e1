"""`image_generation` on models that know no such tool: the model calls a function, the client sees its image."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowing import Flow
from flowing_providers import provider_flow
from isthmus.testing import chat

TOOL = {"type": "image_generation"}
EVENTS = "response.image_generation_call."


@pytest.fixture
def drawing(tmp_path: Path) -> Iterator[Flow]:
    facts = 'uses = "openai-compatible"\nmodels = { "*" = { messages = { input = [%s] } } }'
    providers = {"blind": facts % "", "seeing": facts % '"image"'}
    with provider_flow(tmp_path, providers, extra="[images]\nprovider = 'demo'\n") as made:
        yield made


def paint(prompt: str = "a fox", **more: Any) -> Any:
    return chat(calls=[("call_1", "image_generation", {"prompt": prompt, **more})])


def ask(**more: Any) -> dict[str, Any]:
    return {"model": "blind/m", "input": "Draw a fox.", "tools": [TOOL], **more}


def image_of(response: dict[str, Any]) -> dict[str, Any]:
    return next(item for item in response["output"] if item["type"] == "image_generation_call")


def test_an_image_is_drawn_and_the_model_goes_on(drawing: Flow) -> None:
    drawing.script(paint(), chat("Here it is."))
    response = drawing.create(ask())
    image, said = response["output"]
    assert (image["type"], image["status"], image["revised_prompt"]) == ("image_generation_call", "completed", "a fox")
    assert base64.b64decode(image["result"]).startswith(b"\x89PNG")
    assert said["content"][0]["text"] == "Here it is."
    first, second = drawing.sent
    (tool,) = first["tools"]
    assert tool["function"]["name"] == "image_generation"
    assert list(tool["function"]["parameters"]["properties"]) == ["prompt"]
    call, result = second["messages"][-2:]
    assert call["tool_calls"][0]["function"]["name"] == "image_generation"
    assert "The image was made" in str(result["content"])
    assert image["result"] not in str(second), "this model sees no images"
    assert response["tool_usage"]["image_gen"]["total_tokens"] > 0


def test_streamed_it_is_the_same_in_the_documented_order(drawing: Flow) -> None:
    tool = {**TOOL, "partial_images": 2, "size": "256x256"}
    drawing.script(paint(), chat("Here."), paint(), chat("Here."))
    events, streamed = drawing.stream(ask(tools=[tool]))
    whole = drawing.create(ask(tools=[tool]))
    assert image_of(whole)["result"] == image_of(streamed)["result"]
    told = [event["type"].removeprefix(EVENTS) for event in events if event["type"].startswith(EVENTS)]
    assert told == ["in_progress", "generating", "partial_image", "partial_image", "completed"]
    partial = [event for event in events if event["type"] == f"{EVENTS}partial_image"]
    assert [event["partial_image_index"] for event in partial] == [0, 1]
    assert all(base64.b64decode(event["partial_image_b64"]).startswith(b"\x89PNG") for event in partial)


def test_a_model_that_sees_is_shown_it_now_and_later(drawing: Flow) -> None:
    drawing.script(paint(), chat("Here it is."), chat("It is blue."))
    response = drawing.create(ask(model="seeing/m"))
    made = image_of(response)["result"]
    assert made in str(drawing.sent[1])
    drawing.create(
        {"model": "seeing/m", "previous_response_id": response["id"], "input": "Which colour?", "tools": [TOOL]}
    )
    assert made in str(drawing.sent[2])
    assert drawing.sent[2]["messages"][: len(drawing.sent[1]["messages"])] == drawing.sent[1]["messages"]


def test_an_image_of_the_conversation_is_changed(drawing: Flow) -> None:
    drawing.script(paint(), chat("Here."), paint("bluer", change=True), chat("Bluer."))
    first = drawing.create(ask())
    assert "change" not in drawing.sent[0]["tools"][0]["function"]["parameters"]["properties"], "there is none yet"
    second = drawing.create(ask(previous_response_id=first["id"], input="Bluer."))
    assert "change" in drawing.sent[2]["tools"][0]["function"]["parameters"]["properties"]
    assert image_of(second)["action"] == "edit"
    drawing.script(paint("bluer"), chat("New."))
    assert image_of(drawing.create(ask()))["result"] != image_of(second)["result"], "what was there is a part of it"


def test_an_image_of_the_same_response_is_changed(drawing: Flow) -> None:
    drawing.script(paint(), paint("bluer", change=True), chat("Done."))
    first, second = drawing.create(ask())["output"][:2]
    assert (first["action"], second["action"]) == ("generate", "edit")


@pytest.mark.parametrize("action", ["edit", "generate"])
def test_the_client_may_say_which_it_is(drawing: Flow, action: str) -> None:
    drawing.script(paint("a fox"), chat("Here."))
    shown = image_of(drawing.create(ask()))["result"]
    message = {"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{shown}"}]}
    drawing.script(paint("bluer", change=action == "generate"), chat("Here."))
    made = drawing.create(ask(model="seeing/m", input=[message], tools=[{**TOOL, "action": action}]))
    assert image_of(made)["action"] == action


def test_a_failure_is_a_failed_item_that_the_model_reads(drawing: Flow) -> None:
    drawing.script(paint("something unspeakable"), chat("I could not draw that."))
    response = drawing.create(ask())
    image = image_of(response)
    assert (response["status"], image["status"], image["result"]) == ("completed", "failed", None)
    assert image["error"]["code"] == "invalid_prompt"
    assert "does not draw that" in image["error"]["message"]
    assert "does not draw that" in str(drawing.sent[1]["messages"][-1])
    drawing.script(paint("something unspeakable"), chat("Sorry."))
    events, _ = drawing.stream(ask())
    told = [event["type"].removeprefix(EVENTS) for event in events if event["type"].startswith(EVENTS)]
    assert told == ["in_progress", "generating"]


def test_options_are_decided_aloud(drawing: Flow) -> None:
    drawing.script(chat("Hi."))
    tool = {**TOOL, "size": "1792x1024", "background": "transparent", "model": "gpt-image-2", "quality": "low"}
    response = drawing.create(ask(tools=[tool]))
    (said,) = response["isthmus"]["diagnostics"]
    assert (said["path"], said["action"]) == ("tools[0]", "degraded")
    assert sorted(said["metadata"]["left_out"]) == ["background", "model", "size"]
    drawing.script(chat("Hi."))
    plain = drawing.create(ask(tools=[{**TOOL, "size": "auto", "quality": "auto", "background": "opaque"}]))
    assert plain["isthmus"]["diagnostics"] == []


def test_the_tool_runs_beside_a_search_for_tools_and_the_clients_own(drawing: Flow) -> None:
    later = {"type": "function", "name": "weather", "description": "The weather of a city.", "defer_loading": True}
    tools = [TOOL, {"type": "tool_search"}, later, {"type": "function", "name": "look"}]
    both = [("c1", "tool_search", {"query": "weather"}), ("c2", "image_generation", {"prompt": "a fox"})]
    next_ones = [("c3", "weather", {}), ("c4", "image_generation", {"prompt": "an owl"})]
    drawing.script(chat(calls=both), chat(calls=next_ones))
    response = drawing.create(ask(tools=tools))
    kinds = [item["type"] for item in response["output"]]
    assert kinds.count("image_generation_call") == 2
    assert {"tool_search_call", "tool_search_output", "function_call"} <= set(kinds)
    assert all(item["status"] == "completed" for item in response["output"] if "status" in item)


def test_without_images_the_tool_is_left_out_aloud(tmp_path: Path) -> None:
    with provider_flow(tmp_path, {"blind": 'uses = "openai-compatible"'}) as flow:
        flow.script(chat("I cannot draw."))
        (said,) = flow.create(ask())["isthmus"]["diagnostics"]
        assert (said["path"], said["action"]) == ("tools[0]", "ignored")
        assert "tools" not in flow.sent[0]


def test_nothing_of_it_is_loaded_before_somebody_wants_an_image(tmp_path: Path) -> None:
    """The demo draws where it is all there is; a server starts as soon as without."""
    code = (
        "import asyncio, sys\n"
        "from isthmus.config import load_config\n"
        "from isthmus.wiring import running_gateway\n"
        "async def main():\n"
        "    config = load_config(environ={'HOME': sys.argv[1]}).config\n"
        "    assert config.images.provider == 'demo'\n"
        "    async with running_gateway(config) as gateway:\n"
        "        print([name for name in sys.modules if 'images' in name or name == 'isthmus.demo.pictures'])\n"
        "        assert gateway.draws == 'demo/demo-image'\n"
        "asyncio.run(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.stdout == "[]\n", done.stderr
