"""What is still being looked at, on one line that is written over; nothing where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TextIO

from isthmus.cli.terminal import shorten


@contextmanager
def waiting_line(
    names: Sequence[str], *, silent: bool = False, out: TextIO | None = None
) -> Iterator[Callable[[str], None]]:
    """The function inside is told of each that is done."""
    stream, left = sys.stderr if out is None else out, list(names)
    if silent or not stream.isatty():
        yield lambda name: None
        return

    def write(line: str) -> None:
        width = get_terminal_size().columns - 1
        stream.write(f"\r{shorten(line, width):<{width}}")
        stream.flush()

    def ended(name: str) -> None:
        left.remove(name)
        write(f"looking at {', '.join(left)} … ({len(names) - len(left)} of {len(names)})" if left else "")

    write(f"looking at {', '.join(left)} …")
    try:
        yield ended
    finally:
        write("")
        stream.write("\r")
        stream.flush()
