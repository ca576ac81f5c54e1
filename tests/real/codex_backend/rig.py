"""A real `codex app-server` with a scripted Responses upstream behind it, on loopback, for one test."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec

import pytest

from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, ItemBegan, ItemEnded, Text
from isthmus.bridge.dialects.codex.dynamic_tools import assign_names, build_dynamic_tools
from isthmus.bridge.dialects.codex.wire import ThreadSpec, TurnSpec, text_input
from isthmus.errors import ConfigError
from isthmus.testing import Answer, ScriptedUpstream, Step, stream
from isthmus.upstream.codex.options import CodexOptions, find_binary
from isthmus.upstream.codex.process import CodexProcess, start_process
from isthmus.upstream.codex.supervisor import Backoff, Supervisor
from isthmus.upstream.codex.thread import CodexThread
from isthmus.upstream.codex.threads import Threads

try:
    BINARY: Path | None = find_binary()
except ConfigError:
    BINARY = None

real = [pytest.mark.real, pytest.mark.skipif(BINARY is None, reason="no codex binary: install `isthmus[codex]`")]

Arguments = ParamSpec("Arguments")
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 3},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
TIME = {"type": "function", "name": "get_time", "parameters": {"type": "object", "properties": {}}}


def in_loop(test: Callable[Arguments, Coroutine[Any, Any, None]]) -> Callable[Arguments, None]:
    """Run a coroutine test on a loop of its own, and never for longer than two minutes."""

    @functools.wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 120))

    return run


@dataclass(slots=True)
class Rig:
    upstream: ScriptedUpstream
    options: CodexOptions
    supervisor: Supervisor[CodexProcess]
    threads: Threads

    async def start(self, born: ThreadSpec, history: list[dict[str, Any]] | None = None) -> CodexThread:
        return await self.threads.open(await self.supervisor.process(), born, history or ())

    def bodies(self) -> list[dict[str, Any]]:
        return [request.json for request in self.upstream.requests]


@contextlib.asynccontextmanager
async def rig(folder: Path, *steps: Step, **fields: Any) -> AsyncIterator[Rig]:
    async with ScriptedUpstream(steps) as upstream, running(codex_options(folder, upstream.base_url, **fields)) as it:
        yield Rig(upstream, *it)


@contextlib.asynccontextmanager
async def running(options: CodexOptions) -> AsyncIterator[tuple[CodexOptions, Supervisor[CodexProcess], Threads]]:
    threads = Threads(options)
    supervisor = Supervisor(lambda: start_process(options, threads), backoff=Backoff(first=0.01))
    try:
        yield options, supervisor, threads
    finally:
        await supervisor.close()
        await threads.aclose()


def codex_options(folder: Path, base_url: str, **fields: Any) -> CodexOptions:
    assert BINARY is not None
    home, work = folder / "codex-home", folder / "work"
    home.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    provider = {
        "name": "scripted",
        "base_url": base_url,
        "wire_api": "responses",
        "request_max_retries": 0,
        "stream_max_retries": 0,
    }
    config = {"model_provider": "scripted", "model_providers": {"scripted": provider}}
    return CodexOptions(binary=BINARY, home=home, cwd=work, config=config, **fields)


def spec(*tools: dict[str, Any], choice: Any = "auto", model: str = "scripted-model", **fields: Any) -> ThreadSpec:
    declared = [tool if "function" in tool else {"type": "function", "function": tool} for tool in tools]
    names = assign_names([tool["function"]["name"] for tool in declared])
    offered = tuple(build_dynamic_tools(declared, choice, names))
    own_names = {codex: own for own, codex in names.items()}
    return ThreadSpec(model=model, tools=offered, tool_names=own_names, base_instructions="BASE", **fields)


def ask(text: str = "Hello?", **fields: Any) -> TurnSpec:
    return TurnSpec(items=(text_input(text),), **fields)


BOUNDS = (ItemBegan, ItemEnded)


def run(thread: CodexThread, turn: TurnSpec) -> AsyncGenerator[Delta, None]:
    """A new turn's first leg; a thread that has just had one rests in between."""
    _rest(thread)
    return _leg(thread, thread.run(turn))


