"""The server of the tests lives as long as whoever began it, and keeps what it was told to keep."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time

import psycopg
import pytest

from isthmus.testing.postgres import PostgresServer


def test_what_was_written_outlives_a_restart_and_not_the_server() -> None:
    with PostgresServer.running() as server:
        url = server.new_database()
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept (x int)")
        server.restart()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
        server.stop()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        server.start()
        assert server.new_database() != url
        folder = server.folder
    assert not folder.exists()


def test_it_ends_with_a_process_that_is_killed() -> None:
    code = (
        "from isthmus.testing.postgres import PostgresServer; import time\n"
        "with PostgresServer.running() as server:\n    print(server.port, flush=True)\n    time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 60
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return
        assert time.monotonic() < until
        time.sleep(0.01)
