"""From store URLs to copies, archives and steps: what `isthmus store` does with whole stores.

An archive is an SQLite file with its key beside it, whatever the store is made of.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isthmus.errors import ConfigError, StoreDamaged
from isthmus.store.copying.copy import Copied, Manner, Told, copy_all
from isthmus.store.copying.ends import End
from isthmus.store.copying.sqlite_end import SqliteEnd
from isthmus.store.envelope_key import key_path
from isthmus.store.open import ServerLimits, database_path, examine_store, is_server, postgres_options
from isthmus.store.sqlite.backup import BackedUp, back_up
from isthmus.store.sqlite.connect import connect_reader
from isthmus.store.sqlite.medium import Medium
from isthmus.store.sqlite.migrations import MIGRATIONS, applied_steps

if TYPE_CHECKING:
    from isthmus.store.postgres.connect import Options

_PATIENTLY: Final = 10.0
_LIMITS: Final = ServerLimits()


def open_end(url: str, *, make: bool, server: ServerLimits = _LIMITS) -> End:
    """`make`: where there is no store yet, it is made."""
    if is_server(url):
        options = postgres_options(url, "power", server)
        from isthmus.store.copying.postgres_end import PostgresEnd

        return PostgresEnd(options, make=make)
    path = database_path(url)
    if path is None:
        raise ConfigError(f"`{url}` lives and dies with its gateway: name `sqlite:PATH` or `postgresql://…`")
    return SqliteEnd(path, make=make)


def copy_store(
    source: str,
    target: str,
    *,
    manner: Manner = "new",
    told: Told = lambda step: None,
    server: ServerLimits = _LIMITS,
) -> Copied:
    with ExitStack() as opened:
        ends = [
            opened.enter_context(closing(open_end(url, make=make, server=server)))
            for url, make in ((source, False), (target, True))
        ]
        if ends[0].name == ends[1].name:
            raise ConfigError(f"`{ends[0].name}` is source and target of the copy: name another target")
        return copy_all(*ends, manner=manner, told=told)


def back_up_store(
    url: str,
    target: Path,
    *,
    force: bool = False,
    told: Told = lambda step: None,
    server: ServerLimits = _LIMITS,
) -> BackedUp:
    """Copy the store at `url` as it is at one moment, also while gateways use it, to one file with its key."""
    target = target.expanduser()
    path = database_path(url)
    if path is not None:
        return back_up(_there(path), target, force=force)
    with closing(open_end(url, make=False, server=server)) as source:
        return _archive(source, target, force, told)


def restore_store(
    archive: Path,
    url: str,
    *,
    force: bool = False,
    told: Told = lambda step: None,
    server: ServerLimits = _LIMITS,
) -> BackedUp:
    """Put what `archive` holds in the place of the store at `url`, once all of it was found to be sound."""
    archive = _there(archive.expanduser())
    examined = examine_store(f"sqlite:{archive}")
    if not examined.sound:
        first = examined.damage[0]
        raise StoreDamaged(
            f"the archive `{archive}` is damaged ({first.kind} {first.id}: {first.reason}), so nothing was restored: "
            f"take another one, or run `isthmus store check --repair --store sqlite:{archive}`"
        )
    path = database_path(url)
    if path is not None:
        restored = back_up(archive, path, force=force)
        migrate_store(url)
        return restored
    copied = copy_store(f"sqlite:{archive}", url, manner="force" if force else "new", told=told, server=server)
    key = key_path(archive) if copied.envelope_key else None
    return BackedUp(examined.responses, examined.conversations, copied.bytes, key)


def migrate_store(url: str, *, dry_run: bool = False, server: ServerLimits = _LIMITS) -> list[str]:
    """Steps that the store at `url` had not taken yet; `dry_run`: it has not taken them now either."""
    if is_server(url):
        return _migrate_server(postgres_options(url, "power", server), dry_run)
    path = database_path(url)
    if path is None:
        raise ConfigError(f"`{url}` lives and dies with its gateway: it is never out of date")
    with closing(connect_reader(_there(path), _PATIENTLY)) as reading:
        done = applied_steps(reading, path)
    pending = [name for name, _ in MIGRATIONS if name not in done]
    if pending and not dry_run:
        Medium(path, "process", _PATIENTLY).open().close()
    return pending


def _migrate_server(options: Options, dry_run: bool) -> list[str]:
    from isthmus.store.postgres.medium import Medium as Server
    from isthmus.store.postgres.migrations import MIGRATIONS as STEPS
    from isthmus.store.postgres.migrations import migrate, missing

    with closing(Server(options).connect()) as connection:
        return missing(connection, options, STEPS) if dry_run else migrate(connection, options)


def _archive(source: End, target: Path, force: bool, told: Told) -> BackedUp:
    """It has its name only when it is complete, and nothing beside it but its key."""
    for each in (target, key_path(target)):
        if each.exists() and not force:
            raise ConfigError(f"`{each}` is there already: choose another name, or replace it with `--force`")
    part = target.with_name(f"{target.name}.part")
    _remove(part)
    try:
        with closing(SqliteEnd(part, make=True)) as written:
            copied = copy_all(source, written, told=told)
        with closing(connect_reader(part, _PATIENTLY)) as reading:
            (responses,) = reading.execute("SELECT count(*) FROM responses WHERE deleted = 0").fetchone()
        _remove(target)
        os.replace(part, target)
        if copied.envelope_key:
            os.replace(key_path(part), key_path(target))
    except OSError as error:
        raise ConfigError(f"the copy `{target}` cannot be written ({error.strerror}): choose another place") from error
    finally:
        _remove(part)
    key = key_path(target) if copied.envelope_key else None
    return BackedUp(responses, copied.tables["conversations"], target.stat().st_size, key)


def _remove(path: Path) -> None:
    beside: Sequence[Path] = [path.with_name(path.name + more) for more in ("", "-wal", "-shm", ".key")]
    for each in beside:
        with suppress(FileNotFoundError):
            each.unlink()


def _there(path: Path) -> Path:
    if not path.is_file() or not path.stat().st_size:
        raise ConfigError(f"there is no store at `{path}`: name it as `sqlite:PATH`")
    return path
