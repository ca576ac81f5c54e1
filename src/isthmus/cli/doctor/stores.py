"""Where responses and traces are kept: is it there, can it be written, how far is its schema, is it whole?

Worth knowing: looking makes nothing. What is not there yet is made by the first gateway, if its folder can be written.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from isthmus.bridge.limits import take_limits
from isthmus.cli.doctor.finding import Finding
from isthmus.cli.terminal import size
from isthmus.config.schema import Config
from isthmus.errors import ConfigError
from isthmus.store.open import ServerLimits, database_path, is_server, read_schema, traces_path
from isthmus.store.sqlite.connect import FAULTS, connect_reader
from isthmus.values.redact import redact_url

_LOOKED_THROUGH: Final = 3.0
"""Seconds that a file is looked through for damage; a large one takes longer, and has a command of its own."""
_LITTLE: Final = 500_000_000
"""Bytes of a disk that are soon used up."""


def look_at_store(config: Config, *, offline: bool) -> Sequence[Finding]:
    url = config.store.url
    if is_server(url):
        return [_look_at_server(config, offline=offline)]
    try:
        path = database_path(url)
    except ConfigError as error:
        return [Finding("store", "problem", error.message)]
    if path is None:
        words = "`memory:` what is stored ends with the gateway"
        return [Finding("store", "ok", words, "", {"url": url})]
    path = path.absolute()
    return [*_look_at_file(url, path), *_room(path)]


def look_at_traces(config: Config) -> Sequence[Finding]:
    capture = config.trace.capture
    facts: dict[str, Any] = {"capture": capture}
    if capture == "off":
        return [Finding("traces", "ok", "traces are switched off (`trace.capture`)", "", facts)]
    if is_server(config.store.url):
        return [Finding("traces", "ok", "traces are kept beside the store, on its server", "", facts)]
    path = traces_path(config.store.url)
    if path is None:
        return [Finding("traces", "ok", "traces end with the gateway, as its `memory:` store does", "", facts)]
    path = path.absolute()
    facts["path"] = str(path)
    from isthmus.store.traces.schema import is_made

    try:
        made = is_made(path)
    except ConfigError as error:
        told, _, remedy = error.message.partition("): ")
        return [Finding("traces", "problem", f"{told})", remedy, facts)]
    if not made:
        trouble = _unwritable(path, facts, "traces")
        return [trouble or Finding("traces", "ok", f"none at `{path}` yet: the gateway makes it", "", facts)]
    if not os.access(path, os.W_OK):
        return [_not_writable("traces", path, facts)]
    taken = sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))
    return [
        Finding("traces", "ok", f"`{path}` ({size(taken)}), `{capture}` is captured", "", {**facts, "bytes": taken})
    ]


def _look_at_file(url: str, path: Path) -> Iterator[Finding]:
    facts: dict[str, Any] = {"path": str(path)}
    if not path.is_file() or not path.stat().st_size:
        trouble = _unwritable(path, facts, "store")
        yield trouble or Finding("store", "ok", f"none at `{path}` yet: the gateway makes it", "", facts)
        return
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        yield _not_writable("store", path, facts)
        return
    try:
        schema = read_schema(url)
    except ConfigError as error:
        told, _, remedy = error.message.rpartition(": ")
        yield Finding("store", "problem", told or error.message, remedy if told else "", facts)
        return
    facts |= {"bytes": schema.bytes, "schema": schema.version, "missing": list(schema.missing)}
    words = f"`{path}` ({size(schema.bytes)}), schema `{schema.version}`"
    later = f"; {len(schema.missing)} steps behind: the next start of the gateway brings it up to date"
    yield Finding("store", "ok", words + (later if schema.missing else ""), "", facts)
    yield _look_through(path)


def _look_through(path: Path) -> Finding:
    facts = {"path": str(path)}
    try:
        with closing(connect_reader(path, 1.0)) as connection:
            alarm = threading.Timer(_LOOKED_THROUGH, connection.interrupt)
            alarm.daemon = True
            alarm.start()
            try:
                (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            finally:
                alarm.cancel()
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            words = "too large to be looked through here"
            return Finding("damage", "ok", words, "`isthmus store check` looks at every response", facts)
        return Finding("damage", "problem", f"it cannot be looked through: {error}", _REPAIR, facts)
    except FAULTS as error:
        return Finding("damage", "problem", f"the file is damaged: {error}", _REPAIR, facts)
    if verdict != "ok":
        return Finding("damage", "problem", f"the file is damaged: {verdict}", _REPAIR, facts)
    return Finding("damage", "ok", "the file is whole; `isthmus store check` looks at every response", "", facts)


_REPAIR: Final = "`isthmus store check` says what of it can be read; restore a backup, or save that with `store export`"


def _look_at_server(config: Config, *, offline: bool) -> Finding:
    shown = redact_url(config.store.url)
    facts: dict[str, Any] = {"url": shown, "database_schema": config.store.schema}
    if offline:
        return Finding("store", "skipped", f"`{shown}` was not asked", "", facts)
    try:
        schema = read_schema(config.store.url, server=take_limits(ServerLimits, config.store))
    except ConfigError as error:
        return Finding("store", "problem", error.message, "start it, or correct `store.url`", facts)
    facts |= {"bytes": schema.bytes, "schema": schema.version, "missing": list(schema.missing)}
    if not schema.version:
        return Finding("store", "ok", f"`{shown}` answers; the gateway makes its tables", "", facts)
    later = "; the next start of the gateway brings it up to date" if schema.missing else ""
    words = f"`{shown}` answers ({size(schema.bytes)}), schema `{schema.version}`{later}"
    return Finding("store", "ok", words, "", facts)


def _unwritable(path: Path, facts: dict[str, Any], check: str) -> Finding | None:
    """Of a file that is still to be made."""
    folder = next((each for each in path.parents if each.exists()), path.parent)
    if folder.is_dir() and os.access(folder, os.W_OK):
        return None
    words = f"`{path}` cannot be made: `{folder}` cannot be written to"
    return Finding(
        check, "problem", words, f"make `{folder}` writable for this user, or name another `store.url`", facts
    )


def _not_writable(check: str, path: Path, facts: dict[str, Any]) -> Finding:
    words = f"`{path}` cannot be written to by this user"
    return Finding(check, "problem", words, "make the file and its folder writable for this user", facts)


def _room(path: Path) -> Iterator[Finding]:
    folder = next((each for each in path.parents if each.exists()), None)
    if folder is None:
        return
    free = shutil.disk_usage(folder).free
    if free < _LITTLE:
        words = f"the disk of `{folder}` has {size(free)} left"
        yield Finding("disk", "warning", words, "free some space, or run `isthmus store prune`", {"free": free})
