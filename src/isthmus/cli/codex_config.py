"""Our keys are put into a Codex configuration: everything else keeps its bytes, and `undo_setup` takes them out again.

In: the file's text and what Codex is to be told. Out: the new text. A key that the user had set is kept as a comment
above ours. Worth knowing: every edit is checked before it is handed out. Read as TOML, it differs in our keys only, and
taking them out again gives the text of before, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import tomlkit

from isthmus.cli.changes import split_byte_order_mark
from isthmus.cli.codex_document import Statement, parse_document, read_document, written_value
from isthmus.cli.codex_keys import (
    ACTOR,
    FILE,
    HEADERS,
    JOINED,
    MARK,
    NAME,
    OLD_MARKS,
    OURS,
    PROVIDER,
    PROVIDERS,
    ROOT_KEYS,
    SEARCH,
    TABLE,
    TABLE_KEYS,
    Settings,
    comparable,
    is_our_search,
    keep_statement,
)
from isthmus.cli.codex_undo import has_setup, undo_setup
from isthmus.errors import ConfigError


def apply_setup(text: str, settings: Settings, name: str = FILE) -> str:
    """The text with our keys in it; those of an earlier setup are replaced. `name` is what the file is called."""
    if _says_so_already(text, settings, name):
        return text
    before = undo_setup(text, name)
    mark, body = split_byte_order_mark(before)
    statements = read_document(body, name)
    _refuse_clash(statements, name)
    if any(each.path == (SEARCH,) for each in statements):
        settings = replace(settings, live=False)  # it is the user's own
    new = mark + _put_in(statements, settings, "\r\n" if "\r\n" in body else "\n")
    if not _is_exact(before, new, settings):
        raise ConfigError(
            f"`{name}` is written in a way that cannot be added to safely; "
            "use `--profile isthmus`, which writes a file of its own"
        )
    return new


def overrides(settings: Settings) -> list[str]:
    """The same settings as `-c key=value` arguments, for one run without any file."""
    pairs = {
        **settings.root,
        **{f"{PROVIDERS}.{PROVIDER}.{key}": value for key, value in settings.lines.items()},
    }
    return [part for key, value in pairs.items() for part in ("-c", f"{key}={written_value(value)}")]


def _says_so_already(text: str, settings: Settings, name: str) -> bool:
    """Whether there is nothing to do, wherever Codex has moved our keys; what 0.1.0 wrote is written anew."""
    if not has_setup(text, name) or any(mark in text for mark in OLD_MARKS):
        return False
    said = parse_document(split_byte_order_mark(text)[1], name)
    if said.get(SEARCH) not in (None, "live"):
        settings = replace(settings, live=False)
    elif not settings.search and any(map(is_our_search, read_document(split_byte_order_mark(text)[1], name))):
        return False
    ours = _table(_table(said.get(PROVIDERS)).get(PROVIDER))
    wanted = settings.provider
    actor, asked = (_table(block.get(HEADERS)).get(ACTOR) for block in (ours, wanted))
    same = actor == asked and all(ours.get(key) == wanted.get(key) for key in TABLE_KEYS)
    return same and all(said.get(key) == value for key, value in settings.root.items())


def _refuse_clash(statements: Sequence[Statement], name: str) -> None:
    """A provider of our name that we have not written is the user's."""
    headed = any(each.kind == "table" and each.path == TABLE for each in statements)
    for each in statements:
        if each.kind != "key":
            continue
        left = headed and each.path == (*TABLE, "name") and each.value == NAME  # by an undo
        inside = len(each.path) == 3 and each.path[:2] == TABLE and each.path[2] in TABLE_KEYS
        inline = each.path == (PROVIDERS,) and PROVIDER in _table(each.value)
        if each.path == TABLE or inline or (inside and not left):
            raise ConfigError(
                f"`{name}` has a provider `{PROVIDER}` of its own at line {each.line}, which this command did not "
                "write; give it another name there, or take it out, and try again"
            )


def _put_in(statements: Sequence[Statement], settings: Settings, newline: str) -> str:
    missing, ours = dict(settings.root), settings.lines
    lines: list[str] = []
    placed = False
    # Headers that somebody has put into a table of their own: ours goes there, for a key may be written only once.
    apart = any(each.kind == "table" and each.path == (*TABLE, HEADERS) for each in statements)
    actor = ours.pop(f"{HEADERS}.{ACTOR}", None) if apart else None
    for each in statements:
        if each.kind == "key" and len(each.path) == 1 and each.path[0] in ROOT_KEYS:
            lines += [keep_statement(each.text, newline), _line(each.path[0], missing.pop(each.path[0]), newline)]
        elif each.kind == "key" and each.path == (PROVIDERS,) and isinstance(each.value, dict):
            lines += [keep_statement(each.text, newline), _with_provider(each, settings, newline)]
            placed = True
        elif each.kind == "table" and each.path == TABLE:
            # An undo had to leave it for the sake of others' keys in it, and its name for the sake of Codex.
            rest = [_line(key, value, newline) for key, value in ours.items() if key != "name"]
            lines += [MARK + newline, _ended(each.text, newline), *rest]
            placed = True
        elif each.kind == "table" and each.path == (*TABLE, HEADERS) and actor is not None:
            lines += [MARK + newline, _ended(each.text, newline), _line(ACTOR, actor, newline)]
        else:
            lines.append(each.text)
    if missing:
        lines[:0] = [MARK + newline, *(_line(key, value, newline) for key, value in missing.items())]
    table = [f"[{PROVIDERS}.{PROVIDER}]{newline}", *(_line(*pair, newline) for pair in ours.items())]
    joined = bool(statements) and not statements[-1].text.endswith("\n")
    if joined:
        lines[-1] = _ended(lines[-1], newline)
    if joined or not placed:
        lines.append(MARK + JOINED * joined + newline)
    return "".join([*lines, *([] if placed else table)])


def _with_provider(statement: Statement, settings: Settings, newline: str) -> str:
    """An inline table of providers, with ours in it."""
    document: Any = tomlkit.parse(_ended(statement.text, newline))
    ours = tomlkit.inline_table()
    ours.update({key: dict(value) if isinstance(value, Mapping) else value for key, value in settings.provider.items()})
    document[PROVIDERS][PROVIDER] = ours
    return str(document.as_string())


def _is_exact(before: str, after: str, settings: Settings) -> bool:
    """Nothing but our own keys differs, and taking them out leads back."""
    try:
        old, new = (parse_document(split_byte_order_mark(text)[1], FILE) for text in (before, after))
        back = undo_setup(after)
    except ConfigError:
        return False
    providers = _table(old.get(PROVIDERS))
    before_us = _table(providers.get(PROVIDER))
    ours = {**before_us, **settings.provider}
    if HEADERS in settings.provider:
        ours[HEADERS] = {**_table(before_us.get(HEADERS)), **_table(settings.provider[HEADERS])}
    expected = {**old, **settings.root, PROVIDERS: {**providers, PROVIDER: ours}}
    return back == before and bool(comparable(new) == comparable(expected))


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _line(key: str, value: str | bool, newline: str) -> str:
    return f"{key} = {written_value(value)}{OURS if key == SEARCH else ''}{newline}"


def _ended(text: str, newline: str) -> str:
    return text if text.endswith("\n") else text + newline
