"""The files that make Claude Code use the gateway: planned as a whole, shown, then written, and taken away again.

In: what Claude Code is to be told, and its home. Out: `Change`s that `changes` carries out: its settings, and beside
them our own record of what was put in, without which nothing could be taken out again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from isthmus.cli.changes import Change, backup_of, read_text, secrets_in, split_byte_order_mark
from isthmus.cli.claude_config import Record, apply_setup, has_setup, undo_setup
from isthmus.cli.claude_keys import FILE, NO_KEY, RECORD, Settings
from isthmus.cli.json_document import parse_json
from isthmus.errors import ConfigError

_KEYS: Final = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
_NOTE: Final = "what `--undo` needs to know"


def claude_home(setting: Path | None) -> Path:
    """`--claude-home`, `$CLAUDE_CONFIG_DIR`, or `~/.claude`."""
    given = setting or Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    return given.expanduser().absolute()


def plan_setup(home: Path, settings: Settings) -> list[Change]:
    path, kept = home / FILE, home / RECORD
    before, told = read_text(path), read_text(kept)
    earlier = _read_record(kept, told)
    own = undo_setup(before, earlier, str(path)) if before is not None and earlier is not None else before
    after, record = apply_setup(own or "", settings, str(path))
    first = before is not None and earlier is None
    changes = [
        Change(kept, told, _write_record(record), note=_NOTE),
        Change(path, before, after, backup="write" if first else None, secrets=_secrets(before, record, earlier)),
    ]
    return [change for change in changes if change.before != change.after]


def plan_undo(home: Path) -> list[Change]:
    """Everything that a setup put here."""
    path, kept = home / FILE, home / RECORD
    before, told = read_text(path), read_text(kept)
    record = _read_record(kept, told)
    if record is None:
        return []
    changes = [Change(kept, told, None, note=_NOTE)]
    if before is not None and has_setup(before, record, str(path)):
        after = undo_setup(before, record, str(path))
        # Without a backup there was no file: what is empty now was made by us.
        made = not after.strip() and not backup_of(path).exists()
        secrets = _secrets(before, record)
        changes.insert(0, Change(path, before, None if made else after, backup="remove", secrets=secrets))
    return changes


def _read_record(path: Path, text: str | None) -> Record | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Record)
    except (msgspec.DecodeError, ValueError) as error:
        raise ConfigError(
            f"`{path}` cannot be understood ({error}); `{backup_of(path.with_name(FILE)).name}` beside it has the "
            "settings of before: put them back, remove this file, and try again"
        ) from error


def _write_record(record: Record) -> str:
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"


def _secrets(text: str | None, *records: Record | None) -> tuple[str, ...]:
    """Keys, ours and the user's own, as the file spells them."""
    document = parse_json(split_byte_order_mark(text)[1], FILE) if text and text.strip() else {}
    found = [msgspec.json.encode(value).decode()[1:-1] for value in secrets_in(document) if value != NO_KEY]
    for record in filter(None, records):
        ours = [record.wrote.get(name, "") for name in _KEYS]
        theirs = [record.replaced.get(name, "") for name in _KEYS]
        found += [msgspec.json.encode(key).decode().strip('"') for key in ours if key and key != NO_KEY]
        found += [key.strip('"') for key in theirs if key.strip('"')]
    return tuple(found)
