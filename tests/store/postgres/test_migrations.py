"""Replicas may start together, and an older program leaves a newer schema alone."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace

import pytest

from isthmus.errors import ConfigError, StoreUnavailable
from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Options, connect
from isthmus.store.postgres.migrations import MIGRATIONS, migrate
from postgres import empty_database, name_of, server


@pytest.fixture
def empty() -> Options:
    return Options(Address(empty_database()))


def test_a_second_time_there_is_nothing_to_do(empty: Options) -> None:
    with closing(connect(empty)) as connection:
        assert migrate(connection, empty) == [name for name, _ in MIGRATIONS]
        assert migrate(connection, empty) == []


def test_of_many_that_start_at_once_one_makes_each_step(empty: Options) -> None:
    together, ran = threading.Barrier(6), []

    def start() -> None:
        with closing(connect(empty)) as connection:
            together.wait(30)
            ran.extend(migrate(connection, empty))

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ran) == sorted(name for name, _ in MIGRATIONS)


def test_a_step_that_fails_leaves_nothing(empty: Options) -> None:
    steps = (*MIGRATIONS, ("9998_good", "CREATE TABLE good (x int)"), ("9999_bad", "CREATE TABLE good (x int)"))
    with closing(connect(empty)) as connection:
        with pytest.raises(Exception, match="already exists"):
            migrate(connection, empty, steps)
        assert migrate(connection, empty) == [name for name, _ in MIGRATIONS]


def test_a_newer_schema_is_refused_unchanged(empty: Options) -> None:
    with closing(connect(empty)) as connection:
        migrate(connection, empty, (*MIGRATIONS, ("9999_later", "CREATE TABLE later (x int)")))
        with pytest.raises(ConfigError, match=r"newer Isthmus \(it has `9999_later`\): upgrade Isthmus") as refused:
            migrate(connection, empty)
    assert refused.value.param == "store.schema"


def test_the_tables_of_another_program_are_left_alone(empty: Options) -> None:
    server().execute("CREATE SCHEMA isthmus; CREATE TABLE isthmus.responses (x int)", name_of(empty.address.url))
    with closing(connect(empty)) as connection, pytest.raises(ConfigError, match="belongs to another program"):
        migrate(connection, empty)


def test_two_stores_live_in_two_schemas(empty: Options) -> None:
    other = replace(empty, schema="Other One")
    for options in (empty, other):
        with closing(connect(options)) as connection:
            assert migrate(connection, options) == [name for name, _ in MIGRATIONS]


def test_a_user_without_rights_is_told_what_to_ask_for(empty: Options) -> None:
    database = name_of(empty.address.url)
    server().execute("DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN", database)
    poor = replace(empty, address=Address(empty.address.url.replace("postgres@", "poor@")))
    with (
        closing(connect(poor)) as connection,
        pytest.raises(StoreUnavailable, match="give its user the rights on its schema"),
    ):
        migrate(connection, poor)


def test_what_is_up_to_date_needs_no_right_to_change_it(empty: Options) -> None:
    with closing(connect(empty)) as connection:
        migrate(connection, empty)
    database = name_of(empty.address.url)
    server().execute(
        "DROP ROLE IF EXISTS modest; CREATE ROLE modest LOGIN; GRANT USAGE ON SCHEMA isthmus TO modest;"
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA isthmus TO modest;"
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA isthmus TO modest",
        database,
    )
    modest = replace(empty, address=Address(empty.address.url.replace("postgres@", "modest@")))
    with closing(connect(modest)) as connection:
        assert migrate(connection, modest) == []
    server().execute("DROP OWNED BY modest; DROP ROLE modest", database)
