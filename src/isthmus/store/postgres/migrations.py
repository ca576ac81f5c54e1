"""The schema, as a list of named steps: each runs once, in one transaction with the note that it ran.

Never change a step that was released; add one. Replicas that start together wait for the first of them, by a lock of
the database; one that finds nothing to do takes no lock and needs no right to change anything. A schema with steps
unknown to this code was written by a newer Isthmus and is refused unchanged.

The tables are those of the SQLite store, with the types of PostgreSQL; `secrets` has what all replicas share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psycopg

from isthmus.errors import ConfigError
from isthmus.store.postgres.connect import Connection, Options
from isthmus.store.postgres.faults import explain

Migration = tuple[str, str]

_WAIT: Final = "300s"
"""How long a replica waits for another one that is at it."""


def migrate(connection: Connection, options: Options, migrations: Sequence[Migration] | None = None) -> list[str]:
    """Bring the schema up to date; the names of the steps that ran."""
    steps = MIGRATIONS if migrations is None else migrations
    try:
        if not missing(connection, options, steps):
            return []
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = '{_WAIT}'")
            connection.execute(f"SET LOCAL statement_timeout = '{_WAIT}'")
            # Of the database, not of the schema: that may not be there yet.
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('isthmus:migrations', 0))")
            left = missing(connection, options, steps)
            if left:
                _prepare_schema(connection, options)
            for name, statements in steps:
                if name in left:
                    psycopg.Cursor(connection).execute(statements.encode())  # as text: several at once
                    connection.execute(
                        "INSERT INTO isthmus_migrations (name, applied_at) VALUES (%s, clock_timestamp())", (name,)
                    )
            return left
    except psycopg.Error as error:
        raise explain(error, options.address.name) from error


def missing(connection: Connection, options: Options, steps: Sequence[Migration]) -> list[str]:
    """Steps that did not run yet; refused are the tables of another program, and those of a newer version."""
    tables = {
        name
        for (name,) in connection.execute(
            "SELECT table_name::text FROM information_schema.tables WHERE table_schema = %s", (options.schema,)
        )
    }
    where = f"the schema `{options.schema}` of `{options.address.name}`"
    if not tables:
        return [name for name, _ in steps]
    if "isthmus_migrations" not in tables:
        raise ConfigError(f"{where} belongs to another program: choose another `store.schema`", param="store.schema")
    applied = {name for (name,) in connection.execute("SELECT name FROM isthmus_migrations")}
    if unknown := sorted(applied - {name for name, _ in steps}):
        raise ConfigError(
            f"{where} was written by a newer Isthmus (it has `{unknown[-1]}`): upgrade Isthmus, or choose another"
            " `store.schema`",
            param="store.schema",
        )
    return [name for name, _ in steps if name not in applied]


def _prepare_schema(connection: Connection, options: Options) -> None:
    found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (options.schema,)).fetchone()
    if found is None:  # asked first: `IF NOT EXISTS` needs the right to create one even where it is there
        connection.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(psycopg.sql.Identifier(options.schema)))
    connection.execute(
        "CREATE TABLE IF NOT EXISTS isthmus_migrations"
        ' (name text COLLATE "C" PRIMARY KEY, applied_at timestamptz NOT NULL)'
    )


_RESPONSES: Final = """
    CREATE SEQUENCE responses_key;
    CREATE TABLE responses (
        key bigint PRIMARY KEY,
        id text COLLATE "C" NOT NULL UNIQUE,
        owner text COLLATE "C" NOT NULL,
        previous_id text COLLATE "C",
        created_at float8 NOT NULL,
        status text COLLATE "C" NOT NULL,
        model text NOT NULL,
        provider text NOT NULL,
        conversation text COLLATE "C",
        conversation_at bigint NOT NULL,
        deleted boolean NOT NULL DEFAULT false,
        skeleton bytea NOT NULL,
        memo bytea NOT NULL,
        turn_digest bytea,
        row_digest bytea
    );
    CREATE INDEX responses_by_previous ON responses (previous_id) WHERE previous_id IS NOT NULL;
    CREATE INDEX responses_by_age ON responses (created_at, key);
    CREATE INDEX responses_unfinished ON responses (key)
        WHERE NOT deleted AND status IN ('queued', 'in_progress');
    CREATE TABLE pieces (
        key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        hash bytea NOT NULL UNIQUE,
        owner text COLLATE "C" NOT NULL,
        item_id text COLLATE "C",
        data bytea NOT NULL
    );
    CREATE INDEX pieces_by_item ON pieces (left(item_id, 100), owner) WHERE item_id IS NOT NULL;
    CREATE TABLE parts (
        response bigint NOT NULL,
        place smallint NOT NULL,
        position integer NOT NULL,
        piece bigint NOT NULL,
        PRIMARY KEY (response, place, position)
    );
    CREATE INDEX parts_by_piece ON parts (piece);
    CREATE TABLE streams (
        response bigint PRIMARY KEY,
        next bigint NOT NULL,
        dropped bigint NOT NULL,
        bytes bigint NOT NULL
    );
    CREATE TABLE events (
        response bigint NOT NULL,
        first bigint NOT NULL,
        last bigint NOT NULL,
        bytes bigint NOT NULL,
        data bytea NOT NULL,
        digest bytea NOT NULL,
        PRIMARY KEY (response, first)
    );
    CREATE TABLE chats (
        response bigint PRIMARY KEY,
        owner text COLLATE "C" NOT NULL,
        model text COLLATE "C" NOT NULL,
        metadata jsonb NOT NULL
    );
    CREATE INDEX chats_by_owner ON chats (owner, response);
    CREATE TABLE conversations (
        key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text COLLATE "C" NOT NULL UNIQUE,
        owner text COLLATE "C" NOT NULL,
        created_at float8 NOT NULL,
        used_at float8 NOT NULL,
        next bigint NOT NULL,
        items bigint NOT NULL,
        metadata bytea NOT NULL,
        digest bytea NOT NULL
    );
    CREATE INDEX conversations_by_use ON conversations (used_at, key);
    CREATE TABLE conversation_items (
        conversation bigint NOT NULL,
        position bigint NOT NULL,
        item_id text COLLATE "C" NOT NULL,
        ours smallint NOT NULL,
        piece bigint NOT NULL,
        digest bytea NOT NULL,
        PRIMARY KEY (conversation, position)
    );
    CREATE INDEX conversation_items_by_id ON conversation_items (left(item_id, 100), conversation);
    CREATE INDEX conversation_items_by_piece ON conversation_items (piece);
    CREATE TABLE quarantine (
        key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind text NOT NULL,
        id text NOT NULL,
        reason text NOT NULL,
        moved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        content bytea NOT NULL
    );
    -- What is packed is packed already: the server need not try.
    ALTER TABLE responses ALTER COLUMN skeleton SET STORAGE EXTERNAL, ALTER COLUMN memo SET STORAGE EXTERNAL;
    ALTER TABLE pieces ALTER COLUMN data SET STORAGE EXTERNAL;
    ALTER TABLE events ALTER COLUMN data SET STORAGE EXTERNAL;
