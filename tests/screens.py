"""What a command draws on a terminal of so many columns, and what it had to break or cut for that.

The terminal is a stream that says it is one: every console asks that, and `COLUMNS`, for its width.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import rich.text
from rich._wrap import words as split_words
from rich.cells import cell_len
from rich.text import Text

from isthmus.cli.commands import app

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class _Stream(io.TextIOWrapper):
    """What is written, as text; a terminal if it is to be one."""

    def __init__(self, *, terminal: bool, given: bytes = b"") -> None:
        super().__init__(io.BytesIO(given), encoding="utf-8", newline="", write_through=True)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    @property
    def text(self) -> str:
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined,no-any-return]


@dataclass(slots=True)
class Screen:
    code: int
    out: str
    err: str
    broken: list[str] = field(default_factory=list)
    """Words that were taken apart because their place was too narrow, although the terminal was not."""
    cut: list[str] = field(default_factory=list)
    """Text of which a part is not to be seen."""

    @property
    def lines(self) -> list[str]:
        return _ESCAPES.sub("", self.out + self.err).splitlines()

    def wider_than(self, columns: int) -> list[str]:
        return [line for line in self.lines if cell_len(line) > columns]


def draw(
    arguments: Sequence[str],
    columns: int | None,
    *,
    terminal: bool = True,
    given: str = "",
    environ: Mapping[str, str] | None = None,
) -> Screen:
    """Run `isthmus …` here, and look at it. Without `columns` nobody says how wide it is."""
    out, err = _Stream(terminal=terminal), _Stream(terminal=terminal)
    screen = Screen(0, "", "")
    with pytest.MonkeyPatch.context() as patch, _watching(screen, columns or 80):
        for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):
            patch.delenv(name, raising=False)
        patch.setenv("TERM", "xterm-256color")
        for name, value in {**({"COLUMNS": str(columns)} if columns else {}), **(environ or {})}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", _Stream(terminal=False, given=given.encode()))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            app(list(arguments), prog_name="isthmus")
        except SystemExit as end:
            screen.code = int(end.code or 0)
    screen.out, screen.err = out.text, err.text
    return screen


@contextmanager
def _watching(screen: Screen, columns: int) -> Iterator[None]:
    divide, truncate = rich.text.divide_line, Text.truncate

    def divide_line(text: str, width: int, fold: bool = True) -> list[int]:
        for _, _, word in split_words(text):
            if width < cell_len(word.rstrip()) <= columns - 4:
                screen.broken.append(word.strip())
        return divide(text, width, fold)

    def cut(self: Text, max_width: int, **options: Any) -> None:
        if (options.get("overflow") or self.overflow) != "ignore" and cell_len(self.plain.rstrip()) > max_width:
            screen.cut.append(self.plain)
        truncate(self, max_width, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rich.text, "divide_line", divide_line)
        patch.setattr(Text, "truncate", cut)
        yield
