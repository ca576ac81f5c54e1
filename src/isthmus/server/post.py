"""What a worker of `server.workers` was started with: the socket that it shares with the others, and a line.

The supervisor (see `supervise`) starts this very program again, with an environment variable that names two open files:
the listening socket, and one end of a line (see `reporting` for what is said on it).
"""

from __future__ import annotations

import signal
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "ISTHMUS_WORKER"
ASKED: Final = getattr(signal, "SIGUSR1", None)
"""Asks a worker where it stands: every thread's stack goes into the log, also while the interpreter is held."""


@dataclass(frozen=True, slots=True)
class Post:
    """What a worker was started with."""

    number: int
    listener: int
    line: int

    def spell(self) -> str:
        return f"{self.number}:{self.listener}:{self.line}"


def take_post(environ: MutableMapping[str, str]) -> Post | None:
    """The post of this process, once: what it starts itself is no worker. `None`: it is the whole gateway."""
    spelt = environ.pop(VARIABLE, "")
    if not spelt:
        return None
    number, listener, line = map(int, spelt.split(":"))
    return Post(number, listener, line)
