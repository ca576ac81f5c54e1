"""A worker's side of `server.workers`: the socket that it shares with the others, and its signs of life.

The supervisor (see `supervise`) starts this very program again, with an environment variable that names two open files:
the listening socket, and a pipe. Into the pipe goes a byte when the worker serves, and one every second from its loop:
a loop that is stuck sends none. Who reads it is the only one that keeps it open; when that one is gone, the worker ends
in good order.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "ISTHMUS_WORKER"
READY: Final = b"r"
BEAT: Final = b"."
EVERY: Final = 1.0
"""Seconds between two signs of life."""
ASKED: Final = getattr(signal, "SIGUSR1", None)
"""Asks a worker where it stands: every thread's stack goes into the log, also while the interpreter is held."""


@dataclass(frozen=True, slots=True)
class Post:
    """What a worker was started with."""

    number: int
    listener: int
    pipe: int

    def spell(self) -> str:
        return f"{self.number}:{self.listener}:{self.pipe}"


def take_post(environ: MutableMapping[str, str]) -> Post | None:
    """The post of this process, once: what it starts itself is no worker. `None`: it is the whole gateway."""
    spelt = environ.pop(VARIABLE, "")
    if not spelt:
        return None
    number, listener, pipe = map(int, spelt.split(":"))
    return Post(number, listener, pipe)


class Beating:
    """Signs of life, from inside the loop, until there is nobody to hear them: then `stop` is set."""

    def __init__(self, post: Post, stop: asyncio.Event) -> None:
        self._pipe = post.pipe
        self._stop = stop
        self._timer: asyncio.TimerHandle | None = None
        os.set_blocking(post.pipe, False)
        if ASKED is not None:
            # Told by C code, below whatever holds the interpreter up.
            faulthandler.register(ASKED, file=sys.stderr, all_threads=True)

    def start(self) -> None:
        self._say(READY)
        self._again()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with suppress(OSError):
            os.close(self._pipe)

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(EVERY, self._again)
        self._say(BEAT)

    def _say(self, sign: bytes) -> None:
        try:
            os.write(self._pipe, sign)
        except BlockingIOError:  # full of signs that were not read yet: those say as much
            pass
        except OSError:
            self._stop.set()
