"""Asks a server about its own models, over the wire that requests take and with the key that they show.

In: an endpoint, and where its provider's file says to ask. Out: what it told. Worth knowing: it has connections of its
own, closed at once, so that no request waits behind a question; what cannot be reached or refuses our key raises, what
only does not know the question (404) tells nothing, and what cannot be read is ignored, aloud.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import msgspec

from isthmus.addresses import behind, is_local
from isthmus.errors import code_of_status
from isthmus.log import tell
from isthmus.providers.schema import WordFacts
from isthmus.providers.word.read import Heard, read_answer
from isthmus.providers.word.told import Told, place_of
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.wire import Wire

log = logging.getLogger("isthmus.upstream")

MAX_ANSWER: Final = 8 * 1024 * 1024
"""Bytes of one answer: a house with 400 models describes them in one."""
USER_AGENT: Final = "isthmus (models)"
"""So that whoever runs the server, or a test, can tell questions from requests."""
MOST_SHOWN: Final = 40
"""Models that are asked about one by one."""
PATIENCE: Final = 30.0
"""Seconds for all questions together."""
_PASSING: Final = (401, 403, 408, 409, 425, 429)
"""What may be different in a moment, or with another key; any other status says that there is nothing to hear."""
_PATIENTLY: Final = Patience(connect=5.0, first_byte=10.0, idle=10.0)


class Asking:
    """One server and its questions."""

    def __init__(self, endpoint: Endpoint, base_url: str, facts: WordFacts, now: Callable[[], float]) -> None:
        headers = {"user-agent": USER_AGENT, **endpoint.headers}
        self._endpoint = replace(
            endpoint, url=base_url, headers=headers, patience=_PATIENTLY, max_connections=1, max_queued=None
        )
        self._facts = facts
        self._now = now
        self.own = is_local(base_url)
        """Whether it is on this machine."""
        self.place = place_of(base_url)

    async def ask(self) -> Told:
        """Raises `UpstreamFailed` if it cannot be asked now."""
        async with self._wire() as wire:
            try:
                async with asyncio.timeout(PATIENCE):
                    heard = await self._questions(wire)
            except TimeoutError:
                words = f"did not tell about its models within {PATIENCE:g} s"
                raise wire.failed(words, "upstream_timeout") from None
        return Told(at=self._now(), own=self.own, models=heard.models, words=heard.words or {})

    async def _questions(self, wire: Wire) -> Heard:
        heard = Heard()
        for path in self._facts.paths:
            heard = heard.and_also(await self._question(wire, path) or Heard())
        if self._facts.show:
            for model in heard.models[:MOST_SHOWN]:
                body = msgspec.json.encode({"model": model})
                heard = heard.and_also(await self._question(wire, self._facts.show, body, model) or Heard())
        return heard

    @asynccontextmanager
    async def _wire(self) -> AsyncIterator[Wire]:
        wire = Wire(self._endpoint)
        try:
            yield wire
        finally:
            await wire.aclose()

    async def _question(self, wire: Wire, path: str, body: bytes | None = None, model: str = "") -> Heard | None:
        url = behind(self._endpoint.url, path)
        incoming = await wire.send(body, method="GET" if body is None else "POST", url=url)
        try:
            if incoming.ok:
                data = await incoming.within(MAX_ANSWER)
            elif incoming.status >= 500 or incoming.status in _PASSING:
                words = f"answered HTTP {incoming.status} when it was asked about its models"
                raise wire.failed(words, code_of_status(incoming.status))
            else:
                return None
        finally:
            incoming.close()
        heard = None if data is None else read_answer(_decode(data), model)
        if heard is None:
            why = f"more than {MAX_ANSWER} bytes" if data is None else "not a shape that is known"
            tell(log, "info", "word.not_read", provider=self._endpoint.provider, path=path, reason=why)
        return heard


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return None
