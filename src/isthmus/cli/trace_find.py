"""Which traces are meant: the options of a filter, and what a store cannot answer by itself.

In: words of the command line. Out: a `Wanted`, and the summaries that it fits, page by page. What only the whole trace
knows (a decision about one field) is looked up trace by trace, within a bound.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from isthmus.cli.trace_source import TraceReader
from isthmus.errors import ConfigError
from isthmus.ports.traced import Trace, TraceSummary
from isthmus.ports.traces import TraceFilter
from isthmus.values.quantities import parse_duration

PROVIDER = Annotated[str, typer.Option("--provider", "-p", help="Only those that this provider was asked for.")]
MODEL = Annotated[str, typer.Option("--model", "-m", help="Only this model: `provider/model`, or its name there.")]
STATUS = Annotated[str, typer.Option("--status", help="completed, incomplete, failed, cancelled or refused.")]
SINCE = Annotated[str, typer.Option("--since", help="Only newer ones: `15m`, `2h`, `3d`, or a date and time (UTC).")]
CONVERSATION = Annotated[
    str, typer.Option("--conversation", help="Only turns of one conversation: its id, or that of one of its turns.")
]
DECISION = Annotated[
    str,
    typer.Option(
        "--decision", help="Only those where this was decided: `temperature`, `tools[0]` … not as asked; or `ignored`."
    ),
]
ERRORS = Annotated[bool, typer.Option("--errors", help="Only what failed or was refused.")]
DOOR = Annotated[str, typer.Option("--door", help="Only one door: responses, chat, messages or embeddings.")]

FATES: Final = ("degraded", "ignored", "rejected")
_FAILED: Final = ("failed", "refused")
_OUTCOMES: Final = ("completed", "incomplete", "failed", "cancelled", "refused")
_PAGE: Final = 200
_LOOKED_AT: Final = 20_000
"""Traces that are looked at to find those that are wanted."""


@dataclass(frozen=True, slots=True)
class Wanted:
    filter: TraceFilter
    errors: bool = False
    decision: str = ""

    @property
    def plain(self) -> bool:
        """Whether the store can answer it by itself."""
        return not self.errors and not self.decision


async def read_wanted(
    reader: TraceReader,
    *,
    provider: str = "",
    model: str = "",
    status: str = "",
    since: str = "",
    conversation: str = "",
    decision: str = "",
    errors: bool = False,
    door: str = "",
) -> Wanted:
    if status and status not in _OUTCOMES:
        raise ConfigError(f"`--status {status}` is none of {', '.join(f'`{name}`' for name in _OUTCOMES)}")
    if model and not provider and "/" in model:
        provider, _, model = model.partition("/")
    asked = TraceFilter(
        since=read_moment(since) if since else None,
        provider=provider,
        model=model,
        outcome=status,
        door=door,
        thread=await _thread(reader, conversation) if conversation else "",
        changed=True if decision in ("degraded", "ignored") else None,
    )
    return Wanted(asked, errors and not status, decision)


def read_moment(text: str, now: float | None = None) -> float:
    """`2h` is so long ago; `2026-11-17 09:30` is a moment (UTC, unless it says otherwise)."""
    try:
        return (time.time() if now is None else now) - parse_duration(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ConfigError(
            f"`--since {text}` must be how long ago (`15m`, `2h`), or when (`2026-11-17 09:30`)"
        ) from error
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


async def _thread(reader: TraceReader, conversation: str) -> str:
    """By a turn of it, else by its own name."""
    turns = await reader.walk(conversation)
    return next((turn.thread for turn in turns if turn.thread), conversation)


async def find_all(reader: TraceReader, wanted: Wanted, most: int) -> tuple[list[TraceSummary], bool]:
    """The newest that are wanted, and whether there are more."""
    found: list[TraceSummary] = []
    if wanted.plain:
        page = await reader.list(wanted.filter, limit=most)
        return list(page.traces), page.has_more
    async for summary in _walk(reader, wanted.filter):
        if await fits(reader, wanted, summary):
            if len(found) == most:
                return found, True
            found.append(summary)
    return found, False


async def _walk(reader: TraceReader, filter: TraceFilter) -> AsyncIterator[TraceSummary]:
    after: int | None = None
    for _ in range(_LOOKED_AT // _PAGE):
        page = await reader.list(filter, limit=_PAGE, after=after)
        for summary in page.traces:
            yield summary
        if not page.has_more:
            return
        after = page.traces[-1].seq


async def fits(reader: TraceReader, wanted: Wanted, summary: TraceSummary) -> bool:
    """What the filter leaves open."""
    if wanted.errors and summary.outcome not in _FAILED:
        return False
    if not wanted.decision:
        return True
    if wanted.decision in ("degraded", "ignored"):
        return bool(getattr(summary, wanted.decision))
    if not summary.degraded and not summary.ignored and summary.outcome not in _FAILED:
        return False
    trace = await reader.find(summary.id)
    return trace is not None and decides(trace, wanted.decision)


def decides(trace: Trace, about: str) -> bool:
    """Whether something was decided about it that was not asked for: by its path, or by what was decided."""
    told = [(decision.path, decision.action) for decision in trace.decisions]
    told += [(str(each.get("path")), str(each.get("action"))) for each in trace.diagnostics]
    return any(action in FATES and about in (path, action) for path, action in told)
