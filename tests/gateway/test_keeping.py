"""How the end of a run is kept: in the store, by its connection, or not at all; and its lock is given back before."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.house import Upstream, asking, make_gateway, start
from isthmus.gateway import keeping
from isthmus.gateway.caller import Caller
from isthmus.gateway.local import Lane, LocalTurns
from isthmus.ports import conversation_lease
from isthmus.store.memory import MemoryStore
from own_time import turns
from stored import turn

ANN = Caller("ann")


class Watched(MemoryStore):
    """Notes what happens to it."""

    def __init__(self) -> None:
        super().__init__()
        self.deeds: list[str] = []

    async def save(self, *given: Any, **named: Any) -> bool:
        self.deeds.append("save")
        return await super().save(*given, **named)

    async def release(self, *given: Any, **named: Any) -> None:
        self.deeds.append("release")
        await super().release(*given, **named)


async def read(upstream: Upstream, run: Any, deeds: list[str]) -> Any:
    """The end that is told; `deeds` notes when."""

    async def events() -> Any:
        async for batch in run.events():
            last = batch[-1]
            if "response" in last and last["response"]["status"] != "in_progress":
                deeds.append("told")
        return last["response"]

    task = asyncio.ensure_future(events())
    await turns()
    upstream.open[-1].end("ok")
    return await task


@pytest.mark.parametrize("store", [True, False])
async def test_it_is_saved_then_given_back_then_told(store: bool) -> None:
    kept, upstream = Watched(), Upstream()
    gateway = make_gateway(kept, upstream)
    conversation = (await gateway.conversations.create(ANN, [], {})).id
    run = await start(gateway, ANN, conversation=conversation, store=store)
    assert kept._leases.holder(("ann", conversation_lease(conversation))) is not None
    await read(upstream, run, kept.deeds)
    assert kept.deeds == [*(["save"] if store else []), "release", "told"]
    await gateway.aclose()


async def test_a_small_response_is_told_in_the_bytes_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large one is not: its client may be slow, and it is there twice as it is."""
    kept, upstream = Watched(), Upstream()
    gateway = make_gateway(kept, upstream)
    run = await start(gateway, ANN)
    await read(upstream, run, kept.deeds)
    found = await kept.load(run.id, owner="ann")
    assert found is not None
    assert run.written == found.response
    assert json.loads(found.response) == run.response
    monkeypatch.setattr(keeping, "HEAVY_TEXT", 100)
    run = await start(gateway, ANN)
    await read(upstream, run, kept.deeds)
    assert run.response is not None
    assert run.written is None


async def test_what_is_not_stored_is_known_to_its_connection_with_the_conversation_before_it() -> None:
    kept, upstream = MemoryStore(), Upstream()
    gateway = make_gateway(kept, upstream)
    first = {"type": "message", "role": "user", "content": "before"}
    conversation = (await gateway.conversations.create(ANN, [first], {})).id
    lane = Lane(LocalTurns(1_000_000, 1_000_000).connect())
    run = await gateway.create(ANN, asking(stream=True, store=False, conversation=conversation), lane=lane)
    await read(upstream, run, [])
    again = await gateway.create(ANN, asking(stream=True, store=False, previous_response_id=run.id), lane=lane)
    await read(upstream, again, [])
    assert [message["content"] for message in upstream.asked[-1].body["messages"]] == ["before", "hi", "ok", "hi"]
    await gateway.aclose()


async def test_a_response_that_was_deleted_while_it_was_made_says_so() -> None:
    kept, upstream = MemoryStore(), Upstream()
    gateway = make_gateway(kept, upstream)
    run = await start(gateway, ANN)
    await kept.save(turn(run.id, owner="ann", status="in_progress"))
    await kept.delete(run.id, owner="ann")
    ended = await read(upstream, run, [])
    assert (ended["status"], ended["error"]["code"]) == ("failed", "response_not_found")
    await gateway.aclose()
