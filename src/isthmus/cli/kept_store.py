"""What is kept of a request, here or at a gateway; and stored responses of this machine, for a look from outside: the
gateway may run, nothing is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec

from isthmus.bridge.limits import OWN_LIMITS, take_limits
from isthmus.cli.kept import Kept, Stored, read_kept
from isthmus.cli.trace_source import FileTraces, find_file
from isthmus.conduct.aside import Aside
from isthmus.config.schema import Config
from isthmus.errors import RequestRefused
from isthmus.gateway.history import load_past
from isthmus.ports import Store
from isthmus.protocol.json import JsonObject
from isthmus.store.envelope_key import key_path
from isthmus.store.open import ServerLimits, database_path, is_server, open_store, shared_key

_PAGE: Final = 1000
_decode: Final = msgspec.json.Decoder().decode


def with_kept(settings: Config, gateway: str | None, key: str | None, id: str) -> Kept:
    """What is kept of a request, here or at a gateway."""

    async def main() -> Kept:
        if gateway:
            from isthmus.cli.trace_remote import RemoteTraces

            remote = RemoteTraces(gateway, key or "")
            try:
                return await read_kept(remote, remote, id)
            finally:
                await remote.aclose()
        traces, responses = find_file(settings), open_kept(settings)
        try:
            return await read_kept(None if traces is None else FileTraces(traces), responses, id)
        finally:
            if traces is not None:
                traces.close()
            if responses is not None:
                await responses.aclose()

    return asyncio.run(main())


def open_kept(config: Config) -> KeptInStore | None:
    """`None`: there is no store on disk; looking for one must not make it."""
    if is_server(config.store.url):
        server = take_limits(ServerLimits, config.store)
        key = config.store.envelope_key.encode() or shared_key(config.store.url, server=server)
        return KeptInStore(open_store(config.store.url, server=server), config.store.max_chain, key)
    path = database_path(config.store.url)
    if path is None or not path.is_file() or not path.stat().st_size:
        return None
    beside = key_path(path)
    found = config.store.envelope_key.encode() or (beside.read_bytes() if beside.is_file() else None)
    return KeptInStore(open_store(config.store.url), config.store.max_chain, found)


class KeptInStore:
    def __init__(self, store: Store, max_chain: int, envelope_key: bytes | None) -> None:
        self.envelope_key = envelope_key
        self._store = store
        self._max_chain = max_chain

    async def load(self, id: str, owner: str) -> Stored | None:
        found = await self._store.load(id, owner=owner)
        if found is None:
            return None
        items = _items(found.input)
        history: tuple[JsonObject, ...] = ()
        if found.previous_response_id:
            history = await self.past({"previous_response_id": found.previous_response_id}, owner) or ()
        elif found.conversation:  # as it was then: it has grown since
            everything = await self._all_items(id, owner)
            history = tuple(everything[: max(len(everything) - len(items), 0)])
        return Stored(_decode(found.response), items, history, found.provider, found.model)

    async def past(self, request: JsonObject, owner: str) -> tuple[JsonObject, ...] | None:
        from isthmus.bridge.parse import parse_request

        asked, aside = parse_request(request, OWN_LIMITS), Aside()
        try:
            found = await load_past(
                self._store, asked, owner=owner, max_chain=self._max_chain, limits=OWN_LIMITS, aside=aside
            )
        except RequestRefused:
            return None
        finally:
            aside.close()
        return tuple(found.history)

    async def _all_items(self, id: str, owner: str) -> list[JsonObject]:
        found: list[JsonObject] = []
        after: str | None = None
        while True:
            page = await self._store.list_input_items(id, owner=owner, limit=_PAGE, after=after, order="asc")
            if page is None:
                return found
            found += _items(page.items)
            if not page.has_more:
                return found
            after = page.last_id

    async def aclose(self) -> None:
        await self._store.aclose()


def _items(raw: Iterable[bytes]) -> tuple[JsonObject, ...]:
    return tuple(_decode(item) for item in raw)
