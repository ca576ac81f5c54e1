"""Carries the questions out: one request after another, each with a timeout, whatever comes back is an answer.

The key travels in the header and nowhere else: what a server says is freed from it before anybody sees it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from isthmus.addresses import behind
from isthmus.bridge.sse import SseParser
from isthmus.errors import UpstreamFailed
from isthmus.scrub import Scrub
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.probe.answers import Answer, Ask, tokens_of
from isthmus.upstream.probe.findings import Findings, Spent
from isthmus.upstream.probe.investigate import investigate
from isthmus.upstream.probe.questions import ROOM
from isthmus.upstream.wire import Wire

_MAX: Final = 4 * 1024 * 1024
_READ: Final = 64 * 1024
_EXCERPT: Final = 300

Progress = Callable[[str, str], None]
"""Told of every question: the stage it belongs to, and the question."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a probe may cost. Questions that would go beyond are not asked, and what they ask stays unknown."""

    seconds: float = 900.0
    requests: int = 80
    tokens: int = 40_000
    """Those that the model writes, as the server counts them."""
    answer_tokens: int = ROOM
    """Most of one answer."""
    answer_seconds: float = 120.0

    def leave_room(self, spent: Spent) -> bool:
        return spent.requests < self.requests and spent.tokens < self.tokens and spent.seconds < self.seconds


DEFAULT_BOUNDS: Final = Bounds()


async def probe(
    base_url: str,
    *,
    key: str = "",
    model: str = "",
    bounds: Bounds = DEFAULT_BOUNDS,
    progress: Progress = lambda stage, question: None,
) -> Findings:
    """Everything that can be found out about an endpoint; `UpstreamFailed` if it does not answer at all."""
    stage = ""

    def enter(title: str) -> None:
        nonlocal stage
        stage = title

    headers = {"authorization": f"Bearer {key}"} if key else {}
    waits = Patience(bounds.answer_seconds, bounds.answer_seconds, bounds.answer_seconds)
    wire = Wire(Endpoint("endpoint", base_url, headers, patience=waits, called="the endpoint"))
    steps = investigate(Findings(model=model), enter, room=bounds.answer_tokens)
    now = asyncio.get_running_loop().time
    began, spent = now(), Spent()
    try:
        ask = next(steps)
        while True:
            if not bounds.leave_room(spent):
                spent = replace(spent, unasked=spent.unasked + 1)
                ask = steps.send(Answer(0, text="the bounds of the probe leave no room for this question"))
                continue
            progress(stage, ask.title)
            answer = await _carry_out(wire, ask)
            spent = replace(
                spent, requests=spent.requests + 1, tokens=spent.tokens + tokens_of(answer), seconds=now() - began
            )
            ask = steps.send(answer)
    except StopIteration as done:
        findings: Findings = done.value
        findings.spent = spent
        return findings
    finally:
        await wire.aclose()


async def _carry_out(wire: Wire, ask: Ask) -> Answer:
    endpoint = wire.endpoint
    data = None if ask.body is None else msgspec.json.encode(ask.body)
    try:
        async with asyncio.timeout(endpoint.patience.first_byte):
            method = "GET" if data is None else "POST"
            incoming = await wire.send(data, method=method, url=behind(endpoint.url, ask.path))
            try:
                said = b""
                while len(said) < _MAX and (piece := await incoming.read()):
                    said += piece
            finally:
                incoming.close()
        return _answer(incoming.status, said, incoming.kind == "text/event-stream", wire.scrubber.text)
    except TimeoutError:
        return Answer(0, text=wire.failed("did not answer in time").message, late=True)
    except UpstreamFailed as failure:
        return Answer(0, text=failure.message)


def _answer(status: int, data: bytes, streamed: bool, scrub: Scrub) -> Answer:
    # Scrubbed before it is cut: half a key would not be found.
    excerpt = " ".join(scrub(data[:_READ].decode(errors="replace")).split())[:_EXCERPT]
    if streamed:
        parser = SseParser()
        events = [_decode(event) for event in [*parser.feed(data), *parser.end()]]
        return Answer(status, None, tuple(event for event in events if event is not None), excerpt)
    return Answer(status, _decode(data), (), excerpt)


def _decode(data: bytes) -> object:
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):  # broken JSON, bytes that are no text, a nest without an end
        return None
