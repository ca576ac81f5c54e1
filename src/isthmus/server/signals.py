"""What the operating system tells us: end in good order, end now, or read the certificate again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGINT)


def on_signals(stop: asyncio.Event, hurry: asyncio.Event, hangup: Callable[[], None]) -> None:
    """The first SIGTERM or SIGINT sets `stop`, the second `hurry`; a third one has the system's own effect.

    SIGHUP comes when a terminal closes, and from people who want files to be read again: it ends nothing.
    """
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if stop.is_set():
            hurry.set()
            for each in ENDING:
                _ignore(loop, each)
        stop.set()

    for each in ENDING:
        _listen(loop, each, asked)
    if hasattr(signal, "SIGHUP"):
        _listen(loop, signal.SIGHUP, hangup)


def _listen(loop: asyncio.AbstractEventLoop, each: signal.Signals, do: Callable[[], None]) -> None:
    try:
        loop.add_signal_handler(each, do)
    except NotImplementedError:  # Windows
        signal.signal(each, lambda *_: loop.call_soon_threadsafe(do))


def _ignore(loop: asyncio.AbstractEventLoop, each: signal.Signals) -> None:
    with suppress(NotImplementedError):
        loop.remove_signal_handler(each)
