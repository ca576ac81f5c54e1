"""What one worker was told to do, and all have to: capture everything, and believe an ended session no more."""

from __future__ import annotations

from typing import Final

import msgspec

from isthmus.ports.traces import Tracing
from isthmus.server.ended import MOST, Ended
from isthmus.server.reporting import Reporting

CAPTURE: Final = "capture"
ENDED: Final = "ended"
KEPT: Final = {CAPTURE: 1, ENDED: MOST}
"""Topic → how many of the last switches a worker has to hear that comes later."""


class _Captured(msgspec.Struct, frozen=True, array_like=True):
    until: float
    owner: str
    key: str


def share_switches(reporting: Reporting, tracing: Tracing | None, ended: Ended) -> None:
    """Before the line is opened: what was switched earlier comes at once."""
    if tracing is not None:

        def heard(value: bytes) -> None:
            told = msgspec.msgpack.decode(value, type=_Captured)
            tracing.capture_until(told.until, told.owner, told.key)

        reporting.on(CAPTURE, heard)
        tracing.tell_others = lambda until, owner, key: reporting.switch(
            CAPTURE, msgspec.msgpack.encode(_Captured(until, owner, key))
        )
    reporting.on(ENDED, lambda value: ended.hear(value.decode()))
    ended.tell = lambda word: reporting.switch(ENDED, word.encode())
