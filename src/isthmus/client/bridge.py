"""The client: three rungs, never mixed up. `chat` asks once, `execute` carries calls out, `run` does both until done.

In: a `Connect`, which finds the line of a model. Out: results as values. Nothing global, nothing ambient: a client owns
its lines and its tools, and closes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

from isthmus.client.ask import ask_model
from isthmus.client.asked import build_request
from isthmus.client.blocking import block_on
from isthmus.client.foreign import Conversation, as_messages
from isthmus.client.limiter import Limiter, RateLimit
from isthmus.client.limits import Limits
from isthmus.client.line import Connect, Line, ModelInfo
from isthmus.client.loop import ToolLoop
from isthmus.client.options import (
    ChatOptions,
    Resumable,
    ResumeOptions,
    RunOptions,
    check_approvals,
    read_options,
    read_resume,
)
from isthmus.client.reconcile import extract_tool_calls_from_message
from isthmus.client.result import ChatResult, RunResult
from isthmus.client.retry import Retry
from isthmus.client.stream import RunStream
from isthmus.errors import RequestRefused
from isthmus.tools.context import Approval
from isthmus.tools.definition import Tool, ToolLike, as_tools
from isthmus.tools.execute import Rules
from isthmus.tools.mcp import MAX_TOOLS, PATIENCE, McpServer, McpTarget, join_tools, open_mcp
from isthmus.tools.messages import Message
from isthmus.tools.results import ToolResult
from isthmus.tools.toolset import Environment, ToolSet

T = TypeVar("T")


class BridgeClient:
    """One message model, every provider, tools that run. Use it as `async with`."""

    def __init__(
        self,
        connect: Connect,
        *,
        tools: Iterable[ToolLike] = (),
        limits: Limits | None = None,
        retry: Retry | None = None,
        rate_limit: RateLimit | None = None,
    ) -> None:
        self._connect = connect
        self._own_tools = as_tools(tools)
        self._limits = limits or Limits()
        self._retry = retry or Retry()
        self._rate_limit = rate_limit
        self._limiters: dict[str, Limiter] = {}
        self._servers: dict[str, McpServer] = {}
        self._leaving: list[McpServer] = []
        """Those that could not be used and are not gone yet: closed with the client."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection and every MCP server."""
        servers, self._servers, self._leaving = [*self._servers.values(), *self._leaving], {}, []
        await asyncio.gather(*(server.aclose() for server in servers))
        self._limiters.clear()
        await self._connect.aclose()

    @property
    def tools(self) -> list[Tool[..., Any]]:
        """The tools of calls that name none: the client's own, and those of its MCP servers."""
        return join_tools(self._own_tools, self._servers.values())

    # ── the three rungs ────────────────────────────────────────────────────────────────────────────

    async def chat(self, model: str | None, messages: Conversation, **options: Unpack[ChatOptions]) -> ChatResult:
        """One model call. Tools are offered, nothing is executed."""
        timeout = options.get("timeout")
        asked = read_options(model, options, self.tools, self._limits, self._retry)
        route = await self._connect.find(model)
        request = build_request(asked, route.model, as_messages(messages), asked.tool_choice)
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        asking = ask_model(route, request, retry=asked.retry, limiter=self._limiter(route.line), deadline=deadline)
        async with aclosing(asking) as steps:
            async for step in steps:
                if isinstance(step, ChatResult):
                    return step
        raise AssertionError("a model call ends in a result or in an exception")

    async def execute(
        self,
        calls: Message | Mapping[str, Any] | Sequence[Any],
        *,
        tools: Iterable[ToolLike] | None = None,
        deps: Any = None,
        limits: Limits | None = None,
        approvals: Mapping[str, Approval] | None = None,
        messages: Sequence[Message] = (),
    ) -> list[ToolResult]:
        """Carry out the calls of a message (or a list of calls): one result each, in call order, whatever happens."""
        bounds = limits or self._limits
        given = {"tool_calls": list(calls)} if isinstance(calls, Sequence) else calls
        wanted = extract_tool_calls_from_message(given)
        environment = Environment(
            deps=deps,
            messages=tuple(messages),
            rules=Rules(bounds.tool_timeout, bounds.cleanup_grace, bounds.max_result_chars),
            concurrency=bounds.max_concurrency,
            max_calls=bounds.max_calls_per_reply,
            approvals=approvals or {},
        )
        return await ToolSet(self.tools if tools is None else tools).execute_all(wanted, environment)

    @overload
    async def run(
        self, model: str | None, messages: Conversation, *, output_type: None = None, **options: Unpack[RunOptions]
    ) -> RunResult[str]: ...
    @overload
    async def run(
        self, model: str | None, messages: Conversation, *, output_type: type[T], **options: Unpack[RunOptions]
    ) -> RunResult[T]: ...
    @overload
    async def run(
        self,
        model: str | None,
        messages: Conversation,
        *,
        output_type: Mapping[str, Any],
        **options: Unpack[RunOptions],
    ) -> RunResult[Any]: ...
    async def run(
        self, model: str | None, messages: Conversation, *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> RunResult[Any]:
        """Ask, carry out the calls, ask again, until the model answers or a limit is met."""
        async with self._stream(model, messages, output_type, options) as events:
            return await events.drain()

    @overload
    def run_stream(
        self, model: str | None, messages: Conversation, *, output_type: None = None, **options: Unpack[RunOptions]
    ) -> RunStream[str]: ...
    @overload
    def run_stream(
        self, model: str | None, messages: Conversation, *, output_type: type[T], **options: Unpack[RunOptions]
    ) -> RunStream[T]: ...
    @overload
    def run_stream(
        self,
        model: str | None,
        messages: Conversation,
        *,
        output_type: Mapping[str, Any],
        **options: Unpack[RunOptions],
    ) -> RunStream[Any]: ...
    def run_stream(
        self, model: str | None, messages: Conversation, *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> RunStream[Any]:
        """The same run, with its events as they happen."""
        return self._stream(model, messages, output_type, options)

    @overload
    async def resume(
        self, run: RunResult[T], *, output_type: None = None, **options: Unpack[ResumeOptions]
    ) -> RunResult[T]: ...
    @overload
    async def resume(
        self, run: Sequence[Message], *, output_type: None = None, **options: Unpack[ResumeOptions]
    ) -> RunResult[str]: ...
    @overload
    async def resume(
        self, run: Resumable, *, output_type: type[T], **options: Unpack[ResumeOptions]
    ) -> RunResult[T]: ...
    @overload
    async def resume(
        self, run: Resumable, *, output_type: Mapping[str, Any], **options: Unpack[ResumeOptions]
    ) -> RunResult[Any]: ...
    async def resume(
        self, run: Resumable, *, output_type: Any = None, **options: Unpack[ResumeOptions]
    ) -> RunResult[Any]:
        """Go on with a run that waits: `approvals` says what becomes of its pending calls.

        Takes the result of the run, and gives one of the same type; or only its messages (saved elsewhere, perhaps),
        with `model`, `tools` and the other options of `run`.
        """
        async with self._resumed(run, output_type, options) as events:
            return await events.drain()

    @overload
    def resume_stream(
        self, run: RunResult[T], *, output_type: None = None, **options: Unpack[ResumeOptions]
    ) -> RunStream[T]: ...
    @overload
    def resume_stream(
        self, run: Sequence[Message], *, output_type: None = None, **options: Unpack[ResumeOptions]
    ) -> RunStream[str]: ...
    @overload
    def resume_stream(
        self, run: Resumable, *, output_type: type[T], **options: Unpack[ResumeOptions]
    ) -> RunStream[T]: ...
    @overload
    def resume_stream(
        self, run: Resumable, *, output_type: Mapping[str, Any], **options: Unpack[ResumeOptions]
    ) -> RunStream[Any]: ...
    def resume_stream(
        self, run: Resumable, *, output_type: Any = None, **options: Unpack[ResumeOptions]
    ) -> RunStream[Any]:
        """The same, with its events."""
        return self._resumed(run, output_type, options)

    # ── for programs without a loop ────────────────────────────────────────────────────────────────

    def chat_sync(self, model: str | None, messages: Conversation, **options: Unpack[ChatOptions]) -> ChatResult:
        """`chat` for scripts."""
        return block_on(lambda: self._then_hang_up(self.chat(model, messages, **options)), "chat")

    @overload
    def run_sync(
        self, model: str | None, messages: Conversation, *, output_type: None = None, **options: Unpack[RunOptions]
    ) -> RunResult[str]: ...
    @overload
    def run_sync(
        self, model: str | None, messages: Conversation, *, output_type: type[T], **options: Unpack[RunOptions]
    ) -> RunResult[T]: ...
    @overload
    def run_sync(
        self,
        model: str | None,
        messages: Conversation,
        *,
        output_type: Mapping[str, Any],
        **options: Unpack[RunOptions],
    ) -> RunResult[Any]: ...
    def run_sync(
        self, model: str | None, messages: Conversation, *, output_type: Any = None, **options: Unpack[RunOptions]
    ) -> RunResult[Any]:
        """`run` for scripts."""

        async def work() -> RunResult[Any]:
            async with self._stream(model, messages, output_type, options) as events:
                return await events.drain()

        return block_on(lambda: self._then_hang_up(work()), "run")

    @overload
    def resume_sync(
        self, run: RunResult[T], *, output_type: None = None, **options: Unpack[ResumeOptions]
    ) -> RunResult[T]: ...
    @overload
    def resume_sync(
        self, run: Sequence[Message], *, output_type: None = None, **options: Unpack[ResumeOptions]
    ) -> RunResult[str]: ...
    @overload
    def resume_sync(
        self, run: Resumable, *, output_type: type[T], **options: Unpack[ResumeOptions]
    ) -> RunResult[T]: ...
    @overload
    def resume_sync(
        self, run: Resumable, *, output_type: Mapping[str, Any], **options: Unpack[ResumeOptions]
    ) -> RunResult[Any]: ...
    def resume_sync(
        self, run: Resumable, *, output_type: Any = None, **options: Unpack[ResumeOptions]
    ) -> RunResult[Any]:
        """`resume` for scripts."""

        async def work() -> RunResult[Any]:
            async with self._resumed(run, output_type, options) as events:
                return await events.drain()

        return block_on(lambda: self._then_hang_up(work()), "resume")

    # ── models, MCP ────────────────────────────────────────────────────────────────────────────────

    async def models(self) -> list[ModelInfo]:
        """Every model that is written down for the providers that are set up. Others can be used all the same."""
        return [model for line in await self._connect.lines() for model in await line.models()]

    async def model(self, name: str | None = None) -> ModelInfo:
        """What is known about one model; for an unknown one that is only its name."""
        route = await self._connect.find(name)
        return route.line.describe(route.model)

    async def add_mcp(
        self,
        target: McpTarget,
        *,
        name: str,
        required: bool = True,
        within: float = PATIENCE,
        max_tools: int = MAX_TOOLS,
    ) -> McpServer | None:
        """Connect an MCP server (`stdio(…)` or `http(…)`): its tools join `bridge.tools` as `<name>_<tool>`.

        A server that cannot be reached, or does not answer `within` its seconds, raises `ConfigError`; with
        `required=False` it is logged and left out.
        """
        if name in self._servers:
            raise RequestRefused(f"there is already an MCP server `{name}`; choose another name", param="name")
        self._leaving = [server for server in self._leaving if not server.gone]
        self._servers[name] = server = McpServer(target, name, max_tools=max_tools)  # its name is taken from now on
        opened = False
        try:
            opened = await open_mcp(server, required=required, within=within)
        finally:
            if not opened and self._servers.get(name) is server:
                self._leaving.append(self._servers.pop(name))
        return server if opened else None

    # ── small things ───────────────────────────────────────────────────────────────────────────────

    def _stream(
        self, model: str | None, messages: Conversation, output_type: Any, options: Mapping[str, Any]
    ) -> RunStream[Any]:
        asked = read_options(model, options, self.tools, self._limits, self._retry, output_type)
        given = as_messages(messages)

        async def start() -> ToolLoop:
            route = await self._connect.find(model)
            return ToolLoop(asked, route, given, limiter=self._limiter(route.line), hear=options.get("on_event"))

        return RunStream(start)

    def _resumed(self, run: Resumable, output_type: Any, options: ResumeOptions) -> RunStream[Any]:
        approvals = options.get("approvals") or {}
        check_approvals(approvals, run)
        fresh = read_options(options.get("model"), options, self.tools, self._limits, self._retry, output_type)
        asked = read_resume(run, options, fresh)
        before = run if isinstance(run, RunResult) else None
        messages = as_messages(run.messages if isinstance(run, RunResult) else run)

        async def start() -> ToolLoop:
            route = await self._connect.find(asked.model)
            return ToolLoop(
                asked,
                route,
                messages,
                limiter=self._limiter(route.line),
                approvals=approvals,
                resuming=True,
                before=before,
                hear=options.get("on_event"),
            )

        return RunStream(start)

    def _limiter(self, line: Line) -> Limiter | None:
        if self._rate_limit is None:
            return None
        return self._limiters.setdefault(line.credential or line.provider, Limiter(self._rate_limit))

    async def _then_hang_up(self, work: Coroutine[Any, Any, T]) -> T:
        """Connections belong to the loop that opened them: with a loop per call they cannot outlive it."""
        try:
            return await work
        finally:
            self._limiters.clear()
            await self._connect.aclose()
