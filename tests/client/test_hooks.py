"""A `Bridge` asks the hooks of its configuration: no server, the same hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus import Bridge
from isthmus.config.schema import Config, Hooks
from isthmus.errors import RequestRefused
from isthmus.testing import ScriptedUpstream, chat

EXAMPLES = Path(__file__).parents[2] / "examples" / "hooks"
ADDRESS = "ann@example.org"


def bridge_to(upstream: ScriptedUpstream, *uses: str) -> Bridge:
    place = {"base_url": upstream.base_url, "api_key": "k"}
    hooks = Hooks(uses=list(uses), folder=str(EXAMPLES))
    return Bridge({"deepseek": {"default": place}}, config=Config(hooks=hooks))


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
async def test_what_is_redacted_comes_back(streamed: bool) -> None:
    with ScriptedUpstream.running(default=chat("I wrote to <email-1>.", pieces=9)) as upstream:
        async with bridge_to(upstream, "redact.py:Redact") as bridge:
            result = await bridge.chat("deepseek/m", f"write to {ADDRESS}", stream=streamed)
    assert result.text == f"I wrote to {ADDRESS}."
    assert ADDRESS not in upstream.requests[0].body.decode()
    assert {said["code"] for said in result.diagnostics} == {"bridge.hook.changed"}


async def test_what_is_refused_is_raised_and_nothing_is_sent() -> None:
    with ScriptedUpstream.running(default=chat("never")) as upstream:
        async with bridge_to(upstream, "guard.py:Guard") as bridge:
            with pytest.raises(RequestRefused, match="project heron") as refused:
                await bridge.chat("deepseek/m", "What is Project Heron?")
    assert refused.value.code == "refused_by_hook"
    assert upstream.requests == []


async def test_an_answer_that_is_refused_is_raised_too() -> None:
    with ScriptedUpstream.running(default=chat("It is Project Kestrel.")) as upstream:
        async with bridge_to(upstream, "guard.py:Guard") as bridge:
            with pytest.raises(RequestRefused, match="must not be told"):
                await bridge.chat("deepseek/m", "What is it?")
