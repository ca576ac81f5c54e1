"""Keys that are damaged are found, and revoked rather than forgotten."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from isthmus.ports.keys import Deed, StoredKey
from isthmus.store.open import examine_store
from isthmus.store.sqlite.store import SqliteStore
from keyed import deed, stored_key


def test_a_damaged_key_is_set_aside_and_revoked(tmp_path: Path) -> None:
    path, url = tmp_path / "s.db", f"sqlite:{tmp_path / 's.db'}"
    ann, bob = stored_key("ann"), stored_key("bob")

    async def fill() -> int:
        store = SqliteStore(path)
        for each in (ann, bob):
            await store.add_key(each, deed())
        mark = await store.keys_mark()
        await store.aclose()
        return mark

    async def look() -> tuple[list[StoredKey], int, list[Deed]]:
        store = SqliteStore(path)
        found = await store.keys(), await store.keys_mark(), await store.deeds()
        await store.aclose()
        return found

    mark = asyncio.run(fill())
    assert examine_store(url).damage == ()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE keys SET content = replace(content, 'ann', 'eve') WHERE id = ?", (ann.id,))
    (found,) = examine_store(url).damage
    assert (found.kind, found.id, found.set_aside) == ("key", ann.id, False)
    assert "not as it was written" in found.reason
    assert examine_store(url, repair=True).sound
    assert examine_store(url).damage == ()
    (left, other), moved, deeds = asyncio.run(look())
    assert (left.id, bool(left.revoked_at), left.digest) == (ann.id, True, b"")
    assert other == bob
    assert moved != mark, "gateways that run hear of it"
    assert (deeds[0].action, deeds[0].target, dict(deeds[0].details)) == ("key.revoke", ann.id, {"reason": "damaged"})
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT kind, id FROM quarantine").fetchall() == [("key", ann.id)]
