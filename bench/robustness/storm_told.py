"""What clients were told in a storm, and the laws that one answer or one stream can be judged by alone."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from bench.robustness.client import TERMINAL, Client, Json, Reply, text_of
from bench.robustness.storm_upstream import FAIR, answer_to

UNFINISHED: Final = ("queued", "in_progress")
_BUSY: Final = ("server_is_overloaded",)
_LATE: Final = 0.5
"""Seconds that this process may be late without being at fault."""
_REMEMBERED: Final = 15.0
"""Seconds until what came of it has been told."""


class _Frame(msgspec.Struct):
    response: msgspec.Raw


_decode_frame: Final = msgspec.json.Decoder(_Frame).decode


@dataclass(slots=True)
class Told:
    """Of all clients together. Ids are kept for ever: the end is judged by them."""

    ended: dict[str, bytes] = field(default_factory=dict)
    """Responses that a client saw with their end, as the bytes of it."""
    accepted: dict[str, str] = field(default_factory=dict)
    """Background responses that were promised, and the words they were asked with."""
    left: set[str] = field(default_factory=set)
    """Streams that their clients left after the first event."""
    deleted: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    """A delete is under way, or its answer was cut."""
    counts: Counter[str] = field(default_factory=Counter)
    """Deeds, and how they came out."""
    wrong: list[str] = field(default_factory=list)
    late_until: float = 0.0
    """Until then a provider that was too slow is no fault of the gateway: this process, which is it, had no turn."""
    due: float = math.inf
    """When this process should have had its next turn."""
    worst_lag: float = 0.0
    killed: bool = False
    """The gateway is being killed: whatever breaks off now is no fault."""

    def note_lag(self) -> None:
        seconds = time.monotonic() - self.due
        self.worst_lag = max(self.worst_lag, seconds)
        if seconds > _LATE:
            self.late_until = time.monotonic() + _REMEMBERED

    def excuses(self, code: str) -> bool:
        self.note_lag()  # whoever reads what came of a delay may have his turn before the one that measures it
        excused = code == "upstream_timeout" and time.monotonic() < self.late_until
        self.counts["excused"] += excused
        return excused

    def expect(self, true: bool, otherwise: str) -> bool:
        if not true and not self.killed:
            self.wrong.append(otherwise)
        return true


@dataclass(slots=True)
class Stream:
    """The events of one stream, and what its terminal event says, byte by byte."""

    events: list[Json] = field(default_factory=list)
    end: bytes = b""
    _frames: AsyncIterator[bytes] | None = None

    @property
    def id(self) -> str:
        return str(self.events[0]["response"]["id"]) if self.events else ""

    async def read(self, client: Client, most: int | None = None) -> bool:
        """Up to its end, or `most` events; whether it has ended."""
        self._frames = self._frames or client.frames()
        async for data in self._frames:
            if data == b"[DONE]":
                continue
            event = json.loads(data)
            self.events.append(event)
            if event["type"] in TERMINAL:
                self.end = bytes(_decode_frame(data).response)
            if most is not None and len(self.events) >= most and not self.end:
                return False
        return True

    def judge(self, told: Told, what: str, first: int = 0) -> bool:
        """Numbered one by one, one terminal event, and it is the last; all words were told."""
        numbers = [event["sequence_number"] for event in self.events]
        ends = [event for event in self.events if event["type"] in TERMINAL]
        right = told.expect(numbers == list(range(first, first + len(numbers))), f"{what}: numbered {numbers[:20]}")
        one = len(ends) == 1 and ends[0] is self.events[-1]
        last = self.events[-1]["type"] if self.events else "none"
        right &= told.expect(one, f"{what}: {len(ends)} terminal events, the last event is {last}")
        if one and first == 0 and ends[0]["response"]["status"] == "completed":
            said = "".join(each["delta"] for each in self.events if each["type"] == "response.output_text.delta")
            right &= told.expect(said == text_of(ends[0]["response"]), f"{what}: some words were not told")
        return right


def judge_response(told: Told, response: Json, words: str) -> None:
    """A fair answer arrives whole; whatever else came, it is an end that there is."""
    status, fate = response["status"], words.partition("/")[0]
    told.expect(status in ("completed", "incomplete", "failed"), f"`{words}` ended as {status}")
    told.counts[f"ended {status}"] += 1
    if fate in FAIR:
        wanted = "incomplete" if fate == "length" else "completed"
        right = status == wanted and text_of(response) == answer_to(words)
        right = right or (status == "failed" and told.excuses(response["error"]["code"]))
        told.expect(right, f"`{words}`, fair: {status} {response['error']} {text_of(response)[:60]!r}")


def judge_refusal(told: Told, reply: Reply, words: str) -> None:
    """Not served: the provider is to blame, or we said that it is too much; in the shape that errors have."""
    error: Any = reply.json.get("error") if reply.body.startswith(b"{") else None
    fate = words.partition("/")[0]
    shaped = isinstance(error, dict) and error.keys() >= {"message", "type", "param", "code"}
    told.expect(shaped, f"`{words}`: {reply.status} {reply.body[:200]!r}")
    code = error["code"] if shaped else ""
    told.counts[f"refused {reply.status} {code}"] += 1
    busy = reply.status == 503 and code in _BUSY
    foul = fate not in FAIR and reply.status in (429, 502, 503, 504)
    told.expect(busy or foul or told.excuses(code), f"`{words}`: {reply.status} {reply.body[:200]!r}")
