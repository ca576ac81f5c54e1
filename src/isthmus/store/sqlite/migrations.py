"""The schema, as a list of named steps: each runs once, in one transaction with the note that it ran.

Never change a step that was released; add one. A file with steps unknown to this code was written by a newer
Isthmus and is refused unchanged.

How a response is kept: `responses` has one row for each, with the skeleton of its Response object; `pieces` has
every distinct item and large field once; `parts` says which response holds which piece where, `conversation_items`
which conversation. `leases` says which process is at work on what, and what it was told; `outbox` has what receivers
are still to be told. `chats` lists chat completions, `requests` what clients named, `keys` who may ask, with a mark
that moves with each change, `deeds` what operators did. `uses` has what was used each day, `holds` the money that is
set aside for runs, `settled` which of them have ended. `quarantine` keeps what was found damaged, `scratch` nothing
for long.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from isthmus.errors import ConfigError
from isthmus.store.packing import hash_piece, unpack
from isthmus.store.sqlite.connect import FAULTS, unavailable
from isthmus.store.sqlite.spending_tables import make_tables

Migration = tuple[str, Callable[[sqlite3.Connection], None]]


def check_file(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] | None = None) -> None:
    """Refuse the database of another program, or of a newer version, before anything in it is changed."""
    steps = MIGRATIONS if migrations is None else migrations
    try:
        applied = applied_steps(connection, path)
    except FAULTS as error:
        raise unavailable(error, path) from error
    if unknown := sorted(map(str, applied - {name for name, _ in steps})):
        raise ConfigError(
            f"the store `{path}` was written by a newer Isthmus (it has `{unknown[-1]}`): upgrade Isthmus, or point"
            " `store.url` to another path"
        )


def migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] | None = None) -> list[str]:
    """Bring the file up to date; the names of the steps that ran."""
    steps = MIGRATIONS if migrations is None else migrations
    try:
        done = applied_steps(connection, path)
        return [name for name, step in steps if name not in done and _run_once(connection, name, step)]
    except FAULTS as error:
        raise unavailable(error, path) from error


def applied_steps(connection: sqlite3.Connection, path: Path) -> set[str]:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return set()
    if "isthmus_migrations" not in tables:
        raise ConfigError(f"`{path}` is a database of another program: point `store.url` to another path")
    return {name for (name,) in connection.execute("SELECT name FROM isthmus_migrations")}


def _run_once(connection: sqlite3.Connection, name: str, step: Callable[[sqlite3.Connection], None]) -> bool:
    # IMMEDIATE and the look inside it: two processes may start at the same moment.
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS isthmus_migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)"
        )
        if connection.execute("SELECT 1 FROM isthmus_migrations WHERE name = ?", (name,)).fetchone():
            connection.execute("ROLLBACK")
            return False
        step(connection)
        connection.execute("INSERT INTO isthmus_migrations VALUES (?, datetime('now'))", (name,))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return True


def _responses(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE responses (
            key INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            owner TEXT NOT NULL,
            previous_id TEXT,
            created_at REAL NOT NULL,
            status TEXT NOT NULL,
            model TEXT NOT NULL,
            provider TEXT NOT NULL,
            conversation TEXT,
            deleted INTEGER NOT NULL DEFAULT 0,
            skeleton BLOB NOT NULL
        )
        """
    )
    connection.execute("CREATE INDEX responses_by_previous ON responses (previous_id) WHERE previous_id IS NOT NULL")
    connection.execute(
        "CREATE INDEX responses_unfinished ON responses (status)"
        " WHERE deleted = 0 AND status IN ('queued', 'in_progress')"
    )
    connection.execute(
        """
        CREATE TABLE pieces (
            key INTEGER PRIMARY KEY,
            hash BLOB NOT NULL UNIQUE,
            owner TEXT NOT NULL,
            item_id TEXT,
            data BLOB NOT NULL
        )
        """
    )
    connection.execute("CREATE INDEX pieces_by_item ON pieces (item_id, owner) WHERE item_id IS NOT NULL")
    connection.execute(
        """
        CREATE TABLE parts (
            response INTEGER NOT NULL,
            place INTEGER NOT NULL,
            position INTEGER NOT NULL,
            piece INTEGER NOT NULL,
            PRIMARY KEY (response, place, position)
        ) WITHOUT ROWID
        """
    )
    connection.execute("CREATE INDEX parts_by_piece ON parts (piece)")


