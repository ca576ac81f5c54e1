"""The files that make Codex use the gateway: planned as a whole, shown, then written, and taken away again.

In: what Codex is to be told, and its home. Out: `Change`s (path, old text, new text) that one function carries out.
The first time a file is changed its old text is kept beside it, as `config.toml.before-isthmus`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from isthmus.cli.codex_config import Settings, apply_setup, has_setup, undo_setup
from isthmus.errors import ConfigError
from isthmus.protocol.json import JsonObject

CATALOGUE: Final = "isthmus-models.json"
_BACKUP: Final = ".before-isthmus"


@dataclass(frozen=True, slots=True)
class Change:
    """One file, before and after; `None`: it does not exist then."""

    path: Path
    before: str | None
    after: str | None
    quiet: bool = False
    """Whether its content is ours alone and not worth showing."""


def codex_home(setting: Path | None) -> Path:
    """`--codex-home`, `$CODEX_HOME`, or `~/.codex`."""
    return (setting or Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")).expanduser().absolute()


def plan_setup(home: Path, settings: Settings, catalogue: JsonObject, profile: str | None) -> list[Change]:
    path = _config_file(home, profile)
    before = _read(path)
    models = Path(settings.catalogue)
    text = msgspec.json.format(msgspec.json.encode(catalogue), indent=2).decode() + "\n"
    changes = [
        Change(models, _read(models), text, quiet=True),
        Change(path, before, apply_setup(before or "", settings)),
    ]
    return [change for change in changes if change.before != change.after]


def plan_undo(home: Path, profile: str | None) -> list[Change]:
    """Everything that a setup put here; with a profile only that one. The catalogue goes with its last reader."""
    every = [home / "config.toml", *sorted(home.glob("*.config.toml"))]
    chosen = [_config_file(home, profile)] if profile else every
    changes = [change for path in chosen if (change := _undo(path)) is not None]
    undone = {change.path for change in changes}
    others = [path for path in every if path not in undone and has_setup(_read(path) or "")]
    models = home / CATALOGUE
    if not others and (before := _read(models)) is not None:
        changes.append(Change(models, before, None, quiet=True))
    return changes


def carry_out(changes: Sequence[Change]) -> None:
    for change in changes:
        kept = _backup(change.path)
        if change.after is None:
            change.path.unlink()
        else:
            change.path.parent.mkdir(parents=True, exist_ok=True)
            if change.before is not None and not change.quiet and not has_setup(change.before):
                _write(kept, change.before)
            _write(change.path, change.after)
        if change.after is None or not (change.quiet or has_setup(change.after)):
            kept.unlink(missing_ok=True)


def diff_lines(change: Change) -> Iterator[str]:
    before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
    names = (str(change.path) if change.before is not None else "/dev/null", str(change.path))
    return difflib.unified_diff(before, after, *names, lineterm="")


def _undo(path: Path) -> Change | None:
    before = _read(path)
    if before is None or not has_setup(before):
        return None
    after = undo_setup(before)
    # Without a backup there was no file: what is empty now was made by us.
    return Change(path, before, None if not after and not _backup(path).exists() else after)


def _config_file(home: Path, profile: str | None) -> Path:
    if profile is None:
        return home / "config.toml"
    if not profile.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(f"`{profile}` cannot be a profile's name; use letters, digits, `-` and `_`")
    return home / f"{profile}.config.toml"


def _backup(path: Path) -> Path:
    return path.with_name(path.name + _BACKUP)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"`{path}` cannot be read: {error}") from error


def _write(path: Path, text: str) -> None:
    """Whole or not at all; the file keeps its permissions (it may hold keys)."""
    path = path.resolve()
    draft = path.with_name(path.name + ".isthmus-draft")
    try:
        draft.write_bytes(text.encode())
        draft.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o600)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigError(f"`{path}` cannot be written: {error.strerror}") from error
