"""The files that make Codex use the gateway: planned as a whole, shown, then written, and taken away again.

In: what Codex is to be told, and its home. Out: `Change`s (path, old text, new text) that `changes` carries out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from isthmus.cli.changes import Change, backup_of, read_text, secrets_in, split_byte_order_mark
from isthmus.cli.codex_config import apply_setup
from isthmus.cli.codex_document import parse_document, written_value
from isthmus.cli.codex_keys import CATALOGUE, FILE, PROVIDER, PROVIDERS, SEARCH, Settings
from isthmus.cli.codex_undo import has_setup, undo_setup
from isthmus.cli.terminal import plural
from isthmus.errors import ConfigError
from isthmus.protocol.json import JsonObject

_NAMES: Final = ("env_key", "env_key_instructions", "env_http_headers", "bearer_token_env_var")
"""Keys that tell where a secret is found."""


def codex_home(setting: Path | None) -> Path:
    """`--codex-home`, `$CODEX_HOME`, or `~/.codex`."""
    return (setting or Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")).expanduser().absolute()


def says_of_search() -> bool:
    """Whether the user's own configuration says how Codex searches."""
    try:
        return SEARCH in parse_document(read_text(codex_home(None) / FILE) or "", FILE)
    except ConfigError:
        return False  # Codex itself says what is wrong with it


def wanted_variable() -> str:
    """The variable that an earlier setup has Codex read a key from; empty: none."""
    try:
        said = parse_document(read_text(codex_home(None) / FILE) or "", FILE)
    except ConfigError:
        return ""
    ours = said.get(PROVIDERS, {}).get(PROVIDER, {})
    name = ours.get("env_key") if isinstance(ours, dict) else None
    return name if isinstance(name, str) else ""


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
        Change(path, before, after, backup="write" if own else None, secrets=_secrets(before, after)),
    ]
    return [change for change in changes if change.before != change.after]


def others_may_read(changes: Sequence[Change]) -> Path | None:
    """The configuration that was written, if its permissions are those of a file without keys."""
    for change in changes:
        if not change.note and change.path.stat().st_mode & 0o077 and os.name == "posix":
            return change.path
    return None


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
    return Change(path, before, None if made else after, backup="remove", secrets=_secrets(before))


def _secrets(*texts: str | None) -> tuple[str, ...]:
    """As the file spells them. Names of variables are none."""
    found: list[str] = []
    for text in filter(None, texts):
        document = parse_document(split_byte_order_mark(text)[1], FILE)
        for value in secrets_in(_without_names(document)):
            found += [value, written_value(value)[1:-1]] if value != PROVIDER else []
    return tuple(dict.fromkeys(found))


def _without_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_names(inner) for key, inner in value.items() if key not in _NAMES}
    return [_without_names(inner) for inner in value] if isinstance(value, list) else value


def _config_file(home: Path, profile: str | None) -> Path:
    if profile is None:
        return home / FILE
    if not profile.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(f"`{profile}` cannot be a profile's name; use letters, digits, `-` and `_`")
    return home / f"{profile}.{FILE}"
