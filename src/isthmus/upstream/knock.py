"""Whether a provider can be asked, found out by asking for its list of models: nobody pays for that.

In: an endpoint, and where its provider's file says that the list is. Out: a `Knock`. Worth knowing: a list says nothing
about the key where everybody may read it (OpenRouter's, llama.cpp's). What came with the key is therefore asked for
once more without it: only a refusal then shows that the key was looked at.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final, Literal

import msgspec

from isthmus.addresses import behind
from isthmus.bridge.dialects.chat.failures import upstream_failure
from isthmus.errors import UpstreamFailed
from isthmus.providers.word.read import Heard, read_answer
from isthmus.upstream.asking import MAX_ANSWER, USER_AGENT
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.wire import Incoming, Wire
from isthmus.values.redact import is_secret_key

Verdict = Literal[
    "ready",
    "unproven",
    "no_key",
    "key_withheld",
    "key_refused",
    "spent",
    "limited",
    "not_found",
    "unreachable",
    "timeout",
    "failing",
    "strange",
    "not_configured",
]
"""`unproven`: it can be reached, and only a request would show whether the key is good. `strange`: something answers,
and it is not what was asked for. The others are what they are called."""
SOUND: Final[frozenset[Verdict]] = frozenset({"ready", "unproven"})
"""What nothing has to be done about."""

_VERDICTS: Final[Mapping[str, Verdict]] = {
    "upstream_unauthorized": "key_refused",
    "insufficient_quota": "spent",
    "rate_limit_exceeded": "limited",
    "model_not_found": "not_found",
    "upstream_unreachable": "unreachable",
    "upstream_timeout": "timeout",
    "server_error": "failing",
    "server_is_overloaded": "failing",
}
"""Code of a failure → what it says of the provider."""
_UNKNOWN: Final = (404, 405, 410, 501)
"""What says that a question is not known."""
_MAX_ERROR: Final = 64 * 1024
# Gemini ("API key not valid") and xAI ("Incorrect API key provided") say 400 to a key that they do not know.
_ABOUT_KEY: Final = re.compile(
    r"\bapi[ _-]?key\b.{0,40}(valid|incorrect|missing|expired|found)|(valid|incorrect|missing) api[ _-]?key",
    re.IGNORECASE,
)
# A key of OpenAI's with restricted permissions may well be good for all but this: "Missing scopes: api.model.read".
_SCOPES: Final = re.compile(r"missing scopes?\b|insufficient.{0,20}scope", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Knock:
    verdict: Verdict
    told: str
    """Words that follow the provider's name."""
    models: tuple[str, ...] | None = None
    """What it lists; `None`: no list was seen."""
    seconds: float = 0.0


async def knock(endpoint: Endpoint, base_url: str, paths: Sequence[str], *, within: float) -> Knock:
    """Ask behind `base_url`, for `within` seconds in all; a provider without paths is only connected to."""
    began = monotonic()
    patience = Patience(connect=within, first_byte=within, idle=within)
    asked = replace(endpoint, url=base_url, patience=patience, max_connections=1, max_queued=None)
    asked = replace(asked, headers={"user-agent": USER_AGENT, **endpoint.headers})
    try:
        async with asyncio.timeout(within):
            found = await (_ask(asked, paths) if paths else _reach(asked))
    except TimeoutError:
        found = Knock("timeout", f"did not answer within {within:g} s")
    except UpstreamFailed as failure:
        found = Knock(verdict_of(failure), own_words(failure, asked))
    return replace(found, seconds=monotonic() - began)


def verdict_of(failure: UpstreamFailed) -> Verdict:
    if failure.code == "upstream_unauthorized" and failure.status is None:
        return "no_key"  # nothing was sent: there is nothing to sign with
    if failure.code == "invalid_prompt" and _ABOUT_KEY.search(failure.message):
        return "key_refused"
    return _VERDICTS.get(failure.code, "strange")


def own_words(failure: UpstreamFailed, endpoint: Endpoint) -> str:
    """A failure's words, without the name that stands beside them."""
    if failure.code == "invalid_prompt" and verdict_of(failure) == "key_refused":  # they may show a part of the key
        return f"refused our credentials (HTTP {failure.status}); it was sent {endpoint.credential}"
    return failure.message.removeprefix(f"provider `{endpoint.provider}` ")