def _streams(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE streams (
            response INTEGER PRIMARY KEY,
            next INTEGER NOT NULL,
            dropped INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        )
        """
    )
    connection.execute(
        """
        CREATE TABLE events (
            response INTEGER NOT NULL,
            first INTEGER NOT NULL,
            last INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            data BLOB NOT NULL,
            PRIMARY KEY (response, first)
        ) WITHOUT ROWID
        """
    )


def _lessons(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE lessons (
            provider TEXT NOT NULL,
            model TEXT NOT NULL,
            parameter TEXT NOT NULL,
            value TEXT NOT NULL,
            learned_at REAL NOT NULL,
            PRIMARY KEY (provider, model, parameter, value)
        ) WITHOUT ROWID
        """
    )


def _leases(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE leases (
            owner TEXT NOT NULL,
            name TEXT NOT NULL,
            holder TEXT NOT NULL,
            until REAL NOT NULL,
            words TEXT NOT NULL,
            PRIMARY KEY (owner, name)
        ) WITHOUT ROWID
        """
    )
    connection.execute("CREATE INDEX leases_by_holder ON leases (holder)")


def _local_owner(connection: sqlite3.Connection) -> None:
    """Who had no name is called `local`. The owner is part of what a piece's hash is made of, so that changes too."""
    connection.create_function("local_hash", 2, _local_hash)
    for table in ("responses", "leases"):
        connection.execute(f"UPDATE {table} SET owner = 'local' WHERE owner = ''")
    connection.execute("UPDATE OR IGNORE pieces SET hash = local_hash(hash, data), owner = 'local' WHERE owner = ''")
    # Left are those whose content an owner `local` had already: it is kept once, so what held them holds that one.
    connection.execute(
        "UPDATE parts SET piece = (SELECT kept.key FROM pieces AS kept, pieces AS left"
        " WHERE left.key = parts.piece AND kept.hash = local_hash(left.hash, left.data))"
        " WHERE piece IN (SELECT key FROM pieces WHERE owner = '')"
    )
    connection.execute("DELETE FROM pieces WHERE owner = ''")


def _local_hash(hash: bytes, data: bytes) -> bytes:
    content = unpack(data)
    return hash_piece("local", hash == hash_piece("", True, content), content)


def _memos(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE responses ADD COLUMN memo BLOB NOT NULL DEFAULT x''")


def _digests(connection: sqlite3.Connection) -> None:
    """Rows from before have none; their pieces always had one."""
    connection.execute("ALTER TABLE responses ADD COLUMN turn_digest BLOB")
    connection.execute("ALTER TABLE responses ADD COLUMN row_digest BLOB")
    connection.execute("ALTER TABLE events ADD COLUMN digest BLOB")
    connection.execute("CREATE INDEX responses_by_age ON responses (created_at, key)")
    connection.execute(
        """
        CREATE TABLE quarantine (
            key INTEGER PRIMARY KEY,
            kind TEXT NOT NULL,
            id TEXT NOT NULL,
            reason TEXT NOT NULL,
            moved_at TEXT NOT NULL,
            content BLOB NOT NULL
        )
        """
    )
    connection.execute("CREATE TABLE scratch (key INTEGER PRIMARY KEY, data BLOB NOT NULL)")


def _words(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE words (
            provider TEXT NOT NULL,
            place TEXT NOT NULL,
            data BLOB NOT NULL,
            heard_at REAL NOT NULL,
            PRIMARY KEY (provider, place)
        ) WITHOUT ROWID
        """
    )


def _chats(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE chats (
            response INTEGER PRIMARY KEY,
            owner TEXT NOT NULL,
            model TEXT NOT NULL,
            metadata TEXT NOT NULL
        )
        """
    )
    connection.execute("CREATE INDEX chats_by_owner ON chats (owner, response)")


def _requests(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE requests (
            owner TEXT NOT NULL,
            name TEXT NOT NULL,
            digest BLOB NOT NULL,
            id TEXT NOT NULL,
            at REAL NOT NULL,
            PRIMARY KEY (owner, name)
        ) WITHOUT ROWID
        """
    )
    connection.execute("CREATE INDEX requests_by_age ON requests (at)")


def _outbox(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE outbox (
            key INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            endpoint TEXT NOT NULL,
            type TEXT NOT NULL,
            about TEXT NOT NULL,
            body BLOB NOT NULL,
            owner TEXT NOT NULL,
            queued_at REAL NOT NULL,
            due_at REAL NOT NULL,
            attempts INTEGER NOT NULL,
            holder TEXT NOT NULL,
            reason TEXT NOT NULL,
            given_up INTEGER NOT NULL,
            UNIQUE (about, endpoint)
        )
        """
    )
    connection.execute("CREATE INDEX outbox_by_due ON outbox (endpoint, given_up, due_at)")


def _conversations(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE responses ADD COLUMN conversation_at INTEGER NOT NULL DEFAULT 0")
    connection.execute(
        """
        CREATE TABLE conversations (
            key INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            owner TEXT NOT NULL,
            created_at REAL NOT NULL,
            used_at REAL NOT NULL,
            next INTEGER NOT NULL,
            items INTEGER NOT NULL,
            metadata BLOB NOT NULL,
            digest BLOB NOT NULL
        )
        """
    )
    connection.execute("CREATE INDEX conversations_by_use ON conversations (used_at, key)")
    connection.execute(
        """
        CREATE TABLE conversation_items (
            conversation INTEGER NOT NULL,
            position INTEGER NOT NULL,
            item_id TEXT NOT NULL,
            ours INTEGER NOT NULL,
            piece INTEGER NOT NULL,
            digest BLOB NOT NULL,
            PRIMARY KEY (conversation, position)
        ) WITHOUT ROWID
        """
    )
    # By id first: a conversation asks for its own, an `item_reference` for that of any.
    connection.execute("CREATE UNIQUE INDEX conversation_items_by_id ON conversation_items (item_id, conversation)")
    connection.execute("CREATE INDEX conversation_items_by_piece ON conversation_items (piece)")


def _keys(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE keys (
            key INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            content BLOB NOT NULL,
            seal BLOB NOT NULL
        )
        """
    )
    connection.execute("CREATE TABLE keys_mark (number INTEGER NOT NULL)")
    connection.execute("INSERT INTO keys_mark VALUES (0)")
    connection.execute(
        """
        CREATE TABLE deeds (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            at REAL NOT NULL,
            actor TEXT NOT NULL,
            action TEXT NOT NULL,
            target TEXT NOT NULL,
            details TEXT NOT NULL
        )
        """
    )


MIGRATIONS: Final[Sequence[Migration]] = (
    ("0001_responses", _responses),
    ("0002_streams", _streams),
    ("0003_lessons", _lessons),
    ("0004_leases", _leases),
    ("0005_memos", _memos),
    ("0006_local_owner", _local_owner),
    ("0007_digests", _digests),
    ("0008_words", _words),
    ("0009_chats", _chats),
    ("0010_requests", _requests),
    ("0011_outbox", _outbox),
    ("0012_conversations", _conversations),
    ("0013_keys", _keys),
    ("0014_spending", make_tables),
)
