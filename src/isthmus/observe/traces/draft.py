"""The facts of one request as they come; nothing is made of them here."""

from __future__ import annotations

from typing import Any

import msgspec

from isthmus.observe.traces.bodies import PackedBody
from isthmus.ports import Answered, Ended, Planned, Received
from isthmus.ports.traced import TracedCall, TracedItem


class Asked(msgspec.Struct, frozen=True, gc=False):
    """Of a request, what its summary tells; whatever a client may have written there."""

    model: Any = None
    stream: Any = None
    store: Any = None
    previous_response_id: Any = None
    conversation: Any = None
    prompt_cache_key: Any = None


class Packed(msgspec.Struct, frozen=True, gc=False):
    request: PackedBody
    asked: Asked
    call: TracedCall
    """The one asking of an upstream, without …"""
    sent: PackedBody
    """… what went out."""
    decisions: bytes
    """As the plan has them; JSON, like the rest."""
    diagnostics: bytes
    output: tuple[TracedItem, ...]
    usage: bytes


class Draft(msgspec.Struct):
    began: float
    """When its first byte came, or where there is no request when it was planned, by a clock that only goes on …"""
    last: float
    """… and when the last fact came."""
    planned: Planned | None = None
    ended: Ended | None = None
    answered: Answered | None = None
    over: float = 0.0
    """When its run ended, by the same clock."""
    at: float = 0.0
    """When it began, by the clock of the day."""
    full: bool = False
    """Whether its content is wanted."""
    weight: int = 4_000
    """About how many bytes it holds on to: so many beside the bodies that it refers to."""
    packed: Packed | None = None
    """What its facts refer to, as bytes (`packing`): then they refer to it no more."""

    @property
    def received(self) -> Received | None:
        return None if self.answered is None else self.answered.received

    @property
    def id(self) -> str:
        """Of its request; of a run without one, the run's."""
        if self.answered is not None:
            return self.answered.request
        return "" if self.planned is None else self.planned.request or self.planned.id