def shows_key(endpoint: Endpoint) -> bool:
    """Whether a request there says who we are."""
    return endpoint.signer is not None or any(is_secret_key(name) for name in (*endpoint.headers, *endpoint.query))


async def _reach(endpoint: Endpoint) -> Knock:
    async with _open(endpoint) as wire:
        trouble = await wire.reach()
    if trouble is not None:
        return Knock("unreachable", trouble)
    return Knock("unproven", "can be reached, and has no list of models to ask for")


async def _ask(endpoint: Endpoint, paths: Sequence[str]) -> Knock:
    heard: dict[str, Heard] = {}
    answered = False
    async with _open(endpoint) as wire:
        for path in paths:
            got = await _get(wire, path)
            if got.status == 403 and _SCOPES.search(got.words):
                return Knock("unproven", "knows the key, which may not list the models")
            if got.failure is not None:
                raise got.failure
            answered = answered or got.status not in _UNKNOWN
            if got.heard is not None:
                heard[path] = got.heard
    if not heard:
        words = "answers, but not with a list of models" if answered else "has no list of models at this address"
        return Knock("strange" if answered else "not_found", words)
    models = tuple(dict.fromkeys(model for each in heard.values() for model in each.models))
    listed = f"lists {len(models)} model{'' if len(models) == 1 else 's'}"
    if not shows_key(endpoint):
        return Knock("ready", listed, models)
    if await _is_refused(_without_key(endpoint), list(heard)):
        return Knock("ready", f"takes the key, and {listed}", models)
    return Knock("unproven", f"{listed}, to everybody: that says nothing about the key", models)


async def _is_refused(endpoint: Endpoint, paths: Sequence[str]) -> bool:
    """Whether one of these is not for everybody. Whatever else happens on the way says nothing."""
    try:
        async with _open(endpoint) as wire:
            for path in paths:
                failure = (await _get(wire, path)).failure
                if failure is not None and verdict_of(failure) == "key_refused":
                    return True
    except UpstreamFailed:
        return False
    return False


def _without_key(endpoint: Endpoint) -> Endpoint:
    headers = {name: value for name, value in endpoint.headers.items() if not is_secret_key(name)}
    query = {name: value for name, value in endpoint.query.items() if not is_secret_key(name)}
    return replace(endpoint, headers=headers, query=query, signer=None)


@dataclass(frozen=True, slots=True)
class _Got:
    """One answer: what it says, or why it says nothing; neither where it cannot be read, or is not there."""

    status: int
    heard: Heard | None = None
    failure: UpstreamFailed | None = None
    words: str = ""


@asynccontextmanager
async def _open(endpoint: Endpoint) -> AsyncIterator[Wire]:
    wire = Wire(endpoint)
    try:
        yield wire
    finally:
        await wire.aclose()


async def _get(wire: Wire, path: str) -> _Got:
    incoming = await wire.send(None, method="GET", url=behind(wire.endpoint.url, path))
    try:
        if incoming.ok:
            return _Got(incoming.status, _read(await incoming.within(MAX_ANSWER)))
        if incoming.status in _UNKNOWN:
            return _Got(incoming.status)
        return await _refusal(wire, incoming)
    finally:
        incoming.close()


def _read(data: bytes | None) -> Heard | None:
    try:
        return None if data is None else read_answer(msgspec.json.decode(data))
    except (ValueError, RecursionError):
        return None


async def _refusal(wire: Wire, incoming: Incoming) -> _Got:
    status, endpoint = incoming.status, wire.endpoint
    if status // 100 == 3:
        words = f"points to another address (HTTP {status}), which is not followed"
        return _Got(status, failure=wire.failed(words, "upstream_malformed"))
    body = await incoming.beginning(_MAX_ERROR)
    failure = upstream_failure(
        status, body, provider=endpoint.provider, scrub=wire.scrubber.text, credential=endpoint.credential
    )
    return _Got(status, failure=failure, words=body.decode("utf-8", "replace"))
