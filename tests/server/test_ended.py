"""Sessions of the page that are over, at every gateway on a store."""

from __future__ import annotations

from every_store import Clock, every_shared_store
from isthmus.ports import NamedRequest, Store
from isthmus.server.ended import Ended


@every_shared_store
async def test_what_is_ended_at_one_is_over_at_the_other_until_it_would_be_anyway(
    one: Store, two: Store, clock: Clock
) -> None:
    here, there = Ended(one), Ended(two)
    assert not await there.has("word", 100.0)
    await here.add("word", 200.0)
    assert await there.has("word", 100.0)
    assert await here.has("word", 200.0)
    assert not await there.has("another", 100.0)
    assert not await there.has("word", 200.1), "its cookie is too old"


@every_shared_store
async def test_clients_that_name_requests_neither_end_a_session_nor_have_one_forgotten(
    one: Store, two: Store, clock: Clock
) -> None:
    ended = Ended(one)
    await ended.add("word", 200.0)
    for owner in ("local", "key_1", "team:page"):
        await two.name_request("session:x", NamedRequest(b"", "resp_1", 150.0), owner=owner, since=199.0)
    assert await ended.has("word", 150.0)
    assert not await ended.has("x", 150.0)
