"""Traces and stored responses of a gateway at an address: what its key may see, and nothing is changed there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Literal, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from isthmus.cli.kept import Stored
from isthmus.errors import ConfigError, RequestRefused, UpstreamFailed
from isthmus.ports.traced import Trace, TraceSummary
from isthmus.ports.traces import MOST_WALKED, Capturing, TraceFilter, TracePage
from isthmus.protocol.json import JsonObject
from isthmus.upstream.endpoint import Patience
from isthmus.upstream.remote import GatewayAddress, RemoteGateway

_T = TypeVar("_T")
_PATIENCE: Final = 30.0
"""Seconds that it may take for each step of its answer."""
_PAGE: Final = 100
_MISSING: Final = ("trace_not_found", "response_not_found")


class _Page(msgspec.Struct, frozen=True):
    data: tuple[TraceSummary, ...]
    has_more: bool = False


class RemoteTraces:
    envelope_key: bytes | None = None
    """It stays where it is: what is planned again here cannot be held against hashes that were made there."""

    def __init__(self, url: str, key: str = "") -> None:
        base = url.rstrip("/").removesuffix("/v1")
        self._where = base
        self._gateway = RemoteGateway(GatewayAddress(f"{base}/v1", key, patience=Patience(*[_PATIENCE] * 3)))

    async def find(self, id: str) -> Trace | None:
        return await self._ask_or_none(f"/isthmus/traces/{quote(id, safe='')}", "a trace", Trace)

    async def list(
        self, filter: TraceFilter, *, limit: int, after: int | None = None, order: Literal["asc", "desc"] = "desc"
    ) -> TracePage:
        found: list[TraceSummary] = []
        while True:
            asked = {**_query(filter), "limit": min(limit - len(found), _PAGE), "order": order}
            asked |= {} if after is None else {"after": after}
            page = await self._ask(f"/isthmus/traces?{urlencode(asked)}", "a list of traces", _Page)
            found += page.data
            if not page.has_more or len(found) >= limit:
                return TracePage(tuple(found), page.has_more)
            after = page.data[-1].seq

    async def walk(self, id: str) -> Sequence[TraceSummary]:
        path = f"/isthmus/traces/{quote(id, safe='')}/conversation?limit={MOST_WALKED}"
        found = await self._ask_or_none(path, "a conversation", _Page)
        return () if found is None else found.data

    async def export(self, filter: TraceFilter) -> AsyncIterator[Trace]:
        after: int | None = None
        while True:
            page = await self.list(filter, limit=_PAGE, after=after, order="asc")
            for summary in page.traces:
                trace = await self.find(summary.id)
                if trace is not None:  # it may have been forgotten meanwhile
                    yield trace
            if not page.has_more:
                return
            after = page.traces[-1].seq

    async def capture(self, seconds: float, *, owner: str = "", key: str = "") -> Capturing:
        body = {"seconds": seconds, **({"owner": owner} if owner else {}), **({"key": key} if key else {})}
        return await self._ask("/isthmus/traces/capture", "what is captured", Capturing, body)

    # ── what is stored ─────────────────────────────────────────────────────────────────────────────

    async def load(self, id: str, owner: str) -> Stored | None:
        """All items that it was made of are its own input here: what of them was earlier nobody says."""
        response = await self._ask_or_none(f"/responses/{quote(id, safe='')}", "a response", dict[str, Any])
        if response is None:
            return None
        told = response.get("isthmus") or {}
        whole = {**response, "previous_response_id": None, "conversation": None}
        items = tuple(await self._items(id))
        return Stored(whole, items, (), str(told.get("provider") or ""), str(told.get("model") or ""))

    async def past(self, request: JsonObject, owner: str) -> tuple[JsonObject, ...] | None:
        """Only a stored response says what it continued."""
        return None

    async def aclose(self) -> None:
        await self._gateway.aclose()

    async def _items(self, id: str) -> Sequence[JsonObject]:
        found: list[JsonObject] = []
        after = ""
        while True:
            asked = {"limit": _PAGE, "order": "asc", **({"after": after} if after else {})}
            path = f"/responses/{quote(id, safe='')}/input_items?{urlencode(asked)}"
            page: dict[str, Any] = await self._ask(path, "a list of items", dict[str, Any])
            found += page["data"]
            if not page.get("has_more"):
                return found
            after = str(page["last_id"])

    async def _ask_or_none(self, path: str, what: str, kind: type[_T]) -> _T | None:
        try:
            return await self._ask(path, what, kind)
        except RequestRefused as error:
            if error.code in _MISSING:
                return None
            raise

    async def _ask(self, path: str, what: str, kind: type[_T], body: JsonObject | None = None) -> _T:
        try:
            return await self._gateway.ask(path, what, kind, body)
        except UpstreamFailed as error:
            raise ConfigError(f"{error.message}; does a gateway run at `{self._where}`?") from error


def _query(filter: TraceFilter) -> dict[str, Any]:
    given: dict[str, Any] = msgspec.to_builtins(filter)
    return given if filter.changed is None else {**given, "changed": "true" if filter.changed else "false"}
