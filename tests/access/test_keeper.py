"""What is done with keys, and the deed that each leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isthmus.access.keeper import Keeper
from isthmus.access.secret import SHOWN, digest_of
from isthmus.access.wishes import Wishes, read_wishes
from isthmus.errors import RequestRefused
from isthmus.ports.keys import Deed, StoredKey
from isthmus.store.memory import MemoryStore
from keyed import NOW


class At:
    now = NOW

    def __call__(self) -> float:
        return self.now


class Hands:
    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store, self.at = store or MemoryStore(), At()
        self.keeper = Keeper(self.store, "cli", about={"user": "root"}, now=self.at)

    async def create(self, name: str = "ann", **fields: Any) -> tuple[StoredKey, str]:
        made = await self.keeper.create(read_wishes({"name": name, **fields}))
        return made.key, made.secret


async def test_a_key_is_made_told_once_and_noted() -> None:
    hands = Hands()
    key, secret = await hands.create(team="search")
    assert (key.digest, key.prefix) == (digest_of(secret), secret[:SHOWN])
    assert await hands.keeper.list() == [key]
    assert secret not in repr(await hands.store.keys())
    (deed,) = await hands.store.deeds()
    assert deed == Deed(NOW, "cli", "key.create", key.id, {"name": "ann", "team": "search", "user": "root"}, 1)


async def test_a_key_without_a_name_is_refused() -> None:
    with pytest.raises(RequestRefused, match="`name`"):
        await Hands().keeper.create(Wishes())


async def test_a_key_is_found_by_id_by_name_and_by_how_it_begins() -> None:
    hands = Hands()
    key, secret = await hands.create()
    await hands.create("bob")
    for word in (key.id, "ann", key.prefix, secret):
        assert await hands.keeper.find(word) == key
    for word in ("eve", "", "ik_", secret[:5], "key_"):
        with pytest.raises(RequestRefused, match="there is no key") as caught:
            await hands.keeper.find(word)
        assert caught.value.code == "key_not_found"
    with pytest.raises(RequestRefused) as caught:
        await hands.keeper.find("ik_" + "x" * 40)
    assert "x" * 8 not in caught.value.message, "what may be a key is not repeated"


async def test_of_several_with_a_name_it_is_the_one_in_force() -> None:
    hands = Hands()
    first, _ = await hands.create()
    await hands.keeper.revoke(first.id)
    assert (await hands.keeper.find("ann")).id == first.id
    second, _ = await hands.create()
    assert (await hands.keeper.find("ann")).id == second.id
    await hands.keeper.revoke("ann")
    with pytest.raises(RequestRefused, match="several keys are called `ann`"):
        await hands.keeper.find("ann")


async def test_a_change_is_noted_with_what_it_changed_and_one_that_changes_nothing_is_none() -> None:
    hands = Hands()
    key, _ = await hands.create()
    changed = await hands.keeper.change("ann", read_wishes({"models": ["fast"]}))
    assert changed == replace(key, grant=replace(key.grant, models=("fast",)))
    assert await hands.keeper.change("ann", read_wishes({"models": ["fast"]})) == changed
    deeds = await hands.store.deeds()
    assert [each.action for each in deeds] == ["key.change", "key.create"]
    assert deeds[0].details == {"name": "ann", "models": "fast", "user": "root"}


async def test_a_revoked_key_can_be_neither_changed_nor_rotated_nor_revoked_again() -> None:
    hands = Hands()
    key, _ = await hands.create()
    revoked = await hands.keeper.revoke("ann")
    assert revoked.revoked_at == NOW
    for do in (
        lambda: hands.keeper.change(key.id, read_wishes({"team": "x"})),
        lambda: hands.keeper.rotate(key.id),
        lambda: hands.keeper.revoke(key.id),
    ):
        with pytest.raises(RequestRefused, match="was revoked, and stays so") as caught:
            await do()
        assert caught.value.code == "key_changed"
    assert len(await hands.store.deeds()) == 2


@pytest.mark.parametrize("grace", [0.0, 60.0])
async def test_rotating_gives_another_key_to_the_same_owner(grace: float) -> None:
    hands = Hands()
    key, old = await hands.create()
    made = await hands.keeper.rotate("ann", grace)
    assert made.secret != old
    assert made.key.digest == digest_of(made.secret)
    assert (made.key.id, made.key.owner, made.key.name) == (key.id, key.owner, "ann")
    assert made.key.previous == (digest_of(old) if grace else b"")
    assert made.key.previous_until == (NOW + grace if grace else 0.0)
    assert (await hands.store.deeds())[0].details["grace"] == f"{grace:g}"


async def test_rotating_has_its_bounds() -> None:
    hands = Hands()
    await hands.create(expires_in=10)
    for grace in (-1.0, 31 * 86_400.0, float("nan")):
        with pytest.raises(RequestRefused, match="30 days"):
            await hands.keeper.rotate("ann", grace)
    hands.at.now += 11
    with pytest.raises(RequestRefused, match="is over; change its expiry"):
        await hands.keeper.rotate("ann")


async def test_who_is_overtaken_looks_again() -> None:
    class Overtaken(MemoryStore):
        others = 0

        async def change_key(self, key: StoredKey, deed: Deed, *, was: StoredKey, most: int = 9) -> bool:
            if self.others:
                self.others -= 1
                await super().change_key(replace(was, team=f"t{self.others}"), deed, was=was)
            return await super().change_key(key, deed, was=was)

    store = Overtaken()
    hands = Hands(store)
    await hands.create()
    store.others = 2
    changed = await hands.keeper.change("ann", read_wishes({"models": ["fast"]}))
    assert (changed.team, changed.grant.models) == ("t0", ("fast",)), "what the others did is still so"
    store.others = 9
    with pytest.raises(RequestRefused, match="changed by others at the same time"):
        await hands.keeper.change("ann", read_wishes({"models": ["slow"]}))


async def test_whatever_else_is_done_is_noted_too() -> None:
    hands = Hands()
    await hands.keeper.note("trace.capture", "", seconds="60")
    (deed,) = await hands.store.deeds()
    assert (deed.action, deed.details) == ("trace.capture", {"seconds": "60", "user": "root"})