"""

_LEASES: Final = """
    CREATE TABLE leases (
        owner text COLLATE "C" NOT NULL,
        name text COLLATE "C" NOT NULL,
        holder text COLLATE "C" NOT NULL,
        until float8 NOT NULL,
        words text[] NOT NULL,
        PRIMARY KEY (owner, name)
    );
    CREATE INDEX leases_by_holder ON leases (holder);
    CREATE TABLE requests (
        owner text COLLATE "C" NOT NULL,
        name text COLLATE "C" NOT NULL,
        digest bytea NOT NULL,
        id text NOT NULL,
        at float8 NOT NULL,
        PRIMARY KEY (owner, name)
    );
    CREATE INDEX requests_by_age ON requests (at);
    CREATE TABLE outbox (
        key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text COLLATE "C" NOT NULL UNIQUE,
        endpoint text COLLATE "C" NOT NULL,
        type text NOT NULL,
        about text COLLATE "C" NOT NULL,
        body bytea NOT NULL,
        owner text NOT NULL,
        queued_at float8 NOT NULL,
        due_at float8 NOT NULL,
        attempts bigint NOT NULL,
        holder text COLLATE "C" NOT NULL,
        reason text NOT NULL,
        given_up boolean NOT NULL,
        UNIQUE (about, endpoint)
    );
    CREATE INDEX outbox_by_due ON outbox (endpoint, given_up, due_at, key);
"""

_LEARNED: Final = """
    CREATE TABLE lessons (
        provider text COLLATE "C" NOT NULL,
        model text COLLATE "C" NOT NULL,
        parameter text COLLATE "C" NOT NULL,
        value text COLLATE "C" NOT NULL,
        learned_at float8 NOT NULL,
        PRIMARY KEY (provider, model, parameter, value)
    );
    CREATE TABLE words (
        provider text COLLATE "C" NOT NULL,
        place text COLLATE "C" NOT NULL,
        data bytea NOT NULL,
        heard_at float8 NOT NULL,
        PRIMARY KEY (provider, place)
    );
    CREATE TABLE secrets (name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL);
"""

_KEYS: Final = """
    CREATE TABLE keys (
        key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text COLLATE "C" NOT NULL UNIQUE,
        content bytea NOT NULL,
        seal bytea NOT NULL
    );
    CREATE TABLE keys_mark (number bigint NOT NULL);
    INSERT INTO keys_mark VALUES (0);
    CREATE TABLE deeds (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at float8 NOT NULL,
        actor text NOT NULL,
        action text NOT NULL,
        target text NOT NULL,
        details bytea NOT NULL
    );
