"""Files are changed whole or not at all: all of a plan, or, when one cannot be written, none of it.

In: `Change`s. A file keeps its permissions (it may hold keys), a link keeps pointing where it did. Before the first
change of a user's file its old text is kept beside it, as `config.toml.before-isthmus`; it goes when we go.
"""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from isthmus.errors import ConfigError
from isthmus.values.redact import is_secret_key

_BACKUP: Final = ".before-isthmus"
_SHORTEST: Final = 6
"""Characters of a value that is taken for a secret: a shorter one would be found in half of all words."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file, before and after; `None`: it does not exist then."""

    path: Path
    before: str | None
    after: str | None
    note: str = ""
    """What is said of it, where its content is ours alone and not worth showing."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What stands in it and is not shown."""
    backup: Literal["write", "remove"] | None = None
    """What becomes of the user's own old text beside it."""


def carry_out(changes: Sequence[Change]) -> None:
    """Write, in the order of the changes. A file that somebody has changed since it was read is not touched."""
    for change in changes:
        if read_text(change.path) != change.before:
            raise ConfigError(f"`{change.path}` has changed in the meantime; nothing was written: run this again")
    done: list[Change] = []
    try:
        for change in changes:
            done.append(change)
            if change.backup == "write" and change.before is not None:
                _write(backup_of(change.path), change.before)
            _put(change.path, change.after)
        for change in changes:
            if change.backup == "remove":
                backup_of(change.path).unlink(missing_ok=True)
    except OSError as error:
        _take_back(done)
        where = error.filename2 or error.filename or done[-1].path
        raise ConfigError(f"`{where}` cannot be written: {error.strerror}; nothing was changed") from error


def read_text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ConfigError(f"`{path}` cannot be read: it is not UTF-8 at byte {error.start}") from error
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be read: {error.strerror}") from error


def split_byte_order_mark(text: str) -> tuple[str, str]:
    """The mark that some editors put first, and the rest."""
    return ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)


def backup_of(path: Path) -> Path:
    return path.with_name(path.name + _BACKUP)


def diff_lines(change: Change) -> Iterator[str]:
    before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
    names = (str(change.path) if change.before is not None else "/dev/null", str(change.path))
    for line in difflib.unified_diff(before, after, *names, lineterm=""):
        for secret in sorted(change.secrets, key=len, reverse=True):
            line = line.replace(secret, "…")
        yield line


def secrets_in(value: Any, name: str = "") -> Iterator[str]:
    """What stands in a user's document under a secret's name: it may be near our lines, and they are shown."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from secrets_in(inner, str(key))
        case list():
            for inner in value:
                yield from secrets_in(inner, name)
        case str() if len(value) >= _SHORTEST and is_secret_key(name):
            yield value


def _put(path: Path, text: str | None) -> None:
    if text is None:
        path.resolve().unlink(missing_ok=True)
    else:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    path = path.resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    draft = Path(name)
    try:
        with open(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(mode)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _take_back(changes: Sequence[Change]) -> None:
    """As it was, as far as that can be: the file that failed is still there as it was."""
    for change in reversed(changes):
        try:
            if read_text(change.path) != change.before:
                _put(change.path, change.before)
            if change.backup == "write":
                backup_of(change.path).unlink(missing_ok=True)
        except (OSError, ConfigError):
            continue
