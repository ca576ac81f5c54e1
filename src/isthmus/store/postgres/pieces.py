"""Pieces in the database: each distinct content once, written by whoever needs it first, removed with its last use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isthmus.store.packing import pack
from isthmus.store.pieces import Piece
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.texts import text
from isthmus.store.rows import Hashed

HELD = "WITH held AS MATERIALIZED (SELECT key, hash FROM pieces WHERE hash = ANY(%s::bytea[]) FOR KEY SHARE)"
"""The pieces of these hashes, which nobody can remove from now on."""


def find_known(connection: Connection, hashes: Sequence[bytes]) -> Iterable[tuple[bytes]]:
    """Which of them are there; they stay. To be read later."""
    return connection.execute("SELECT hash FROM pieces WHERE hash = ANY(%s::bytea[]) FOR KEY SHARE", (list(hashes),))


def keep_pieces(connection: Connection, owner: str, hashed: Sequence[Hashed], known: Iterable[tuple[bytes]]) -> None:
    """Write those that are not `known`, in their order: of two with one id the first is found by it."""
    there = {bytes(hash) for (hash,) in known}
    new: dict[bytes, Piece] = {}
    for hash, piece in hashed:
        if hash not in there:
            new.setdefault(hash, piece)
    if not new:
        return
    connection.execute(
        "INSERT INTO pieces (hash, owner, item_id, data) SELECT n.hash, %s, n.item_id, n.data"
        " FROM unnest(%s::bytea[], %s::text[], %s::bytea[]) WITH ORDINALITY AS n (hash, item_id, data, at)"
        " ORDER BY n.at ON CONFLICT (hash) DO NOTHING",
        (
            owner,
            list(new),
            [None if piece.item_id is None else text(piece.item_id) for piece in new.values()],
            [pack(piece.data) for piece in new.values()],
        ),
    )


def drop_unused(connection: Connection, pieces: Iterable[int]) -> None:
    """Those of them that no response holds any more, and no conversation."""
    keys = sorted(set(pieces))
    if not keys:
        return
    # First wait for those who are about to use one, in an order that all keep; the next statement sees what they did.
    connection.execute("SELECT 1 FROM pieces WHERE key = ANY(%s::bigint[]) ORDER BY key FOR UPDATE", (keys,))
    connection.execute(
        "DELETE FROM pieces AS c WHERE c.key = ANY(%s::bigint[])"
        " AND NOT EXISTS (SELECT 1 FROM parts WHERE piece = c.key)"
        " AND NOT EXISTS (SELECT 1 FROM conversation_items WHERE piece = c.key)",
        (keys,),
    )
