"""All replicas have one key of the envelopes."""

from __future__ import annotations

import threading

import pytest

from isthmus.errors import ConfigError
from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Options
from isthmus.store.postgres.secrets import envelope_key
from postgres import empty_database, name_of, server


def test_replicas_that_start_at_once_on_an_empty_database_get_the_same_one() -> None:
    options, together, found = Options(Address(empty_database())), threading.Barrier(5), []

    def start() -> None:
        together.wait(30)
        found.append(envelope_key(options))

    threads = [threading.Thread(target=start) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 5
    assert set(found) == {envelope_key(options)}
    assert len(found[0]) == 32


def test_another_database_has_another_one(options: Options) -> None:
    assert envelope_key(options) != envelope_key(Options(Address(empty_database())))


def test_what_is_no_key_is_refused(options: Options) -> None:
    database = name_of(options.address.url)
    server().execute("INSERT INTO isthmus.secrets VALUES ('envelope_key', 'short')", database)
    with pytest.raises(ConfigError, match="delete the row `envelope_key`"):
        envelope_key(options)
