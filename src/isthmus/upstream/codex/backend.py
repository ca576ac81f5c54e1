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
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from isthmus.bridge.deltas import Delta
from isthmus.bridge.dialects.codex import resume
from isthmus.bridge.dialects.codex.wire import ThreadSpec, TurnSpec
from isthmus.bridge.limits import DEFAULT_ANSWER, AnswerLimits
from isthmus.bridge.types.plan import Plan
from isthmus.errors import UpstreamFailed
from isthmus.log import tell
from isthmus.ports import OURS, Behalf
from isthmus.protocol.json import JsonObject, deep_merge
from isthmus.upstream.codex.failures import CodexGone, RpcRefused
from isthmus.upstream.codex.leg import Begin, Leg
from isthmus.upstream.codex.options import CodexOptions
from isthmus.upstream.codex.process import CodexProcess
from isthmus.upstream.codex.start import Starter
from isthmus.upstream.codex.supervisor import Health, Supervisor
from isthmus.upstream.codex.thread import CodexThread
from isthmus.upstream.codex.threads import Threads
from isthmus.upstream.naming import named

log = logging.getLogger("isthmus.codex")

QUICK: Final = 5.0
"""Seconds within which a stream's upstream may still refuse with an HTTP status of its own."""


class CodexBackend:
    """A provider behind a `codex app-server`. Make it with `open_codex`."""

    def __init__(
        self, provider: str, options: CodexOptions, folder: Path, limits: AnswerLimits = DEFAULT_ANSWER
    ) -> None:
        self._provider = provider
        self._limits = limits
        self._options = options
        self._folder = folder
        self._threads = Threads(options)
        self._starter = Starter(provider, options, self._threads, folder=folder)
        self._supervisor: Supervisor[CodexProcess] = Supervisor(self._starter.start, name=provider)
        self._supervisor.begin()  # the first request should not have to wait for it

    @contextlib.asynccontextmanager
    async def send(
        self, plan: Plan, body: JsonObject, behalf: Behalf = OURS
    ) -> AsyncIterator[AsyncIterator[Sequence[Delta]]]:
        try:
            leg = await self._accepted_leg(body, QUICK if plan.stream else None)
        except UpstreamFailed as failure:
            named(failure, self._provider)
            raise
        try:
            yield leg.read()
        finally:
            await self._leave(leg, body)

    async def ready(self) -> str | None:
        health = self.health()
        if health.state in ("ready", "idle"):
            return None
        return f"{health.state}: {health.last_failure}" if health.last_failure else health.state

    def health(self) -> Health:
        return self._supervisor.health()

    async def models(self) -> list[JsonObject]:
        """The models that this login can use, as the program lists them, page by page."""
        process = await self._supervisor.process()
        models: list[JsonObject] = []
        cursor: str | None = None
        while True:
            page = await process.request("model/list", {"cursor": cursor} if cursor else {})
            models += [model for model in page.get("data") or () if not model.get("hidden")]
            cursor = page.get("nextCursor")
            if not cursor:
                return models

    async def aclose(self) -> None:
        await self._supervisor.close()
        await self._threads.aclose()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _accepted_leg(self, body: JsonObject, patience: float | None) -> Leg:
        """Nothing was told yet: whoever finds its thread gone begins again with the history, once."""
        try:
            if (leg := self._next_leg(body)) is not None:
                return await _accepted(leg, patience)
        except (CodexGone, RpcRefused) as lost:
            tell(log, "info", "codex.thread.lost", provider=self._provider, reason=lost.message)
        try:
            return await _accepted(await self._first_leg(body), patience)
        except CodexGone as lost:
            tell(log, "warning", "codex.process.lost", provider=self._provider, reason=lost.message)
        return await _accepted(await self._first_leg(body), patience)

    def _next_leg(self, body: JsonObject) -> Leg | None:
        """Of the thread that goes on with this conversation, if there is one."""
        outputs = resume.read_outputs(body)
        if outputs is not None:
            thread = self._threads.take(outputs.key, resume.turn_head(body))
            return self._leg(thread, partial(thread.answer, outputs.outputs)) if thread is not None else None
        said = resume.read_continuation(body)
        thread = self._threads.take(said.key, resume.thread_head(body)) if said is not None else None
        if said is None or thread is None:
            return None
        return self._leg(thread, partial(_catch_up, thread, said.news, body))

    async def _first_leg(self, body: JsonObject) -> Leg:
        process = await self._supervisor.process()  # only a running one knows what its threads need
        thread = await self._threads.open(process, self._thread_spec(body), body.get("history", ()))
        return self._leg(thread, partial(thread.run, _turn_spec(body)))

    def _leg(self, thread: CodexThread, begin: Begin) -> Leg:
        return Leg(self._provider, thread, begin, silence=self._options.silence, limits=self._limits)

    async def _leave(self, leg: Leg, body: JsonObject) -> None:
        """Remember where the conversation stands, so that its next request finds its thread; or let go of it."""
        thread = leg.thread
        if leg.cut:
            thread.close()  # it knows more than was told
        elif thread.state == "busy" and thread.rests == "held":
            key = resume.waiting_key(resume.past_of(body), thread.pending)
            self._threads.keep(thread, key, resume.turn_head(body))
        elif thread.state == "busy" and thread.rests == "idle" and leg.text:
            self._threads.keep(thread, resume.said_key(body, leg.text), resume.thread_head(body))
        else:
            thread.close()
        await leg.leave()

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
            cwd=str(options.cwd) if options.cwd is not None else None,
            approval_policy="on-request" if options.own_tools else "never",
            sandbox=options.sandbox if options.own_tools else "read-only",
        )


async def open_codex(provider: str, options: CodexOptions, limits: AnswerLimits = DEFAULT_ANSWER) -> CodexBackend:
    """A backend whose process is being started; close it with `aclose`."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="isthmus-codex-"))
    return CodexBackend(provider, replace(options, cwd=options.cwd or folder), folder, limits)


async def _accepted(leg: Leg, patience: float | None) -> Leg:
    try:
        await leg.accepted(patience)
    except BaseException:
        leg.thread.close()
        await leg.leave()
        raise
    return leg


async def _catch_up(thread: CodexThread, news: Sequence[JsonObject], body: JsonObject) -> None:
    """What came between the thread's last words and the new input, then its next turn."""
    await thread.inject(news)
    await thread.run(_turn_spec(body))


def _turn_spec(body: JsonObject) -> TurnSpec:
    return TurnSpec(
        items=tuple(body["input"]),
        effort=body.get("effort"),
        summary=body.get("summary"),
        output_schema=body.get("outputSchema"),
    )
