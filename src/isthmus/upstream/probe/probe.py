"""Carries the questions out: one request after another, each with a timeout, whatever comes back is an answer.

The key travels in the header and nowhere else: what a server says is freed from it before anybody sees it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import aiohttp
import msgspec

from isthmus.bridge.sse import SseParser
from isthmus.scrub import Scrub, Scrubber, Secret, url_secrets
from isthmus.upstream.http import tell_reason
from isthmus.upstream.probe.answers import Answer, Ask
from isthmus.upstream.probe.findings import Findings
from isthmus.upstream.probe.investigate import investigate

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

    headers = {"user-agent": "isthmus", **({"authorization": f"Bearer {key}"} if key else {})}
    limits = aiohttp.ClientTimeout(total=patience)
    scrub = Scrubber((Secret(key, "key"), *url_secrets(base_url))).text
    async with aiohttp.ClientSession(headers=headers, timeout=limits, trust_env=True) as session:
        steps = investigate(Findings(model=model), enter)
        try:
            ask = next(steps)
            while True:
                progress(stage, ask.title)
                ask = steps.send(await _carry_out(session, base_url, ask, scrub))
        except StopIteration as done:
            findings: Findings = done.value
            return findings


async def _carry_out(session: aiohttp.ClientSession, base_url: str, ask: Ask, scrub: Scrub) -> Answer:
    try:
        async with session.request(
            "GET" if ask.body is None else "POST",
            address(base_url, ask.path),
            data=None if ask.body is None else msgspec.json.encode(ask.body),
            headers={} if ask.body is None else {"content-type": "application/json"},
            allow_redirects=False,
        ) as response:
            data = await _read(response)
            streamed = response.content_type == "text/event-stream"
            return _answer(response.status, data, streamed, scrub)
    except TimeoutError:
        return Answer(0, text="no answer in time")
    except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
        return Answer(0, text=scrub(tell_reason(error)))


def address(base_url: str, path: str) -> str:
    """Behind the base URL; a path from the root leaves the version (`/v1`) out."""
    base = base_url.rstrip("/")
    return f"{base.removesuffix('/v1')}{path}" if path.startswith("/") else f"{base}/{path}"


async def _read(response: aiohttp.ClientResponse) -> bytes:
    data = b""
    while len(data) < _MAX and (piece := await response.content.read(65536)):
        data += piece
    return data


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
    except (msgspec.DecodeError, RecursionError):
        return None
