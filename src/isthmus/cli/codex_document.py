"""A TOML file as its statements: every table head, key, comment and blank line, with the bytes it was written in.

In: the file's text. Out: `Statement`s whose texts, put together, are the file again. Worth knowing: tomlkit reads the
whole first, so that nothing is edited which is not TOML, and then each statement by itself. What is not ours is never
rendered anew: line ends, spacing and order stay because the same text is written back.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import AoT, Table

from isthmus.errors import ConfigError

KeyPath = tuple[str, ...]

# Only what decides where a statement ends. Quotes first: a bracket or a line end inside of them means nothing.
_TOKEN: Final = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}(?!")|\'\'\'.*?'{3,5}(?!')|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[{]|[\]}]|\n|.''',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Statement:
    text: str
    """As it stands in the file, with its line end."""
    line: int
    kind: Literal["table", "key", "comment", "blank"]
    path: KeyPath = ()
    """From the root of the file: of the table that it opens, or of the value that it sets."""
    table: KeyPath = ()
    """The table that it stands in."""
    value: Any = None
    """What a key is set to, as plain Python."""

    @property
    def comment(self) -> str:
        return self.text.strip() if self.kind == "comment" else ""


@functools.lru_cache(maxsize=16)  # one setup looks at the same text from several sides
def read_document(text: str, name: str) -> tuple[Statement, ...]:
    """The statements in their order; a file that is not TOML is refused with the place of the mistake."""
    parse_document(text, name)
    statements: list[Statement] = []
    table: KeyPath = ()
    line = 1
    for piece in _split(text):
        statement = _read(piece, line, table)
        if statement.kind == "table":
            table = statement.path
        statements.append(statement)
        line += piece.count("\n")
    return tuple(statements)


def parse_document(text: str, name: str) -> dict[str, Any]:
    """What the file says, as plain Python."""
    try:
        return tomlkit.parse(text).unwrap()
    except TOMLKitError as error:
        place = f" at line {error.line}, column {error.col + 1}" if isinstance(error, ParseError) else ""
        what = str(error).partition(" at line ")[0].rstrip(".")
        raise ConfigError(f"`{name}` is not valid TOML{place} ({what}); correct it first") from error


def write_document(statements: Sequence[Statement]) -> str:
    return "".join(statement.text for statement in statements)


def written_value(value: Any) -> str:
    """A value as TOML text, on one line."""
    return str(tomlkit.item(value).as_string())


def _split(text: str) -> Iterator[str]:
    start = depth = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if depth <= 0:
                yield text[start : token.end()]
                start, depth = token.end(), 0
    if start < len(text):
        yield text[start:]


def _read(text: str, line: int, table: KeyPath) -> Statement:
    bare = text.strip()
    if not bare:
        return Statement(text, line, "blank", table=table)
    if bare.startswith("#"):
        return Statement(text, line, "comment", table=table)
    path, value = _follow(tomlkit.parse(text).body)
    if bare.startswith("["):
        return Statement(text, line, "table", path, path)
    return Statement(text, line, "key", (*table, *path), table, value)


def _follow(body: Sequence[tuple[Any, Any]]) -> tuple[KeyPath, Any]:
    """The one path that a statement names, through table heads and dotted keys, and the value at its end."""
    path: list[str] = []
    while True:
        found = next(((key, item) for key, item in body if key is not None), None)
        if found is None:
            return tuple(path), None
        key, item = found
        path.append(key.key)
        match item:
            case AoT():
                body = item.body[0].value.body
            case Table():
                body = item.value.body
            case _:
                return tuple(path), item.unwrap()
