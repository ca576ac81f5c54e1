"""The files that make Codex use the gateway: planned as a whole, shown, then written, and taken away again.

In: what Codex is to be told, and its home. Out: `Change`s (path, old text, new text) that `changes` carries out.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from isthmus.cli.changes import Change, backup_of, read_text
from isthmus.cli.codex_config import apply_setup
from isthmus.cli.codex_document import parse_document
from isthmus.cli.codex_keys import CATALOGUE, FILE, SEARCH, Settings
from isthmus.cli.codex_undo import has_setup, undo_setup
from isthmus.cli.terminal import plural
from isthmus.errors import ConfigError
from isthmus.protocol.json import JsonObject


def codex_home(setting: Path | None) -> Path:
    """`--codex-home`, `$CODEX_HOME`, or `~/.codex`."""
    return (setting or Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")).expanduser().absolute()


def says_of_search() -> bool:
    """Whether the user's own configuration says how Codex searches."""
    try:
        return SEARCH in parse_document(read_text(codex_home(None) / FILE) or "", FILE)
    except ConfigError:
        return False  # Codex itself says what is wrong with it


def plan_setup(home: Path, settings: Settings, catalogue: JsonObject, profile: str | None) -> list[Change]:
    """The catalogue comes first: Codex refuses a configuration that names one which is not there."""
    path = _config_file(home, profile)
    before = read_text(path)
    models = Path(settings.catalogue)
    text = msgspec.json.format(msgspec.json.encode(catalogue), indent=2).decode() + "\n"
    after = apply_setup(before or "", settings, str(path))
    own = before is not None and not has_setup(before, str(path))
    changes = [
        Change(models, read_text(models), text, note=plural(len(catalogue["models"]), "model")),
        Change(path, before, after, backup="write" if own else None),
    ]
    return [change for change in changes if change.before != change.after]


def plan_undo(home: Path, profile: str | None) -> list[Change]:
    """Everything that a setup put here; with a profile only that one. The catalogue goes with its last reader."""
    every = [home / FILE, *sorted(home.glob(f"*.{FILE}"))]
    chosen = [_config_file(home, profile)] if profile else every
    changes = [change for path in chosen if (change := _undo(path)) is not None]
    undone = {change.path for change in changes}
    others = [path for path in every if path not in undone and has_setup(read_text(path) or "", str(path))]
    models = home / CATALOGUE
    if not others and (before := read_text(models)) is not None:
        changes.append(Change(models, before, None, note="the models"))
    return changes


def _undo(path: Path) -> Change | None:
    before = read_text(path)
    if before is None or not has_setup(before, str(path)):
        return None
    after = undo_setup(before, str(path))
    # Without a backup there was no file: what is empty now was made by us.
    made = not after.strip() and not backup_of(path).exists()
    return Change(path, before, None if made else after, backup="remove")


def _config_file(home: Path, profile: str | None) -> Path:
    if profile is None:
        return home / FILE
    if not profile.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(f"`{profile}` cannot be a profile's name; use letters, digits, `-` and `_`")
    return home / f"{profile}.{FILE}"
