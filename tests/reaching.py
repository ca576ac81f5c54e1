"""The Bridge client at the end of every wire: one scene, told in each dialect, over real sockets.

    async with reach("chat", [scene("Hello")]) as (bridge, upstream): ...

`chat`: Chat Completions, in-process. `responses`: the provider's own Responses endpoint, in-process. `gateway`: a real
gateway server in between, which speaks Chat Completions upstream. All three call the provider `openai`, so that
transcripts can be compared whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager
from typing import Any

from isthmus import tool
from isthmus.client.retry import Retry
from isthmus.testing import ScriptedUpstream, Step, chat
from isthmus.wiring_bridge import Bridge
from serving import running_gateway_server
from speaking_responses import native

WIRES = ("chat", "responses", "gateway")
MODEL = "openai/gpt-4o"
QUICK = Retry(attempts=3, base=0.001, cap=0.002)

Scene = Callable[[str], Step]
"""A step of the script, once the wire is known."""


def scene(text: str | None = None, **answer: Any) -> Scene:
    """What the model says, in whatever dialect the wire speaks."""
    return lambda wire: native(text, **answer) if wire == "responses" else chat(text, **answer)


def same(step: Step) -> Scene:
    """A step that is the same on every wire: an HTTP error, a silence."""
    return lambda wire: step


@tool
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


THREE_TURNS = [
    scene("Let me see.", calls=[("call_a", "double", {"number": 21}), ("call_b", "shout", {"text": "hi"})]),
    scene(calls=[("call_c", "double", {"number": "4"})]),
    scene("42, HI and 8."),
]


@asynccontextmanager
async def reach(
    wire: str, script: Iterable[Scene] = (), *, strict: bool = True, **options: Any
) -> AsyncIterator[tuple[Bridge, ScriptedUpstream]]:
    """A client on this wire, and the upstream at its end."""
    options = {"retry": QUICK, **options}
    steps = [one(wire) for one in script]
    with ExitStack() as stack:
        # In a thread of its own: it goes on answering while this loop is busy, and hangs alone.
        upstream = stack.enter_context(ScriptedUpstream.running(steps, strict=strict))
        if wire == "gateway":
            server = stack.enter_context(running_gateway_server(gateway_toml(upstream.base_url)))
            bridge = Bridge.remote(server.url, **options)
        else:
            place = {"base_url": upstream.base_url, "api_key": "sk-test", "dialect": wire}
            bridge = Bridge({"openai": {"default": place}}, **options)
        async with bridge:
            yield bridge, upstream


def gateway_toml(base_url: str) -> str:
    return f"""
[models]
demo = false
[store]
url = "memory:"
[server]
port = 0
[providers.openai]
dialect = "chat"
api_key = "sk-test"
base_url = "{base_url}"
retries = 0
"""


def results_sent(body: dict[str, Any]) -> dict[str, str]:
    """Call id → what the provider was told about it, in either dialect."""
    if "messages" in body:
        return {one["tool_call_id"]: one["content"] for one in body["messages"] if one["role"] == "tool"}
    return {one["call_id"]: one["output"] for one in body["input"] if one["type"] == "function_call_output"}
