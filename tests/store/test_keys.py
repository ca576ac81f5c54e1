"""Who may ask, and what operators did: kept by every store in the same way."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from every_store import Clock, every_shared_store, every_store
from isthmus.errors import RequestRefused
from isthmus.ports import Store
from isthmus.ports.keys import Budget, Grant, Rates, StoredKey
from keyed import NOW, deed, stored_key

WHOLE = stored_key(
    "whole",
    team="search",
    grant=Grant(
        models=("deepseek/*", "fast"),
        endpoints=frozenset({"responses", "chat", "models"}),
        tools=("web_search", "mcp:docs"),
        admin=True,
        rates=Rates(1, 2, 3, 4),
        budget=Budget(5.5, 100.0),
    ),
    metadata={"cost_centre": "ü 12", "a": ""},
    expires_at=NOW + 60.5,
    previous=b"\x00\xff" * 16,
    previous_until=NOW + 3.25,
)


@every_store()
async def test_a_key_reads_as_it_was_written_all_of_it(store: Store) -> None:
    none = stored_key("none", grant=Grant(tools=()))
    for each in (WHOLE, none, stored_key()):
        await store.add_key(each, deed(target=each.id))
    assert await store.keys() == [WHOLE, none, stored_key()]


@every_store()
async def test_no_two_keys_in_force_have_one_name(store: Store) -> None:
    first, second = stored_key("ann"), stored_key("ann", "ik_another")
    await store.add_key(first, deed())
    mark = await store.keys_mark()
    with pytest.raises(RequestRefused, match=r"called `ann`; choose another name") as caught:
        await store.add_key(second, deed("key.create", "second"))
    assert caught.value.code == "key_exists"
    # Refused is refused: no key, no deed, no change for anybody to look at.
    assert await store.keys() == [first]
    assert [each.target for each in await store.deeds()] == [""]
    assert await store.keys_mark() == mark
    revoked = replace(first, revoked_at=NOW)
    assert await store.change_key(revoked, deed("key.revoke"), was=first)
    await store.add_key(second, deed())
    third = stored_key("bob")
    await store.add_key(third, deed())
    with pytest.raises(RequestRefused, match="`ann`"):
        await store.change_key(replace(third, name="ann"), deed("key.change"), was=third)
    assert await store.keys() == [revoked, second, third]


@every_store()
async def test_the_name_of_one_that_is_out_of_date_is_free(store: Store) -> None:
    old, new = stored_key("ann", expires_at=NOW + 1), stored_key("ann", "ik_new")
    await store.add_key(old, deed())
    await store.add_key(new, deed(at=NOW + 1))
    longer = replace(old, expires_at=NOW + 100)
    with pytest.raises(RequestRefused, match="`ann`"):  # it would come back beside the other
        await store.change_key(longer, deed(at=NOW + 2), was=old)


@every_store()
async def test_a_key_is_changed_only_by_who_knows_how_it_is(store: Store) -> None:
    key = stored_key()
    await store.add_key(key, deed())
    rotated = replace(key, digest=b"new", previous=key.digest)
    assert await store.change_key(rotated, deed("key.rotate"), was=key)
    # Whoever had read it before that would bring the old digest back.
    assert not await store.change_key(replace(key, team="x"), deed("key.change"), was=key)
    assert await store.keys() == [rotated]
    assert [each.action for each in await store.deeds()] == ["key.rotate", "key.create"]
    assert not await store.change_key(stored_key("unknown"), deed(), was=stored_key("unknown"))


@every_store()
async def test_what_was_revoked_stays_so(store: Store) -> None:
    key = stored_key()
    await store.add_key(key, deed())
    revoked = replace(key, revoked_at=NOW)
    assert await store.change_key(revoked, deed("key.revoke"), was=key)
    mark = await store.keys_mark()
    assert not await store.change_key(key, deed("key.change"), was=revoked)
    assert not await store.change_key(key, deed("key.change"), was=key)
    assert (await store.keys(), await store.keys_mark()) == ([revoked], mark)
    assert len(await store.deeds()) == 2


@every_shared_store
async def test_a_change_in_one_process_moves_the_mark_in_the_other(one: Store, two: Store, clock: Clock) -> None:
    key = stored_key()
    seen = [await two.keys_mark()]
    await one.add_key(key, deed())
    seen.append(await two.keys_mark())
    assert await two.keys() == [key]
    await one.change_key(replace(key, team="t"), deed("key.change"), was=key)
    seen.append(await two.keys_mark())
    await one.change_key(replace(key, team="t", revoked_at=clock()), deed("key.revoke"), was=replace(key, team="t"))
    seen.append(await two.keys_mark())
    assert len(set(seen)) == 4
    await one.note_deed(deed("trace.capture"))
    assert await two.keys_mark() not in seen, "others may have to do as it says"
    assert [each.action for each in await two.deeds()] == ["trace.capture", "key.revoke", "key.change", "key.create"]


@every_shared_store
async def test_of_many_that_change_a_key_at_once_one_does(one: Store, two: Store, clock: Clock) -> None:
    key = stored_key()
    await one.add_key(key, deed())

    async def change(store: Store, team: str) -> bool:
        return await store.change_key(replace(key, team=team), deed("key.change", team), was=key)

    done = await asyncio.gather(*(change((one, two)[number % 2], f"t{number}") for number in range(10)))
    assert sum(done) == 1
    winner = f"t{done.index(True)}"
    assert [each.team for each in await two.keys()] == [winner]
    assert [each.target for each in await one.deeds()] == [winner, ""]


@every_shared_store
async def test_of_many_that_take_a_name_at_once_one_gets_it(one: Store, two: Store, clock: Clock) -> None:
    async def add(store: Store, number: int) -> bool:
        try:
            await store.add_key(stored_key("ann", f"ik_{number}"), deed())
        except RequestRefused:
            return False
        return True

    assert sum(await asyncio.gather(*(add((one, two)[number % 2], number) for number in range(10)))) == 1
    assert len(await one.keys()) == len(await two.deeds()) == 1


@every_store()
async def test_deeds_are_told_latest_first_in_pages(store: Store) -> None:
    for number in range(7):  # all at the same moment: their order is that in which they came
        await store.note_deed(deed("trace.capture", f"d{number}", on="yes"))
    first = await store.deeds(most=3)
    assert [each.target for each in first] == ["d6", "d5", "d4"]
    rest = await store.deeds(most=10, before=first[-1].number)
    assert [each.target for each in rest] == ["d3", "d2", "d1", "d0"]
    assert replace(first[0], number=0) == deed("trace.capture", "d6", on="yes")
    assert await store.deeds(before=rest[-1].number) == []


@every_store()
async def test_the_oldest_deeds_are_forgotten(store: Store) -> None:
    for number in range(6):
        await store.note_deed(deed(target=f"d{number}"), most=4)
    assert [each.target for each in await store.deeds()] == ["d5", "d4", "d3", "d2"]
    await store.add_key(stored_key(), deed(target="k"), most=2)
    assert [each.target for each in await store.deeds()] == ["k", "d5"]
    assert await store.change_key(replace(stored_key(), team="t"), deed(target="c"), was=stored_key(), most=1)
    assert [each.target for each in await store.deeds()] == ["c"]


@every_store()
async def test_any_text_may_stand_in_a_deed(store: Store) -> None:
    await store.note_deed(deed("trace.capture", "'; --", words="ü\n\0"))
    (found,) = await store.deeds()
    assert (found.target, found.details) == ("'; --", {"words": "ü\n\0"})


@every_store()
async def test_pruning_leaves_keys_and_deeds_alone(store: Store) -> None:
    await store.add_key(stored_key(), deed())
    await store.prune(older_than=1e12, max_bytes=0, conversations_older_than=1e12)
    assert (len(await store.keys()), len(await store.deeds())) == (1, 1)


def test_whose_everything_is() -> None:
    assert stored_key(id="key_1").owner == "key_1"
    assert stored_key(id="key_1", team="search").owner == "team:search"


@pytest.mark.parametrize(
    ("facts", "in_force"),
    [
        ({}, True),
        ({"expires_at": NOW + 0.1}, True),
        ({"expires_at": NOW}, False),
        ({"revoked_at": 1.0}, False),
        ({"revoked_at": 1.0, "expires_at": NOW + 9}, False),
    ],
)
def test_when_a_key_is_in_force(facts: dict[str, float], in_force: bool) -> None:
    key: StoredKey = stored_key(**facts)
    assert key.in_force(NOW) is in_force
