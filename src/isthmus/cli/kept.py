"""What is kept of one request: its trace, the response that was stored, and from these the request itself.

In: the id of a request or of its response. Out: a `Kept`. A trace that captured contents has the client's request as it
was; else a stored response still says enough to make it again. Where neither does, `missing` says what would have to
be kept, and how to have it kept from now on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import msgspec

from isthmus.bridge.limits import OWN_LIMITS
from isthmus.bridge.types.clients import ANY_CLIENT, KNOWN_CLIENTS, ClientProfile, on_messages
from isthmus.cli.explain_plan import Asked, ask
from isthmus.cli.trace_source import TraceReader, named
from isthmus.errors import ConfigError
from isthmus.observe.recall import request_again
from isthmus.observe.sent import content_of
from isthmus.ports import LOCAL
from isthmus.ports.traced import Trace
from isthmus.protocol.json import JsonObject

HOW: Final = (
    'to keep contents from now on, set `trace.capture = "full"`, or run `isthmus trace capture 10m` (contents of '
    "requests with `store: false` are kept only with `trace.unstored = true`)"
)
_CONTINUES: Final = ("previous_response_id", "conversation")


class Stored(msgspec.Struct, frozen=True):
    """A stored response, with what it was made of."""

    response: JsonObject
    items: tuple[JsonObject, ...]
    """Its own input."""
    history: tuple[JsonObject, ...]
    """All that stood before it."""
    provider: str
    model: str


class StoredResponses(Protocol):
    """Where responses are kept: the store of this machine, or a gateway at an address."""

    envelope_key: bytes | None

    async def load(self, id: str, owner: str) -> Stored | None: ...

    async def past(self, request: JsonObject, owner: str) -> tuple[JsonObject, ...] | None:
        """The items of the turns that a request continues; `None`: they are not there any more."""


@dataclass(frozen=True, slots=True)
class Kept:
    id: str
    trace: Trace | None
    stored: Stored | None
    request: JsonObject | None
    """As its door wrote it, where it was kept; made again, it is a Responses request."""
    history: tuple[JsonObject, ...] = ()
    missing: str = ""
    """Why the request is not known."""
    envelope_key: bytes | None = None

    @property
    def exact(self) -> bool:
        """Whether the request is the client's own, and not made again from its response."""
        return self.trace is not None and content_of(self.trace.request) is not None

    @property
    def provider(self) -> str:
        return self.trace.summary.provider if self.trace else self.stored.provider if self.stored else ""

    @property
    def model(self) -> str:
        return self.trace.summary.model if self.trace else self.stored.model if self.stored else ""

    def asked(self) -> Asked:
        """The request once more, checked; raises where it is not known."""
        if self.request is None:
            raise ConfigError(self.missing)
        door = self.trace.summary.door if self.trace is not None and self.exact else "responses"
        if door not in ("responses", "chat", "messages"):
            raise ConfigError(f"`{self.id}` asked for no answer of a model (`{door}`), so there is no plan to compare")
        asked = ask(self.request, chat=door == "chat", messages=door == "messages", limits=OWN_LIMITS)
        key = self.envelope_key or asked.envelope_key
        return replace(
            asked,
            history=self.history,
            caller=self._client(),
            listed=self._listed(),
            owner=self._owner,
            envelope_key=key,
        )

    @property
    def _owner(self) -> str:
        return self.trace.summary.owner if self.trace and self.trace.summary.owner else LOCAL

    def _listed(self) -> tuple[JsonObject, ...]:
        """What MCP servers said of their tools: nobody asks them again."""
        answer = self.stored.response if self.stored else content_of(self.trace.answer) if self.trace else None
        return tuple(item for item in (answer or {}).get("output") or () if item.get("type") == "mcp_list_tools")

    def _client(self) -> ClientProfile:
        if self.trace is None:
            return ANY_CLIENT
        told = self.trace.summary
        client = KNOWN_CLIENTS.get(told.client, ANY_CLIENT)
        return on_messages(client) if told.door == "messages" else client


async def read_kept(reader: TraceReader | None, responses: StoredResponses | None, id: str) -> Kept:
    if reader is not None:
        id = await named(reader, id)
    trace = None if reader is None else await reader.find(id)
    told = None if trace is None else trace.summary
    owner = told.owner if told is not None and told.owner else LOCAL
    name = told.response if told is not None and told.response else id
    stored = None if responses is None else await responses.load(name, owner)
    if trace is None and stored is None:
        raise ConfigError(
            f"nothing is kept of `{id}`: no trace, and no stored response; `isthmus trace list` shows what there is"
        )
    request, missing = _request(id, trace, stored)
    history = stored.history if stored is not None else ()
    if stored is None and request is not None and any(request.get(name) for name in _CONTINUES):
        past = None if responses is None else await responses.past(request, owner)
        if past is None:
            missing = f"the turns that `{id}` continues are not stored any more, so it cannot be planned again"
        request, history = (None, ()) if past is None else (request, past)
    key = None if responses is None else responses.envelope_key
    return Kept(id, trace, stored, request, history, missing, key)


def _request(id: str, trace: Trace | None, stored: Stored | None) -> tuple[JsonObject | None, str]:
    content: Any = None if trace is None else content_of(trace.request)
    if content is not None:
        return content, ""
    if stored is not None:
        names, stream = (None, False) if trace is None else (field_names(trace), trace.summary.stream)
        model = f"{stored.provider}/{stored.model}"
        return request_again(stored.response, stored.items, model, named=names, stream=stream), ""
    assert trace is not None
    if trace.summary.deleted:
        return None, f"the response of `{id}` was deleted, and its contents with it"
    if not trace.request.pieces and trace.error is not None:
        return None, f"`{id}` was refused before there was a request to keep: {trace.error.message}"
    why = trace.request.cut or "its trace holds no contents"
    return None, f"`{id}` cannot be planned again: {why}, and no response of it is stored; {HOW}, then ask again"


def field_names(trace: Trace) -> Sequence[str]:
    """The fields of the client's request, in their order: a trace without contents knows them, too."""
    return list(dict.fromkeys(piece.path.partition("[")[0].partition(".")[0] for piece in trace.request.pieces))
