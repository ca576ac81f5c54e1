"""What the operating system tells us: end in good order, end now, make room for another, or read files again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGINT)
REPLACED: Final = getattr(signal, "SIGWINCH", None)
"""Another process has the place of this one: it lets nobody in, and goes on with what it has for as long as after a
reload. (nginx gives this signal the same meaning; where nobody handles it, it has none.)"""


@dataclass(frozen=True, slots=True)
class Ending:
    """What was said about the end."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing new is begun any more."""
    called: asyncio.Event = field(default_factory=asyncio.Event)
    """Somebody asked for the end."""
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    """They asked once more."""

    @property
    def patient(self) -> bool:
        """Whether it only makes room for another process."""
        return self.stop.is_set() and not self.called.is_set()


def on_signals(ending: Ending, hangup: Callable[[], None]) -> None:
    """The first SIGTERM or SIGINT asks for the end, the second for a quick one; a third one has its own effect.

    SIGHUP comes when a terminal closes, and from people who want files to be read again: it ends nothing.
    """
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if ending.called.is_set():
            ending.hurry.set()
            for each in ENDING:
                _ignore(loop, each)
        ending.called.set()
        ending.stop.set()

    for each in ENDING:
        _listen(loop, each, asked)
    if hasattr(signal, "SIGHUP"):
        _listen(loop, signal.SIGHUP, hangup)


def on_replaced(ending: Ending) -> None:
    """For one of several workers: its supervisor may say that another one serves in its place."""
    if REPLACED is not None:
        _listen(asyncio.get_running_loop(), REPLACED, ending.stop.set)


def _listen(loop: asyncio.AbstractEventLoop, each: signal.Signals, do: Callable[[], None]) -> None:
    try:
        loop.add_signal_handler(each, do)
    except NotImplementedError:  # Windows
        signal.signal(each, lambda *_: loop.call_soon_threadsafe(do))


def _ignore(loop: asyncio.AbstractEventLoop, each: signal.Signals) -> None:
    with suppress(NotImplementedError):
        loop.remove_signal_handler(each)
