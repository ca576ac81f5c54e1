"""Secrets and whatever the operator's patterns find, taken out of traces before they are stored.

In: packed traces. Out: the same, with `<redacted>` in place of secrets in every text and every name. The secrets of a
configuration are found as everywhere (`scrub`); a trace that certainly holds none costs one quick look. Patterns
are run in a worker process within a time: an expression that does not end there is killed with it, and what it was to
look at is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import msgspec

from isthmus.errors import WorkNotDone
from isthmus.ports.packed import PackedTrace, Pattern, pack, plain, unpack, unpack_summary
from isthmus.ports.traced import Capture, Trace
from isthmus.scrub import Scrubber, Secret

WITHHELD: Final = "<withheld>"
"""In place of words that could not be looked at."""
_OURS: Final = frozenset(
    {
        *("id", "response", "previous", "conversation", "thread", "owner", "key", "provider", "client", "marks"),
        *("door", "method", "outcome", "capture", "action", "severity", "why", "code", "kind", "type"),
    }
)
"""Fields with words of our own: what a pattern finds there is no secret, and without them nothing is found again."""
_THEIRS: Final = frozenset({"content", "metadata"})
"""Fields whose inside somebody else has named."""
MOST_SOUND: Final = 1_000
"""Patterns of which it is remembered whether something is to be hidden in them."""
_LOOK: Final = 16
"""Traces that are looked at together: fewer looks, and no text so long that its memory comes from the system."""
_bytes: Final = attrgetter("head", "detail")
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_decode_trace: Final = msgspec.json.Decoder(Trace).decode

Finder = Callable[[Sequence[str]], Sequence[str]]
"""Texts with what the patterns find hidden, in their order. Raises `WorkNotDone`."""


class Cleaner:
    def __init__(self, scrubber: Scrubber, find: Finder | None = None) -> None:
        self._scrubber = scrubber
        self._find = find
        self._sound: dict[Pattern, bool] = {}
        self.withheld = 0
        """Traces whose words were left out."""

    def learn(self, secrets: Sequence[Secret]) -> None:
        """Hide these, too: what was a secret once stays one."""
        self._scrubber = self._scrubber.and_also(secrets)
        self._sound = {}

    def clean(self, traces: Sequence[PackedTrace]) -> Sequence[PackedTrace]:
        if self._find is not None:
            return self._clean_closely(list(map(plain, traces)), self._find)
        patterns = {id(trace.pattern): trace.pattern for trace in traces}
        if not all(map(self._is_sound, patterns.values())):
            traces = [trace if self._is_sound(trace.pattern) else plain(trace) for trace in traces]
        cleaned: list[PackedTrace] = []
        for start in range(0, len(traces), _LOOK):
            some = traces[start : start + _LOOK]
            if self._may_change(some):
                some = [self._clean(plain(trace)) if self._may_change([trace]) else trace for trace in some]
            cleaned += some
        return cleaned

    def _is_sound(self, pattern: Pattern | None) -> bool:
        """Whether nothing is to be hidden in what many have in common: it is looked through once."""
        if pattern is None:
            return True
        sound = self._sound.get(pattern)
        if sound is None:
            if len(self._sound) >= MOST_SOUND:
                self._sound = {}
            text = b"\n".join((*pattern.head, *pattern.detail)).decode()
            sound = self._sound[pattern] = not self._scrubber.may_change(text)
        return sound

    def _may_change(self, traces: Sequence[PackedTrace]) -> bool:
        return self._scrubber.may_change(b"\n".join(chain.from_iterable(map(_bytes, traces))).decode())

    def _clean(self, trace: PackedTrace) -> PackedTrace:
        return _pack(_map(_open(trace), self._scrubber.text))

    def _clean_closely(self, traces: Sequence[PackedTrace], find: Finder) -> Sequence[PackedTrace]:
        """All texts of all of them at once; if that cannot be done, each for itself."""
        values = [_map(_open(trace), self._scrubber.text) for trace in traces]
        texts = list(dict.fromkeys(text for value in values for text in _texts(value)))
        try:
            found = dict(zip(texts, find(texts), strict=True))
        except WorkNotDone:
            if len(traces) > 1:
                return [one for trace in traces for one in self._clean_closely([trace], find)]
            self.withheld += 1
            return [pack(withhold(unpack(unpack_summary(trace.head), trace.detail))) for trace in traces]
        return [_pack(_map(value, lambda text: found[text])) for value in values]


def _open(trace: PackedTrace) -> dict[str, Any]:
    """As it is read by anybody, its names and values."""
    return {**_decode(trace.detail), "summary": _decode(trace.head)}


def _pack(value: dict[str, Any]) -> PackedTrace:
    return pack(_decode_trace(_encode(value)))


def withhold(trace: Trace) -> Trace:
    """What is left where nobody knows what its words are: figures."""
    summary = msgspec.structs.replace(
        trace.summary,
        client_id="",
        path="",
        asked_model=WITHHELD,
        model=WITHHELD if trace.summary.model else "",
        capture=_METADATA,
    )
    return Trace(summary=summary, timings=trace.timings, batches=trace.batches, events=trace.events, marks=trace.marks)


_METADATA: Final[Capture] = "metadata"


def _map(value: Any, change: Callable[[str], str]) -> Any:
    """Every text of a trace that comes from outside; in contents every name, too."""
    match value:
        case str():
            return change(value)
        case list():
            return [_map(inner, change) for inner in value]
        case dict():
            return {name: _map_field(name, inner, change) for name, inner in value.items()}
    return value


def _map_field(name: str, value: Any, change: Callable[[str], str]) -> Any:
    if name in _OURS:
        return value
    if name == "pieces":
        return [[change(path), size, hash, change(role)] for path, size, hash, role in value]
    return _map_all(value, change) if name in _THEIRS else _map(value, change)


def _map_all(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case list():
            return [_map_all(inner, change) for inner in value]
        case dict():
            return {change(name): _map_all(inner, change) for name, inner in value.items()}
    return value


def _texts(value: Any) -> list[str]:
    found: list[str] = []

    def take(text: str) -> str:
        found.append(text)
        return text

    _map(value, take)
    return found
