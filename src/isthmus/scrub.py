"""Secrets that we know, taken out of words that we did not write.

In: the secrets of a provider (its keys, header values, query values, passwords in its address) and a text from outside
(an error body, an exception of a library, a child's stderr). Out: the text with `<redacted>` in their place. It is
applied where such a text enters, so nothing further in has to think of it; never to what a model says.

A secret is found plain, percent-encoded (once or more) and escaped as in JSON or in a `repr`, in capitals or not. What
is left of one that somebody has cut is found too: its beginning or its end, from 8 characters on. A secret that is
shorter than that may well be a word (`test`, `ollama`), so it is hidden only where it stands as one: behind its own
name, behind a word such as `key` or `Bearer`, or before the `@` of an address.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

HIDDEN: Final = "<redacted>"

Scrub = Callable[[str], str]
"""Takes the secrets out of a text."""

_DATABASES: Final = ("postgres", "postgresql", "redis", "rediss", "unix")
_PIECE: Final = 8
"""Shortest beginning or end of a secret that gives it away; a shorter secret is hidden only in its place."""
_SURE: Final = 12
"""From so many characters on, a beginning or an end counts even in the middle of a word."""

_SHOWN_NAMES: Final = frozenset(
    {
        *("api-version", "apiversion", "version", "alt", "region", "location", "model", "deployment"),
        *("accept", "accept-encoding", "accept-language", "content-type", "user-agent", "origin"),
        *("referer", "http-referer", "x-title", "anthropic-version", "anthropic-beta", "openai-beta"),
    }
)
_SCHEME: Final = re.compile(r"(?i)(bearer|basic|token|key|apikey)\s+(?=\S)")
_ESCAPE: Final = re.compile(
    r"(?:%(?:25)*|\\+x)(?P<byte>[0-9A-Fa-f]{2})|\\+u(?P<point>[0-9A-Fa-f]{4})"
    r"|\\+(?P<bare>[^\sA-Za-z0-9\\])|(?P<slash>\\\\)"
)
_IN_WORD: Final = re.compile(r"[A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that nobody may see, and the name it stands under."""

    value: str = field(repr=False)
    name: str = ""


def is_shown(name: str) -> bool:
    """Whether a header or query parameter of this name says something about the request, never about who sends it."""
    return name.lower().replace("_", "-") in _SHOWN_NAMES


def header_secrets(headers: Mapping[str, str]) -> Iterator[Secret]:
    """Every header's value, without the scheme before it, unless its name is an innocent one."""
    for name, text in headers.items():
        if is_shown(name):
            continue
        scheme = _SCHEME.match(text)
        value = text[scheme.end() :] if scheme else text
        yield Secret(value, name)
        if scheme and scheme[1].lower() == "basic":
            yield from _basic_secrets(value)
        if name.lower() == "cookie":
            yield from (Secret(part.partition("=")[2].strip(), name) for part in text.split(";"))


def query_secrets(query: Mapping[str, str]) -> Iterator[Secret]:
    return (Secret(value, name) for name, value in query.items() if not is_shown(name))


def url_secrets(url: str) -> Iterator[Secret]:
    """User and password of an address, as they are and as the header they become, and its query values. Of a database
    only what is called a password: its user is often called as half of the words in a log are."""
    try:
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
    except ValueError:
        return
    yield Secret(password, "password")
    if parts.scheme in _DATABASES:
        yield from (Secret(value, name) for name, value in parse_qsl(parts.query) if name.endswith("password"))
        return
    yield Secret(user, "user")
    if user or password:
        yield Secret(base64.b64encode(f"{user}:{password}".encode()).decode(), "authorization")
    yield from query_secrets(dict(parse_qsl(parts.query)))


class Scrubber:
    """Hides a set of secrets. Making one costs nothing to speak of; texts without any cost one search for each."""

    __slots__ = ("_ends", "_long", "_short", "secrets")

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self.secrets: tuple[Secret, ...] = tuple(dict.fromkeys(secret for secret in secrets if secret.value))
        values = {secret.value for secret in self.secrets if len(secret.value) >= _PIECE}
        self._long: Sequence[str] = sorted(values, key=len, reverse=True)
        plain = [_plain(value).lower() for value in self._long]
        self._ends = tuple(dict.fromkeys(end for value in plain for end in (value[:_PIECE], value[-_PIECE:])))
        self._short = tuple(_in_its_place(secret) for secret in self.secrets if len(secret.value) < _PIECE)

    def __repr__(self) -> str:
        return f"Scrubber({len(self.secrets)} secrets)"

    def and_also(self, more: Iterable[Secret]) -> Scrubber:
        """One that hides these, too."""
        added = tuple(more)
        return Scrubber((*self.secrets, *added)) if added else self

    def text(self, text: str) -> str:
        """The text without the secrets."""
        for value in self._long:
            text = text.replace(value, HIDDEN)
        if self._long:
            text = _hide_folded(text, self._long)
        for values, pattern in self._short:
            if any(value in text for value in values):  # far cheaper than the pattern, and nearly always enough
                text = pattern.sub(rf"\g<lead>{HIDDEN}", text)
        return text

    def may_change(self, text: str) -> bool:
        """False: certainly nothing is to be hidden in it. Much quicker than to look closely; for what is looked at in
        large numbers and hardly ever holds a secret."""
        if not self.secrets:
            return False
        if "%" in text or "\\" in text:
            return True  # it may stand there in another spelling
        folded = _plain(text).lower()
        for piece in self._ends:
            if piece in folded:
                return True
        return any(value in text for values, _ in self._short for value in values)

    def json(self, value: Any) -> Any:
        """The same for every string inside a JSON value; what holds none is the value itself."""
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.json(inner) for inner in value]
            case dict():
                return {name: self.json(inner) for name, inner in value.items()}
        return value


