"""The Codex backend: a body of the `codex` dialect → a thread, a turn, and the deltas of one leg of it.

A request finds the thread that already knows its past, where there is one: a turn that waits for exactly these
tool outputs goes on, and a conversation that is idle gets its next turn. In every other case (a restart, a timeout,
an edited past, other tools) a new thread is given the history and the conversation goes on from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from isthmus.bridge.deltas import Delta
from isthmus.bridge.dialects.codex import resume
from isthmus.bridge.dialects.codex.wire import Sandbox, ThreadSpec, TurnSpec
from isthmus.bridge.types.plan import Plan
from isthmus.errors import IsthmusError, UpstreamFailed
from isthmus.log import tell
from isthmus.protocol.json import JsonObject, deep_merge
from isthmus.upstream.codex.failures import CodexGone, RpcRefused
from isthmus.upstream.codex.leg import Leg
from isthmus.upstream.codex.methods import ToolOutput
from isthmus.upstream.codex.options import ProcessOptions
from isthmus.upstream.codex.process import CodexProcess
from isthmus.upstream.codex.session import CodexSessions
from isthmus.upstream.codex.start import Starter
from isthmus.upstream.codex.supervisor import Supervisor
from isthmus.upstream.codex.thread import CodexThread
from isthmus.upstream.naming import named

log = logging.getLogger("isthmus.codex")

QUICK: Final = 5.0
"""Seconds within which a stream's upstream may still refuse with an HTTP status of its own."""


@dataclass(frozen=True, slots=True)
class CodexOptions:
    """What the operator decides about one Codex provider."""

    process: ProcessOptions
    own_tools: bool = False
    """Whether Codex may use tools of its own; otherwise it is only a model."""
    sandbox: Sandbox = "read-only"
    max_threads: int = 100
    hold: float = 600.0
    """Seconds that a turn waits for the client's tool outputs."""
    idle: float = 900.0
    """Seconds after which a conversation that nobody continues is closed."""
    silence: float = 600.0
    """Seconds without a delta after which a leg is given up."""


@dataclass(frozen=True, slots=True)
class _Parked:
    """A thread between two requests of its client."""

    thread: CodexThread
    head: str


