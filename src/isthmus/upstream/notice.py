"""Whether what listens on this machine is the model server that a provider's file describes: its answer says so.

In: an address on the loopback, and how the answer looks (`NoticeFacts`). Out: the models that it lists; none: nobody is
there, or somebody else is. Worth knowing: no key is sent, no proxy asked, and nothing is said beyond one GET, because
whoever answers may be any program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from isthmus.addresses import behind, host_of, is_loopback
from isthmus.errors import UpstreamFailed
from isthmus.providers.schema import NoticeFacts
from isthmus.providers.word.read import read_answer
from isthmus.upstream.asking import MAX_ANSWER, USER_AGENT
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.wire import Wire

_ANY: Final = "*"


async def recognise(provider: str, base_url: str, facts: NoticeFacts, *, within: float) -> tuple[str, ...]:
    """The models of the server at `base_url`, if it is one of this provider's."""
    if not facts.path or not facts.shows or not is_loopback(host_of(base_url)):
        return ()
    endpoint = Endpoint(
        provider,
        base_url,
        {"user-agent": USER_AGENT},
        trust_env=False,
        max_connections=1,
        patience=Patience(connect=within, first_byte=within, idle=within),
    )
    wire = Wire(endpoint)
    try:
        async with asyncio.timeout(within):
            body = await _ask(wire, behind(base_url, facts.path))
    except (TimeoutError, UpstreamFailed):
        return ()
    finally:
        await wire.aclose()
    if not shows(body, facts.shows):
        return ()
    heard = read_answer(body)
    return heard.models if heard is not None else ()


def shows(body: Any, wanted: Mapping[str, str]) -> bool:
    """Whether each of these texts stands at its place."""
    return all(
        isinstance(found := _at(body, place), str) and bool(found) and text in (_ANY, found)
        for place, text in wanted.items()
    )


def _at(body: Any, place: str) -> Any:
    for part in place.split("."):
        if isinstance(body, Mapping):
            body = body.get(part)
        elif isinstance(body, Sequence) and not isinstance(body, str) and part.isdecimal() and int(part) < len(body):
            body = body[int(part)]
        else:
            return None
    return body


async def _ask(wire: Wire, url: str) -> Any:
    incoming = await wire.send(None, method="GET", url=url)
    try:
        data = await incoming.within(MAX_ANSWER) if incoming.ok else None
    finally:
        incoming.close()
    try:
        return None if data is None else msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return None
