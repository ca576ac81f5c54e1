"""Secrets and whatever the operator's patterns find, taken out of traces before they are stored.

In: traces. Out: the same, with `<redacted>` in place of secrets in every text and every name. The secrets that a
configuration holds are found as everywhere (`scrub`); a trace that certainly holds none costs one quick look. Patterns
are run in a worker process within a time: an expression that does not end there is killed with it, and what it was to
look at is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from isthmus.errors import WorkNotDone
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
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_decode_trace: Final = msgspec.json.Decoder(Trace).decode

Finder = Callable[[Sequence[str]], Sequence[str]]
"""Texts with what the patterns find hidden, in their order. Raises `WorkNotDone`."""


class Cleaner:
    def __init__(self, scrubber: Scrubber, find: Finder | None = None) -> None:
        self._scrubber = scrubber
        self._find = find
        self.withheld = 0
        """Traces whose words were left out."""

    def learn(self, secrets: Sequence[Secret]) -> None:
        """Hide these, too: what was a secret once stays one."""
        self._scrubber = self._scrubber.and_also(secrets)

    def clean(self, traces: Sequence[Trace]) -> Sequence[Trace]:
        if self._find is not None:
            return self._clean_closely(traces, self._find)
        if len(traces) > 1 and not self._scrubber.may_change(_encode(traces).decode()):
            return traces  # one look at all of them takes less than one at each
        return [self._clean(trace) for trace in traces]

    def _clean(self, trace: Trace) -> Trace:
        data = _encode(trace)
        if not self._scrubber.may_change(data.decode()):
            return trace
        return _decode_trace(_encode(_map(_decode(data), self._scrubber.text)))

    def _clean_closely(self, traces: Sequence[Trace], find: Finder) -> Sequence[Trace]:
        """All texts of all of them at once; if that cannot be done, each for itself."""
        values = [_map(_decode(_encode(trace)), self._scrubber.text) for trace in traces]
        texts = list(dict.fromkeys(text for value in values for text in _texts(value)))
        try:
            found = dict(zip(texts, find(texts), strict=True))
        except WorkNotDone:
            if len(traces) > 1:
                return [one for trace in traces for one in self._clean_closely([trace], find)]
            self.withheld += 1
            return [withhold(trace) for trace in traces]
        return [_decode_trace(_encode(_map(value, lambda text: found[text]))) for value in values]


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