def answer(thread: CodexThread, outputs: Mapping[str, Any]) -> AsyncGenerator[Delta, None]:
    """The next leg of the turn that waits for these outputs."""
    _rest(thread)
    return _leg(thread, thread.answer(outputs))


def _rest(thread: CodexThread) -> None:
    if thread.rests is not None:
        thread.rest()
        thread.take()


async def _leg(thread: CodexThread, begin: Awaitable[None]) -> AsyncGenerator[Delta, None]:
    await begin
    while deltas := await thread.read():
        for delta in deltas:
            yield delta


async def collect(leg: AsyncGenerator[Delta, None]) -> list[Delta]:
    """What is said, without the bounds of items."""
    async with contextlib.aclosing(leg):
        return [delta async for delta in leg if not isinstance(delta, BOUNDS)]


async def next_said(leg: AsyncGenerator[Delta, None]) -> Delta:
    """The next delta that says something."""
    while isinstance(delta := await anext(leg), BOUNDS):
        pass
    return delta


def text_of(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, Text))


def calls_of(deltas: list[Delta]) -> list[tuple[str | None, str, str]]:
    """(id, name, arguments) of every call, in order."""
    arguments = {delta.slot: delta.text for delta in deltas if isinstance(delta, CallArguments)}
    return [(delta.id, delta.name, arguments[delta.slot]) for delta in deltas if isinstance(delta, CallOpened)]


def tool_names(body: dict[str, Any]) -> list[str]:
    return [tool.get("name", tool["type"]) for tool in body.get("tools", [])]


def outputs_in(body: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(item["call_id"], item["output"]) for item in body["input"] if item["type"] == "function_call_output"]


def says(*pieces: str, thought: str = "") -> Answer:
    """A Responses stream with a message in these pieces, and perhaps a reasoning summary before it."""
    return stream([*_thinking(thought), *message_events(*pieces), completed()], done=False)


def calls(*made: tuple[str, str, str], thought: str = "", text: str = "") -> Answer:
    """A Responses stream that calls tools: (call id, name, argument text) each, perhaps after a thought and words."""
    events = [
        {
            "type": "response.output_item.done",
            "output_index": index,
            "item": {"type": "function_call", "id": f"fc_{index}", "call_id": c, "name": n, "arguments": a},
        }
        for index, (c, n, a) in enumerate(made)
    ]
    said = message_events(text) if text else []
    return stream([*_thinking(thought), *said, *events, completed()], done=False)


def message_events(*pieces: str) -> list[Any]:
    return [*opened_message(), *(text_delta(piece) for piece in pieces), closed_message("".join(pieces))]


def opened_message() -> list[Any]:
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    return [{"type": "response.output_item.added", "output_index": 0, "item": item}]


def text_delta(text: str) -> dict[str, Any]:
    return {
        "type": "response.output_text.delta",
        "item_id": "msg_1",
        "output_index": 0,
        "content_index": 0,
        "delta": text,
    }


def closed_message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    return {"type": "response.output_item.done", "output_index": 0, "item": item}


def completed() -> dict[str, Any]:
    return {"type": "response.completed", "response": {"id": "resp_1", "usage": USAGE}}


def _thinking(text: str) -> list[dict[str, Any]]:
    if not text:
        return []
    place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    added = {"type": "reasoning", "id": "rs_1", "summary": []}
    whole = {**added, "summary": [{"type": "summary_text", "text": text}]}
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": added},
        {"type": "response.reasoning_summary_part.added", **place, "part": {"type": "summary_text", "text": ""}},
        {"type": "response.reasoning_summary_text.delta", **place, "delta": text},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
    ]
