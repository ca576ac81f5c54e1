from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from stored import new_database


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(new_database()) as made:
        yield made
