"""What a scripted upstream remembers of each request: what came, when, and when the client let go."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import msgspec

from isthmus.protocol.json import JsonObject
from isthmus.testing.signals import Signal


@dataclass(slots=True, eq=False)
class RecordedRequest:
    """One request as it arrived. Times are those of `time.monotonic`."""

    method: str
    target: str
    """Path and query, as sent."""
    raw_headers: tuple[tuple[str, str], ...]
    """In the client's own order and spelling."""
    body: bytes
    """The body's bytes, freed from chunked framing."""
    arrived_at: float
    connection: int
    """Which connection it came on, counted from 1: tells whether a client reuses them."""
    answered_at: float | None = None
    """When the last byte of a whole answer was handed to the socket."""
    closed_at: float | None = None
    """When the client closed or reset the connection with this as its latest request."""
    answered: Signal = field(default_factory=lambda: Signal("the answer's last byte"))
    closed: Signal = field(default_factory=lambda: Signal("the client's close"))
    keep_alive: bool = True

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def headers(self) -> dict[str, str]:
        """By lower-case name; repeated ones joined with a comma."""
        joined: dict[str, str] = {}
        for name, value in self.raw_headers:
            key = name.lower()
            joined[key] = f"{joined[key]}, {value}" if key in joined else value
        return joined

    @property
    def json(self) -> JsonObject:
        """The body as a JSON object; `AssertionError` where it is none."""
        try:
            return msgspec.json.decode(self.body, type=JsonObject)
        except msgspec.DecodeError as error:
            raise AssertionError(f"{self.method} {self.target} has no JSON object as its body: {error}") from error

    @property
    def left_early(self) -> bool:
        """Whether the client went away before the answer was whole."""
        return self.closed_at is not None and self.answered_at is None
