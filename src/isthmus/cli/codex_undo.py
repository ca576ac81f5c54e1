"""Our keys are taken out of a Codex configuration: those and nothing else, wherever they have come to stand.

In: the file's text. Out: the text without us. Worth knowing: Codex writes its own keys and tables between, behind and
into ours, so ours are known by key and table, never by the lines around them. A key that somebody else has put into our
table stays, and so does the table then, with the name without which Codex refuses its whole configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tomlkit

from isthmus.cli.changes import split_byte_order_mark
from isthmus.cli.codex_document import Statement, read_document
from isthmus.cli.codex_keys import (
    ACTOR,
    FILE,
    HEADERS,
    JOINED,
    OWN_PATHS,
    PROVIDER,
    PROVIDERS,
    TABLE,
    TABLE_KEYS,
    comparable,
    is_mark,
    is_our_catalogue,
    is_our_search,
    kept_statement,
)


def undo_setup(text: str, name: str = FILE) -> str:
    """The text without our keys; what they had replaced is back in its place. `name` is what the file is called."""
    if not has_setup(text, name):
        return text
    mark, body = split_byte_order_mark(text)
    return mark + _take_out(read_document(body, name))


def has_setup(text: str, name: str = FILE) -> bool:
    if PROVIDER not in text:
        return False
    return any(is_mark(each) or is_our_catalogue(each) for each in read_document(split_byte_order_mark(text)[1], name))


def _take_out(statements: Sequence[Statement]) -> str:
    own = _OwnKeys(statements)
    front: list[str] = []
    lines: list[str] = []
    joint: int | None = None
    for each in statements:
        if is_mark(each):
            joint = len(lines) if each.comment.endswith(JOINED) else joint
        elif (kept := kept_statement(each)) is not None:
            # A root key that has come to stand below a table head belongs to the front.
            (front if each.table else lines).append(kept.text if own.may_return(kept) else "")
        else:
            lines.append(own.without_ours(each))
    text = "".join([*front, *lines])
    if joint is not None and not any(lines[joint:]):
        return text.removesuffix("\n").removesuffix("\r")
    return text


class _OwnKeys:
    """Which statements are ours, and what comes back in their place."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._keys = {each.path: each for each in statements if each.kind == "key"}
        self._ours = {path for path, each in self._keys.items() if is_our_catalogue(each) or is_our_search(each)}
        provider = self._keys.get(("model_provider",))
        if provider is not None and provider.value == PROVIDER:
            # The model belongs to its provider: whichever was picked since, it is one of the gateway's.
            self._ours |= {("model_provider",), ("model",)}
        table = set(OWN_PATHS)
        within = {each.path for each in statements if each.kind in ("key", "table") and each.path[:2] == TABLE}
        self._ours |= table - {(*TABLE, "name")} if within - table - {TABLE} else table | {TABLE}
        self._providers: str | None = None

    def without_ours(self, statement: Statement) -> str:
        """What is left of a statement: most often all or nothing."""
        if statement.kind == "key" and isinstance(statement.value, dict):
            if statement.path == (PROVIDERS,) and PROVIDER in statement.value:
                return self._providers if self._providers is not None else _edit(statement, (PROVIDERS, PROVIDER))
            if statement.path == TABLE:
                return _edit(statement, statement.path[len(statement.table) :])
        is_ours = statement.kind in ("key", "table") and statement.path in self._ours
        return "" if is_ours else statement.text

    def may_return(self, kept: Statement) -> bool:
        """Whether the key that the user had comes back: not if it was set anew since then."""
        now = self._keys.get(kept.path)
        if now is None or now.path in self._ours:
            return True
        if now.path == (PROVIDERS,) and isinstance(now.value, dict) and now.value.get(PROVIDER) is not None:
            rest = _left_inside(now.value[PROVIDER])
            others = {key: value for key, value in now.value.items() if key != PROVIDER}
            if comparable({**others, **({PROVIDER: rest} if rest else {})}) == comparable(kept.value):
                self._providers = kept.text  # takes the place of the statement below it
        return False


def _left_inside(ours: Any) -> dict[str, Any]:
    """What others have put into our provider, with its name; empty if they have put in nothing."""
    if not isinstance(ours, dict):
        return {}
    left = {key: _without_actor(key, value) for key, value in ours.items() if key == "name" or key not in TABLE_KEYS}
    left = {key: value for key, value in left.items() if value is not None}
    return left if set(left) - {"name"} else {}


def _without_actor(key: str, value: Any) -> Any:
    """Headers without ours; `None`: there was no other."""
    if key != HEADERS or not isinstance(value, dict):
        return value
    return {name: text for name, text in value.items() if name != ACTOR} or None


def _edit(statement: Statement, path: Sequence[str]) -> str:
    """A statement with an inline table, without our keys in the table at `path`."""
    document = tomlkit.parse(statement.text)
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    left = _left_inside(holder[path[-1]].unwrap())
    if not left and len(path) == 1:
        return ""
    if not left:
        del holder[path[-1]]
    else:
        for key in set(holder[path[-1]]).difference(left):
            del holder[path[-1]][key]
        if HEADERS in left and ACTOR in holder[path[-1]][HEADERS]:
            del holder[path[-1]][HEADERS][ACTOR]
    return document.as_string()