class CodexBackend:
    """A provider behind a `codex app-server`. Make it with `open_codex`."""

    def __init__(self, provider: str, options: CodexOptions, starter: Starter, folder: Path) -> None:
        self._provider = provider
        self._options = options
        self._starter = starter
        self._folder = folder
        self._supervisor: Supervisor[CodexProcess] = Supervisor(starter.start)
        self._sessions = CodexSessions(
            self._supervisor,
            max_threads=options.max_threads,
            idle_seconds=options.idle,
            held_seconds=options.hold,
        )
        self._parked: dict[str, _Parked] = {}
        self._warming: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Start the process in the background: the first request should not have to wait for it."""
        await self._sessions.__aenter__()
        self._warming = asyncio.create_task(self._warm_up())

    @contextlib.asynccontextmanager
    async def send(self, plan: Plan, body: JsonObject) -> AsyncIterator[AsyncIterator[Sequence[Delta]]]:
        try:
            leg = await self._accepted_leg(body, QUICK if plan.stream else None)
        except UpstreamFailed as failure:
            named(failure, self._provider)
            raise
        try:
            yield leg.read()
        finally:
            await leg.close()
            if leg.ended:
                await self._park(leg, body)

    async def ready(self) -> str | None:
        health = self._sessions.health()
        if health.state in ("ready", "idle"):
            return None
        return f"{health.state}: {health.last_failure}" if health.last_failure else health.state

    async def models(self) -> list[JsonObject]:
        """The models that this login can use, as the program lists them."""
        return [model for model in await self._sessions.models() if not model.get("hidden")]

    async def aclose(self) -> None:
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait({self._warming})
        self._parked = {}
        await self._sessions.close()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _warm_up(self) -> None:
        try:
            await self._supervisor.process()
        except IsthmusError as error:
            tell(log, "warning", "codex.unavailable", provider=self._provider, reason=error.message)

    async def _accepted_leg(self, body: JsonObject, patience: float | None) -> Leg:
        """Nothing was told yet: whoever finds its thread gone begins again with the history, once."""
        thread = await self._find_thread(body)
        if thread is not None:
            try:
                return await self._start_leg(body, thread, patience)
            except (CodexGone, RpcRefused) as lost:
                tell(log, "info", "codex.thread.lost", provider=self._provider, reason=lost.message)
        try:
            return await self._start_leg(body, None, patience)
        except CodexGone as lost:
            tell(log, "warning", "codex.process.lost", provider=self._provider, reason=lost.message)
        return await self._start_leg(body, None, patience)

    async def _start_leg(self, body: JsonObject, thread: CodexThread | None, patience: float | None) -> Leg:
        outputs = None
        if thread is None:
            await self._supervisor.process()  # only a running one knows what its threads need
            thread = await self._sessions.start(self._thread_spec(body), body.get("history", ()))
        elif thread.pending:
            outputs = resume.read_outputs(body)
        else:
            await self._catch_up(thread, body)
        if outputs is not None:
            deltas = thread.answer({call_id: ToolOutput(output) for call_id, output in outputs.outputs.items()})
        else:
            deltas = thread.run(_turn_spec(body))
        leg = Leg(self._provider, thread, deltas, silence=self._options.silence)
        try:
            await leg.accepted(patience)
        except BaseException:
            await leg.close()
            raise
        return leg

    async def _find_thread(self, body: JsonObject) -> CodexThread | None:
        """The thread that goes on with this conversation; it is taken, so that nobody else can have it too."""
        outputs = resume.read_outputs(body)
        if outputs is not None:
            parked = self._parked.pop(outputs.key, None)
            if parked is None or not parked.thread.alive or set(parked.thread.pending) != set(outputs.outputs):
                return None
            if parked.head == resume.turn_head(body):
                return parked.thread
            await parked.thread.close()  # the client wants something else now: nobody will answer this turn
            return None
        said = resume.read_continuation(body)
        parked = self._parked.get(said.key) if said is not None else None
        if said is None or parked is None or parked.head != resume.thread_head(body):
            return None
        del self._parked[said.key]
        return parked.thread if parked.thread.alive and parked.thread.state == "idle" else None

    async def _catch_up(self, thread: CodexThread, body: JsonObject) -> None:
        """What came between the thread's last words and the new input."""
        said = resume.read_continuation(body)
        if said is not None and said.news:
            await thread.inject(said.news)

    async def _park(self, leg: Leg, body: JsonObject) -> None:
        """Remember where the conversation stands, so that its next request finds its thread."""
        thread = leg.thread
        if not thread.alive:
            return
        if thread.pending:
            key, head = resume.waiting_key(resume.past_of(body), thread.pending), resume.turn_head(body)
        elif leg.text:
            key, head = resume.said_key(body, leg.text), resume.thread_head(body)
        else:
            return
        before = self._parked.get(key)
        self._parked[key] = _Parked(thread, head)
        if before is not None and before.thread is not thread:
            await before.thread.close()
        if len(self._parked) > 2 * self._options.max_threads:
            self._parked = {key: parked for key, parked in self._parked.items() if parked.thread.alive}

    def _thread_spec(self, body: JsonObject) -> ThreadSpec:
        options = self._options
        instructions = body["baseInstructions"]
        return ThreadSpec(
            model=body["model"],
            tools=tuple(body.get("dynamicTools", ())),
            tool_names=body.get("toolNames", {}),
            base_instructions=None if options.own_tools else instructions,
            developer_instructions=instructions or None if options.own_tools else None,
            model_only=not options.own_tools,
            config=deep_merge(self._starter.thread_config, body.get("config", {})),
            cwd=str(options.process.cwd) if options.process.cwd is not None else None,
            approval_policy="on-request" if options.own_tools else "never",
            sandbox=options.sandbox if options.own_tools else "read-only",
        )


async def open_codex(provider: str, options: CodexOptions) -> CodexBackend:
    """A backend whose process is being started; close it with `aclose`."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="isthmus-codex-"))
    process = options.process
    if process.cwd is None:
        process = replace(process, cwd=folder)
    starter = Starter(provider, process, catalog=None if options.own_tools else folder / "models.json")
    backend = CodexBackend(provider, replace(options, process=process), starter, folder)
    await backend.begin()
    return backend


def _turn_spec(body: JsonObject) -> TurnSpec:
    return TurnSpec(
        items=tuple(body["input"]),
        effort=body.get("effort"),
        summary=body.get("summary"),
        output_schema=body.get("outputSchema"),
    )
