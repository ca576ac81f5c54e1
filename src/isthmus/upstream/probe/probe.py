"""Carries the questions out: one request after another, each with a timeout, whatever comes back is an answer.

The key travels in the header and nowhere else: what a server says is freed from it before anybody sees it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from isthmus.addresses import behind
from isthmus.bridge.sse import SseParser
from isthmus.errors import UpstreamFailed
from isthmus.scrub import Scrub
from isthmus.upstream.probe.answers import Answer, Ask
from isthmus.upstream.probe.findings import Findings
from isthmus.upstream.probe.investigate import investigate
from isthmus.upstream.wire import Endpoint, Patience, Wire

_MAX: Final = 4 * 1024 * 1024
_READ: Final = 64 * 1024
_EXCERPT: Final = 300

Progress = Callable[[str, str], None]
"""Told of every question: the stage it belongs to, and the question."""


async def probe(
    base_url: str,
    *,
    key: str = "",
    model: str = "",
    patience: float = 120.0,
    progress: Progress = lambda stage, question: None,
) -> Findings:
    """Everything that can be found out about an endpoint; `UpstreamFailed` if it does not answer at all.

    `patience`: seconds to wait for one answer.
    """
    stage = ""

    def enter(title: str) -> None:
        nonlocal stage
        stage = title

    headers = {"authorization": f"Bearer {key}"} if key else {}
    waits = Patience(patience, patience, patience)
    wire = Wire(Endpoint("endpoint", base_url, headers, patience=waits, called="the endpoint"))
    steps = investigate(Findings(model=model), enter)
    try:
        ask = next(steps)
        while True:
            progress(stage, ask.title)
            ask = steps.send(await _carry_out(wire, ask))
    except StopIteration as done:
        findings: Findings = done.value
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
        return Answer(0, text=wire.failed("did not answer in time").message)
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
