"""A JSON file as its text: members are set and taken out in place, and everything else keeps its bytes.

In: the text, a path to an object, a name. Out: the new text. Worth knowing: nothing but the one member is rendered, in
the manner of its neighbours; a member that was added and is taken out again leaves the text of before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from isthmus.errors import ConfigError

_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_SPACE: Final = " \t\r\n"
_INDENT: Final = "  "


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    start: int
    """Where its name begins."""
    value: int
    end: int
    """Where its value ends."""


@dataclass(frozen=True, slots=True)
class Braces:
    """One object in the text."""

    opens: int
    """Behind its `{`."""
    closes: int
    """Before its `}`."""
    members: tuple[Member, ...]

    def find(self, name: str) -> Member | None:
        """Of members with the same name the last one counts, as for every reader."""
        return next((each for each in reversed(self.members) if each.name == name), None)


def parse_json(text: str, name: str) -> Any:
    """What the file says; one that is not JSON is refused with the place of the mistake."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"at line {error.lineno}, column {error.colno}"
        raise ConfigError(f"`{name}` is not valid JSON {place} ({error.msg}); correct it first") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"`{name}` is not valid JSON ({error}); correct it first") from error


def read_object(text: str, path: Sequence[str] = ()) -> Braces | None:
    """The object at this path of a text that is JSON; `None`: there is none."""
    found = _scan(text, text.index("{")) if text.lstrip().startswith("{") else None
    for name in path:
        member = found.find(name) if found else None
        found = _scan(text, member.value) if member and text[member.value] == "{" else None
    return found


def set_member(text: str, path: Sequence[str], name: str, value: str) -> str:
    """Put `value`, which is JSON text, in the place of the member's value, or behind the last member."""
    place = read_object(text, path)
    assert place is not None, "callers look first"
    member = place.find(name)
    if member is not None:
        return text[: member.value] + value + text[member.end :]
    written = json.dumps(name, ensure_ascii=False)
    if place.members:
        last = place.members[-1]
        gap = text[: last.start][len(text[: last.start].rstrip(_SPACE)) :]
        colon = text[_string_end(text, last.start) : last.value]
        return f"{text[: last.end]},{gap}{written}{colon}{value}{text[last.end :]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    outer, inner = (newline + _INDENT * depth for depth in (len(path), len(path) + 1))
    return f"{text[: place.opens]}{inner}{written}: {value}{outer}{text[place.closes :]}"


def remove_member(text: str, path: Sequence[str], name: str, hollow: str = "") -> str:
    """Take the member out with the comma that it needed; `hollow` is what stands between braces that become empty."""
    place = read_object(text, path)
    member = place.find(name) if place else None
    if place is None or member is None:
        return text
    at = place.members.index(member)
    if at > 0:
        return text[: place.members[at - 1].end] + text[member.end :]
    if len(place.members) > 1:
        return text[: member.start] + text[place.members[1].start :]
    return text[: place.opens] + hollow + text[place.closes :]


def _scan(text: str, start: int) -> Braces:
    """Read one object of a text that is known to be JSON; what its values hold is passed over."""
    members: list[Member] = []
    depth, name, value, end = 0, -1, -1, -1
    for token in _TOKEN.finditer(text, start):
        mark = token[0]
        if mark in ("}", "]"):
            depth -= 1
        closes = depth == 0 and mark == "}"
        if name >= 0 and (closes or (depth == 1 and mark == ",")):
            members.append(Member(json.loads(text[name : _string_end(text, name)]), name, value, end))
            name = value = -1
        elif depth == 1 and name < 0:
            name = token.start()
        elif depth == 1 and value < 0 and mark != ":":
            value = token.start()
        if closes:
            return Braces(start + 1, token.start(), tuple(members))
        end = token.end()
        if mark in ("{", "["):
            depth += 1
    raise AssertionError("the text is not JSON; callers look first")


def _string_end(text: str, start: int) -> int:
    found = _TOKEN.match(text, start)
    assert found is not None
    return found.end()


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"`{name}` is no JSON number")
