"""A piece is there for as long as somebody uses it, whoever comes and goes at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from isthmus.store.packing import hash_piece, unpack
from isthmus.store.pieces import INPUT, Piece
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.pieces import HELD, drop_unused, find_known, keep_pieces
from isthmus.store.rows import Hashed

SHORT = b'{"id":"item_0"}'
LARGE = b'{"id":"item_1","text":"' + b"long " * 2000 + b'"}'


def hashed(*texts: bytes) -> list[Hashed]:
    return [(hash_piece("ann", False, data), Piece(INPUT, at, data)) for at, data in enumerate(texts)]


def keep(connection: Connection, pieces: list[Hashed]) -> list[int]:
    keep_pieces(connection, "ann", pieces, find_known(connection, [hash for hash, _ in pieces]))
    rows = connection.execute(
        "SELECT key FROM pieces WHERE hash = ANY(%s) ORDER BY key", ([hash for hash, _ in pieces],)
    )
    return [key for (key,) in rows]


def use(connection: Connection, response: int, pieces: list[Hashed]) -> None:
    connection.execute(
        f"{HELD} INSERT INTO parts SELECT %s, 0, n.at, held.key"
        " FROM unnest(%s::bytea[]) WITH ORDINALITY AS n (hash, at) LEFT JOIN held ON held.hash = n.hash",
        ([hash for hash, _ in pieces], response, [hash for hash, _ in pieces]),
    )


def test_equal_content_is_written_once_in_its_order_and_packed(connection: Connection) -> None:
    keys = keep(connection, hashed(SHORT, LARGE, SHORT))
    assert len(keys) == 2
    assert keep(connection, hashed(SHORT, LARGE)) == keys
    stored = connection.execute("SELECT item_id, data FROM pieces ORDER BY key").fetchall()
    assert [item_id for item_id, _ in stored] == ["item_0", "item_1"]
    assert [unpack(data) for _, data in stored] == [SHORT, LARGE]
    assert len(stored[1][1]) < len(LARGE) / 10


def test_only_what_nobody_uses_goes(connection: Connection) -> None:
    used, said, loose = (hashed(text) for text in (b'{"text":"used"}', b'{"text":"said"}', b'{"text":"loose"}'))
    keys = keep(connection, [*used, *said, *loose])
    use(connection, 1, used)
    connection.execute("INSERT INTO conversation_items VALUES (1, 0, 'x', 0, %s, '')", (keys[1],))
    drop_unused(connection, keys)
    assert [key for (key,) in connection.execute("SELECT key FROM pieces ORDER BY key")] == keys[:2]
    drop_unused(connection, [])


def test_who_removes_a_piece_waits_for_who_is_about_to_use_it(
    connection: Connection, another: Callable[[], Connection]
) -> None:
    pieces = hashed(b'{"text":"shared"}')
    keys = keep(connection, pieces)
    other = another()
    connection.execute("BEGIN")
    list(find_known(connection, [pieces[0][0]]))

    def remove() -> None:
        with other.transaction():
            drop_unused(other, keys)

    removing = threading.Thread(target=remove)
    removing.start()
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    while connection.execute(waiting).fetchone() == (0,):
        pass
    use(connection, 1, pieces)
    connection.execute("COMMIT")
    removing.join(30)
    assert connection.execute("SELECT count(*) FROM pieces").fetchone() == (1,)


def test_who_uses_a_piece_that_is_just_removed_writes_it_anew(
    connection: Connection, another: Callable[[], Connection]
) -> None:
    pieces = hashed(b'{"text":"shared"}')
    keys = keep(connection, pieces)
    other = another()
    other.execute("BEGIN")
    drop_unused(other, keys)
    kept: list[list[int]] = []
    keeping = threading.Thread(target=lambda: kept.append(keep(connection, pieces)))
    keeping.start()
    while other.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,):
        pass
    other.execute("COMMIT")
    keeping.join(30)
    assert len(kept[0]) == 1
    assert kept[0] != keys