"""

_SPENDING: Final = """
    CREATE TABLE uses (
        day text COLLATE "C" NOT NULL,
        owner text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        team text COLLATE "C" NOT NULL,
        provider text COLLATE "C" NOT NULL,
        model text COLLATE "C" NOT NULL,
        requests bigint NOT NULL,
        input_tokens bigint NOT NULL,
        cached_tokens bigint NOT NULL,
        output_tokens bigint NOT NULL,
        nanos bigint NOT NULL,
        unpriced bigint NOT NULL,
        PRIMARY KEY (day, owner, key, team, provider, model)
    );
    -- With what it is asked for: a budget is held against these sums before every run.
    CREATE INDEX uses_by_key ON uses (key, day) INCLUDE (nanos);
    CREATE INDEX uses_by_team ON uses (team, day) INCLUDE (nanos);
    CREATE TABLE holds (
        id text COLLATE "C" NOT NULL,
        purse text COLLATE "C" NOT NULL,
        nanos bigint NOT NULL,
        until float8 NOT NULL,
        PRIMARY KEY (id, purse)
    );
    CREATE INDEX holds_by_purse ON holds (purse, until) INCLUDE (nanos);
    CREATE TABLE settled (id text COLLATE "C" PRIMARY KEY, at float8 NOT NULL);
    CREATE INDEX settled_by_age ON settled (at);
"""

_TRACES: Final = """
    CREATE TABLE kinds (
        kind bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        owner text NOT NULL, key text NOT NULL, client text NOT NULL, door text NOT NULL, provider text NOT NULL,
        model text NOT NULL, outcome text NOT NULL, code text NOT NULL, changed boolean NOT NULL
    );
    CREATE TABLE traces (
        seq bigint PRIMARY KEY,
        ended float8 NOT NULL, kind bigint NOT NULL, summary bytea NOT NULL, packed boolean NOT NULL, detail bytea
    );
    CREATE INDEX traces_by_kind ON traces (kind, seq);
    CREATE TABLE places (place bigint NOT NULL, seq bigint NOT NULL, PRIMARY KEY (place, seq));
    CREATE TABLE totals (
        level smallint NOT NULL, slot bigint NOT NULL, kind bigint NOT NULL,
        requests bigint NOT NULL, failed bigint NOT NULL, input_tokens bigint NOT NULL, output_tokens bigint NOT NULL,
        cached_tokens bigint NOT NULL, cost float8 NOT NULL, unpriced bigint NOT NULL, retries bigint NOT NULL,
        degraded bigint NOT NULL, ignored bigint NOT NULL, seconds float8 NOT NULL,
        PRIMARY KEY (level, slot, kind)
    );
    CREATE TABLE spreads (
        level smallint NOT NULL, slot bigint NOT NULL, kind bigint NOT NULL, what smallint NOT NULL,
        step integer NOT NULL, count bigint NOT NULL,
        PRIMARY KEY (level, slot, kind, what, step)
    );
    CREATE TABLE trace_state (one boolean PRIMARY KEY CHECK (one), latest bigint NOT NULL, bytes bigint NOT NULL);
    INSERT INTO trace_state VALUES (true, 0, 0);
    ALTER TABLE traces ALTER COLUMN detail SET STORAGE EXTERNAL;
"""
"""What each is for stands in `store/traces/schema.py`; `trace_state` is the one row that whoever writes them holds."""

_SMALLER_TRACES: Final = """
    ALTER TABLE places RENAME TO single_places;
    CREATE TABLE places (chunk bigint PRIMARY KEY, words bytea NOT NULL);
    ALTER TABLE places ALTER COLUMN words SET STORAGE EXTERNAL;
    INSERT INTO places SELECT seq / 64, string_agg(
        substring(int8send(seq % 64) FROM 7 FOR 2) || substring(int8send(place) FROM 5 FOR 4), ''::bytea ORDER BY seq
    ) FROM single_places GROUP BY seq / 64;
    DROP TABLE single_places;
    CREATE TABLE patterns (
        pattern bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        digest bytea NOT NULL UNIQUE, texts bytea NOT NULL, last bigint NOT NULL
    );
    CREATE INDEX patterns_by_use ON patterns (last);
    ALTER TABLE traces ADD COLUMN pattern bigint;
"""
"""The words of 64 traces in one row, in place of a row for each word (`store/traces/places.py`), and what many traces
have in common (`store/traces/patterns.py`)."""

MIGRATIONS: Final[Sequence[Migration]] = (
    ("0001_responses", _RESPONSES),
    ("0002_leases", _LEASES),
    ("0003_learned", _LEARNED),
    ("0004_keys", _KEYS),
    ("0005_spending", _SPENDING),
    ("0006_traces", _TRACES),
    ("0007_smaller_traces", _SMALLER_TRACES),
)
