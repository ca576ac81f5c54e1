"""One PostgreSQL server for all tests of a process, begun by the first one that needs it; each has its own database."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache

from isthmus.testing.postgres import PostgresServer


@cache
def server() -> PostgresServer:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(PostgresServer.running())


def new_database() -> str:
    return server().new_database()
