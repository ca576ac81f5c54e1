"""Our variables are put into Claude Code's settings: everything else keeps its bytes, and `undo_setup` takes them out.

In: the file's text and what Claude Code is to be told. Out: the new text, and a `Record` of what was put in and what
stood there before, because JSON has no comments to keep that in. Worth knowing: every edit is checked before it is
handed out. Read as JSON, it differs in our variables only, and taking them out gives the text of before, byte for byte.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from isthmus.cli.changes import split_byte_order_mark
from isthmus.cli.claude_keys import BASE_URL, MODELS, SMALL_MODELS, Settings
from isthmus.cli.json_document import parse_json, read_object, remove_member, set_member
from isthmus.errors import ConfigError

_ENV: Final = "env"


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a setup did to a file, as far as its undoing needs it."""

    wrote: dict[str, str] = {}
    replaced: dict[str, str] = {}
    """The user's own values of our variables, as they were written."""
    whole: str | None = None
    """The text of a file that had no object in it."""
    root: str | None = None
    """What stood between the braces of the file, if that was nothing but space."""
    env: str | None = None
    """What stood between those of `env`; `None`: there was no `env`."""
    made: bool = False
    """Whether `env` was put in by us."""


def apply_setup(text: str, settings: Settings, name: str) -> tuple[str, Record]:
    """The text with our variables in it, for a file called `name` that has none of ours yet."""
    mark, body = split_byte_order_mark(text)
    blank = not body.strip()
    new = "{}\n" if blank else body
    said = _read(new, name)
    own = said.get(_ENV, {})
    root, env = read_object(new), read_object(new, (_ENV,))
    assert root is not None
    wrote = {**settings.variables, **settings.blanks(own)}
    record = Record(
        wrote=wrote,
        replaced={each.name: new[each.value : each.end] for each in env.members if each.name in wrote} if env else {},
        whole=text if blank else None,
        root=None if root.members else new[root.opens : root.closes],
        env=new[env.opens : env.closes] if env and not env.members else None,
        made=env is None,
    )
    if env is None:
        new = set_member(new, (), _ENV, "{}")
    for variable, value in wrote.items():
        new = set_member(new, (_ENV,), variable, json.dumps(value, ensure_ascii=False))
    new = mark + new
    if _read(new, name) != {**said, _ENV: {**own, **wrote}} or undo_setup(new, record, name) != text:
        raise ConfigError(f"`{name}` is written in a way that cannot be added to safely; write it anew, and try again")
    return new, record


def undo_setup(text: str, record: Record, name: str) -> str:
    """The text without our variables; what they had replaced is back. What was set anew since then stays."""
    mark, body = split_byte_order_mark(text)
    if not body.strip():
        return text
    now = _read(body, name).get(_ENV, {})
    for variable in reversed(record.wrote):
        if not _is_ours(variable, now, record):
            continue
        if variable in record.replaced:
            body = set_member(body, (_ENV,), variable, record.replaced[variable])
        else:
            body = remove_member(body, (_ENV,), variable, record.env or "")
    env, root = read_object(body, (_ENV,)), read_object(body)
    if record.made and env is not None and not env.members:
        body = remove_member(body, (), _ENV, record.root or "")
        root = read_object(body)
    if record.whole is not None and root is not None and not root.members:
        return record.whole
    return mark + body


def has_setup(text: str, record: Record, name: str) -> bool:
    """Whether anything that the record tells of is still in the file."""
    body = split_byte_order_mark(text)[1]
    now = _read(body, name).get(_ENV, {}) if body.strip() else {}
    return any(_is_ours(variable, now, record) for variable in record.wrote)


def _is_ours(variable: str, now: dict[str, Any], record: Record) -> bool:
    """As we wrote it; and a model belongs to its gateway, so one that was picked since is the gateway's too."""
    if variable not in now:
        return False
    through_us = now.get(BASE_URL) == record.wrote.get(BASE_URL)
    return now[variable] == record.wrote[variable] or (through_us and variable in (*MODELS, *SMALL_MODELS))


def _read(text: str, name: str) -> dict[str, Any]:
    said = parse_json(split_byte_order_mark(text)[1], name)
    if not isinstance(said, dict):
        raise ConfigError(f"`{name}` is no JSON object; correct it first")
    if not isinstance(said.get(_ENV, {}), dict):
        raise ConfigError(f"`env` in `{name}` is no object of variables; correct it first")
    return said
