"""The tables of `spending`: a step of `migrations`, and like each of them never to be changed."""

from __future__ import annotations

import sqlite3


def make_tables(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE uses (
            day TEXT NOT NULL,
            owner TEXT NOT NULL,
            key TEXT NOT NULL,
            team TEXT NOT NULL,
            provider TEXT NOT NULL,
            model TEXT NOT NULL,
            requests INTEGER NOT NULL,
            input_tokens INTEGER NOT NULL,
            cached_tokens INTEGER NOT NULL,
            output_tokens INTEGER NOT NULL,
            nanos INTEGER NOT NULL,
            unpriced INTEGER NOT NULL,
            PRIMARY KEY (day, owner, key, team, provider, model)
        ) WITHOUT ROWID
        """
    )
    # With what it is asked for: a budget is held against these sums before every run.
    connection.execute("CREATE INDEX uses_by_key ON uses (key, day, nanos)")
    connection.execute("CREATE INDEX uses_by_team ON uses (team, day, nanos)")
    connection.execute(
        """
        CREATE TABLE holds (
            id TEXT NOT NULL,
            purse TEXT NOT NULL,
            nanos INTEGER NOT NULL,
            until REAL NOT NULL,
            PRIMARY KEY (id, purse)
        ) WITHOUT ROWID
        """
    )
    connection.execute("CREATE INDEX holds_by_purse ON holds (purse, until, nanos)")
    connection.execute("CREATE TABLE settled (id TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID")
    connection.execute("CREATE INDEX settled_by_age ON settled (at)")
