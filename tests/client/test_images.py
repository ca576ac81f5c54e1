"""A `Bridge` draws with whoever its configuration names: no server, the same executor."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from isthmus import Bridge
from isthmus.config.schema import Config, Images
from isthmus.testing import ScriptedUpstream, chat

TOOL = {"type": "image_generation"}


def bridge_to(upstream: ScriptedUpstream, **images: Any) -> Bridge:
    place = {"base_url": upstream.base_url, "api_key": "k"}
    return Bridge({"deepseek": {"default": place}}, config=Config(images=Images(**images)))


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
async def test_a_model_draws_within_a_library(streamed: bool) -> None:
    steps: list[Any] = [chat(calls=[("call_1", "image_generation", {"prompt": "a fox"})]), chat("Here it is.")]
    with ScriptedUpstream.running(steps) as upstream:
        async with bridge_to(upstream, provider="demo") as bridge:
            run = await bridge.run("deepseek/m", "Draw a fox.", hosted=[TOOL], stream=streamed)
    assert (run.output, run.turns) == ("Here it is.", 1)
    assert "The image was made" in str(upstream.requests[1].json["messages"][-1])


@pytest.mark.parametrize("provider", ["", "none", "deepseek", "nobody"])
async def test_where_nobody_draws_that_is_said(provider: str) -> None:
    with ScriptedUpstream.running([chat("I cannot draw.")]) as upstream:
        async with bridge_to(upstream, provider=provider) as bridge:
            result = await bridge.chat("deepseek/m", "Draw a fox.", hosted=[TOOL])
    assert [(said["path"], said["action"]) for said in result.diagnostics] == [("tools[0]", "ignored")]


async def test_an_endpoint_of_its_own_draws_too() -> None:
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    steps: list[Any] = [
        chat(calls=[("call_1", "image_generation", {"prompt": "a fox"})]),
        {"data": [{"b64_json": picture}]},
        chat("Here it is."),
    ]
    with ScriptedUpstream.running(steps) as upstream:
        async with bridge_to(upstream, url=upstream.base_url, model="flux", api_key="sk-images") as bridge:
            await bridge.chat("deepseek/m", "Draw a fox.", hosted=[TOOL])
    drawn = upstream.requests[1]
    assert (drawn.target, drawn.headers["authorization"]) == ("/v1/images/generations", "Bearer sk-images")
    assert drawn.json == {"model": "flux", "prompt": "a fox"}