def unscrubbed(text: str) -> str:
    """For words that come from where there are no secrets."""
    return text


# ── long secrets: found in any spelling, whole or cut ─────────────────────────────────────────────────


def _hide_folded(text: str, values: Sequence[str]) -> str:
    folded, starts = _fold(text)
    folded = folded.lower()  # servers write headers and escapes as they like
    spans = sorted(span for value in values for span in _spans(folded, _plain(value).lower()))
    shown: list[str] = []
    end = 0
    for start, stop in spans:
        begin, after = starts[start], starts[stop]
        if begin >= end:
            shown += [text[end:begin], HIDDEN]
        end = max(end, after)
    return "".join((*shown, text[end:])) if spans else text


def _spans(folded: str, value: str) -> Iterator[tuple[int, int]]:
    """Where the value stands, or a beginning or an end of it."""
    for at in _places(folded, value[:_PIECE]):
        length = _PIECE
        while length < len(value) and folded[at + length : at + length + 1] == value[length]:
            length += 1
        if length >= min(_SURE, len(value)) or not _IN_WORD.match(folded, at + length):
            yield at, at + length
    for at in _places(folded, value[-_PIECE:]):
        length = _PIECE
        while length < len(value) and at > 0 and folded[at - 1] == value[-length - 1]:
            at, length = at - 1, length + 1
        if length >= min(_SURE, len(value)) or at == 0 or not _IN_WORD.match(folded, at - 1):
            yield at, at + length


def _places(folded: str, piece: str) -> Iterator[int]:
    at = folded.find(piece)
    while at >= 0:
        yield at
        at = folded.find(piece, at + 1)


def _fold(text: str) -> tuple[str, Sequence[int]]:
    """The text with its escapes undone, one character for each byte; and where in the text each of them began."""
    escapes = list(_ESCAPE.finditer(text)) if "%" in text or "\\" in text else []
    if not escapes and text.isascii():
        return text.replace(" ", "+"), range(len(text) + 1)
    folded: list[str] = []
    starts: list[int] = []
    at = 0
    for escape in escapes:
        _fold_plain(text, at, escape.start(), folded, starts)
        meant = _meant(escape)
        folded.append(meant)
        starts += [escape.start()] * len(meant)
        at = escape.end()
    _fold_plain(text, at, len(text), folded, starts)
    starts.append(len(text))
    return "".join(folded), starts


def _meant(escape: re.Match[str]) -> str:
    if escape["byte"]:
        return chr(int(escape["byte"], 16)).replace(" ", "+")
    if escape["point"]:
        return _plain(chr(int(escape["point"], 16)))
    return _plain(escape["bare"] or "\\")


def _fold_plain(text: str, start: int, end: int, folded: list[str], starts: list[int]) -> None:
    stretch = text[start:end]
    folded.append(_plain(stretch))
    if stretch.isascii():
        starts += range(start, end)
    else:
        starts += [place for place in range(start, end) for _ in _plain(text[place])]


def _plain(text: str) -> str:
    """One character for each byte of UTF-8; a space counts as the `+` that it is in a query."""
    bytewise = text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")
    return bytewise.replace(" ", "+")


# ── short secrets: hidden where they stand as such ────────────────────────────────────────────────────


def _in_its_place(secret: Secret) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """The spellings of a short secret, and where they are to be hidden."""
    spelled = (secret.value, quote(secret.value, safe=""))
    value = _either(*spelled)
    name = _either(secret.name, quote(secret.name, safe=""), "authorization")
    named = rf"(?<![A-Za-z0-9])(?:{name}|(?:api)?key|token|secret|password|credentials?)(?: \w+)?"
    return spelled, re.compile(
        rf"(?P<lead>(?i:{named}[\"'`\\]*\s*[:=]\s*[\"'`\\]*(?:(?:bearer|basic)\s+)?|\bbearer\s+[\"'`]?)"
        rf"|(?P<user>(?<=//)(?:[^\s/@:]*:)?))"
        rf"(?:{value})(?(user)(?=[^\s/]*@)|(?![A-Za-z0-9_-]))"
    )


def _either(*words: str) -> str:
    return "|".join(re.escape(word) for word in dict.fromkeys(words) if word)


def _basic_secrets(value: str) -> Iterator[Secret]:
    try:
        user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return
    yield Secret(password, "password")
    yield Secret(user, "user")
