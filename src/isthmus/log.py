"""What is told to the log: an event's name and its facts. How a line looks is the formatter's affair.

    tell(log, "warning", "attempt.failed", id=run.id, provider="zhipu", reason=str(failure))

A person reads `attempt.failed id=resp_1 provider=zhipu reason='it is full'`, a program the same facts under real keys.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

Level = Literal["debug", "info", "warning", "error"]
_LEVELS: Final = {name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error")}


class Told:
    """One event as a log record's message: whatever handler there is, it sees the facts."""

    __slots__ = ("event", "facts")

    def __init__(self, event: str, facts: dict[str, Any]) -> None:
        self.event = event
        self.facts = facts

    def __str__(self) -> str:
        return " ".join((self.event, *(f"{name}={_as_text(value)}" for name, value in self.facts.items())))


def tell(log: logging.Logger, level: Level, event: str, /, *, trace: BaseException | None = None, **facts: Any) -> None:
    """One event; facts that are `None` say nothing. `trace` is an exception whose way here should be seen."""
    number = _LEVELS[level]
    if log.isEnabledFor(number):
        told = Told(event, {name: value for name, value in facts.items() if value is not None})
        # Made here: the logger would look for the line of code that tells it, which no line of ours shows.
        way = None if trace is None else (type(trace), trace, trace.__traceback__)
        log.handle(logging.LogRecord(log.name, number, "", 0, told, None, way))


class TextFormatter(logging.Formatter):
    """One line for each event: what a client put into a path or a model's name cannot pose as another line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname).1s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record)
        if line.isprintable():  # as nearly all are
            return line
        return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return _clock_time(int(record.created))


@lru_cache(8)
def _clock_time(second: int) -> str:
    """Many lines are of one second."""
    return time.strftime("%H:%M:%S", time.localtime(second))


def _as_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return repr(text) if not text or " " in text or '"' in text else text


class JsonFormatter(logging.Formatter):
    """One JSON object for each event, its facts under keys of their own."""

    def format(self, record: logging.LogRecord) -> str:
        told = record.msg if isinstance(record.msg, Told) else Told(record.getMessage(), {})
        line: dict[str, Any] = {
            "time": record.created,
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": told.event,
            **told.facts,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return msgspec.json.encode(line, enc_hook=str).decode()
        except UnicodeEncodeError:  # half a character, from wherever: as an escape it can be written
            return json.dumps(line, default=str)


class Scrubbed(logging.Formatter):
    """Another formatter's lines without what no log may hold, whoever put it there: a fact, an exception's words, a
    traceback."""

    def __init__(self, inner: logging.Formatter, scrub: Callable[[str], str]) -> None:
        super().__init__()
        self._inner, self._scrub = inner, scrub

    def format(self, record: logging.LogRecord) -> str:
        return self._scrub(self._inner.format(record))
