"""One trace, drawn: what was asked, what was decided and why, what was really sent, and what came of it.

A trace without content still shows both sides by their fields, sizes and hashes; one with content shows the bodies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from rich.columns import Columns
from rich.console import Console, Group
from rich.text import Text

from isthmus.cli.json_view import JsonView
from isthmus.cli.layout import show_table
from isthmus.cli.message_view import show_messages
from isthmus.cli.terminal import (
    FATES,
    READABLE,
    WIDE,
    clean,
    counts,
    facts_table,
    heading,
    indented,
    lined_table,
    number,
    plural,
    shorten,
    size,
    words,
)
from isthmus.cli.trace_list import money, outcome, seconds
from isthmus.observe.sent import content_of
from isthmus.ports.traced import Piece, Trace, TracedBody, TracedCall, TracedDecision, TracedError

_LISTED: Final = 12
"""Pieces of a body that are listed one by one, unless all are wanted."""
_CAPTURE: Final = "sizes and hashes; `isthmus trace capture 10m` has the gateway keep contents, too, for a while"


def show_trace(console: Console, trace: Trace, *, full: bool = False, body: bool = False) -> None:
    """All of it in the order in which it happened; then what it comes to."""
    show_plan(console, trace, full=full, body=body)
    _show_deeds(console, trace)
    _show_answer(console, trace, full=full)
    kept = any(content_of(call.body) is not None for call in trace.calls)
    heading(console, "In short", "`--body` shows what was sent upstream" if kept and not body else "")
    show_head(console, trace)


def show_plan(console: Console, trace: Trace, *, full: bool, body: bool) -> None:
    """How the request was shaped, not what came of it."""
    _show_decisions(console, trace.decisions)
    _show_sides(console, trace, full=full)
    for index, call in enumerate(trace.calls):
        _show_call(console, call, f"Upstream request {index + 1} of {len(trace.calls)}", full=full, body=body)
    if trace.error is not None:
        heading(console, "✗ Error")
        console.print(indented(_error(trace.error)))


def show_head(console: Console, trace: Trace) -> None:
    told, facts = trace.summary, facts_table()
    facts.add_row("request", Text(clean(told.id), "bold"))
    if told.response and told.response != told.id:
        facts.add_row("response", Text(clean(told.response)))
    facts.add_row("when", Text(f"{datetime.fromtimestamp(told.at, UTC):%Y-%m-%d %H:%M:%S} UTC"))
    facts.add_row("asked by", Text(clean(" · ".join(filter(None, (told.client, told.key, told.owner))))))
    way = "streamed" if told.stream else "in the background" if told.background else "in one piece"
    facts.add_row("door", Text(clean(f"{told.method} {told.path}, {way}".strip())))
    there = f"{told.provider}/{told.model}" if told.provider else "nobody was asked"
    asked = f"   the request says {told.asked_model}" if told.asked_model not in ("", there, told.model) else ""
    facts.add_row("model", Text.assemble((clean(there), "bold"), (clean(asked), "dim")))
    facts.add_row("outcome", Text.assemble(outcome(told), (f"   HTTP {told.status}" if told.status else "", "dim")))
    if trace.decisions:
        facts.add_row("decisions", counts(decision.action for decision in trace.decisions))
    if trace.usage is not None:
        facts.add_row("tokens", Text(" · ".join(_tokens(trace))))
    facts.add_row("time", Text(" · ".join(_times(trace))))
    if told.previous or told.conversation:
        facts.add_row("continues", Text(clean(told.conversation or told.previous)))
    facts.add_row("captured", words("everything" if told.capture == "full" else _CAPTURE))
    if told.deleted:
        facts.add_row("deleted", Text("its response was deleted; these figures are all that is left"))
    show_table(console, facts)


def _tokens(trace: Trace) -> Iterator[str]:
    told = trace.summary
    cached = f" ({number(told.cached_tokens)} cached)" if told.cached_tokens else ""
    yield f"{number(told.input_tokens)} in{cached}"
    thought = f" ({number(told.reasoning_tokens)} thinking)" if told.reasoning_tokens else ""
    yield f"{number(told.output_tokens)} out{thought}"
    if told.cost is not None:
        yield money(told.cost)


def _times(trace: Trace) -> Iterator[str]:
    times = trace.timings
    yield f"{seconds(times.total)} in all"
    for name in ("parse", "plan", "first_byte", "first_token", "settle"):
        value = getattr(times, name)
        if value:
            yield f"{name.replace('_', ' ')} {seconds(value)}"


def _show_decisions(console: Console, decisions: Sequence[TracedDecision]) -> None:
    if not decisions:
        return
    heading(console, "Decisions", plural(len(decisions), "decision"))
    wide = console.width >= WIDE
    table = lined_table("field", "fate", "sent as", "why") if wide else lined_table("field", "fate", "sent, and why")
    table.columns[0].max_width = 34 if wide else 30
    table.columns[1].no_wrap = True
    for alike in _alike(decisions):
        first, paths = alike[0], ", ".join(dict.fromkeys(decision.path for decision in alike))
        sent, why = Text(clean(sent_as(first)), "cyan"), words(first.reason)
        cells = [sent, why] if wide else [Group(*(part for part in (sent, why) if part.plain))]
        table.add_row(Text(clean(paths)), fate_of(first.action), *cells)
    show_table(console, table)


def _alike(decisions: Sequence[TracedDecision]) -> list[list[TracedDecision]]:
    """Those about items or tools that differ only in their place share a row."""
    groups: dict[Any, list[TracedDecision]] = {}
    for decision in decisions:
        same: Any = (decision.action, decision.reason, decision.sends, decision.value)
        groups.setdefault(same if "[" in decision.path else decision.path, []).append(decision)
    return list(groups.values())


def fate_of(action: str) -> Text:
    sign, style = FATES.get(action, ("·", "dim"))  # type: ignore[call-overload]
    return Text(f"{sign} {clean(action)}", style, no_wrap=True)


def sent_as(decision: TracedDecision) -> str:
    """The upstream fields that carry it out; with the value where that is a figure."""
    names = ", ".join(decision.sends)
    if decision.value is None:
        return names if names != decision.path else ""
    value = msgspec.json.encode(decision.value).decode()
    return f"{names} = {value}" if names and names != decision.path else value


def _show_sides(console: Console, trace: Trace, *, full: bool) -> None:
    """What the client sent beside what went upstream, by their fields."""
    sides = [("the client sent", trace.request), *(("sent upstream", call.body) for call in trace.calls[-1:])]
    shown = [(title, body) for title, body in sides if body.pieces]
    if not shown:
        return
    heading(
        console, "Both sides", f"{plural(trace.history, 'item')} of earlier turns before it" if trace.history else ""
    )
    tables = [_fields(title, body, full=full) for title, body in shown]
    wide = console.width >= WIDE and len(tables) > 1
    console.print(indented(Columns(tables, padding=(0, 4)) if wide else Group(*_spaced(tables))))


def _spaced(tables: Sequence[Any]) -> Iterator[Any]:
    for index, table in enumerate(tables):
        if index:
            yield Text()
        yield table


def _fields(title: str, body: TracedBody, *, full: bool) -> Any:
    table = lined_table(title, "", "bytes", *(("hash",) if full else ()))
    table.columns[2].justify = "right"
    for path, role, count, hash in _folded(body.pieces, full=full):
        table.add_row(Text(clean(path)), Text(clean(role), "dim"), Text(number(count)), *([Text(hash, "dim")] * full))
    if body.more:
        table.add_row(Text(f"… {number(body.more)} more", "dim"))
    table.add_row(Text("together", "dim"), Text(), Text(number(body.bytes), "bold"))
    return table


def _folded(pieces: Sequence[Piece], *, full: bool) -> Iterator[tuple[str, str, int, str]]:
    """Lists with many elements are told in one line."""
    fields: dict[str, list[Piece]] = {}
    for piece in pieces:
        fields.setdefault(piece.path.partition("[")[0], []).append(piece)
    for name, own in fields.items():
        if full or len(own) <= _LISTED:
            yield from ((piece.path, piece.role, piece.bytes, piece.hash) for piece in own)
        else:
            yield f"{name}[0 … {len(own) - 1}]", f"{len(own)} entries", sum(piece.bytes for piece in own), ""


def _show_call(console: Console, call: TracedCall, title: str, *, full: bool, body: bool) -> None:
    again = "" if call.why == "first" else f", {_WHYS.get(call.why, call.why)}"
    heading(console, title, clean(f"{call.provider}/{call.model}{again}"))
    facts = facts_table()
    facts.add_row("sent", Text(f"after {seconds(call.at)}, {size(call.body.bytes)}"))
    if call.first_byte is not None:
        facts.add_row("answered", Text(f"{seconds(call.first_byte)} later"))
    for retry in call.retries:
        place = " at another place" if retry.elsewhere else ""
        facts.add_row("retried", Text.assemble(f"{seconds(retry.wait)} later{place}: ", _error(retry.error)))
    if call.error is not None:
        facts.add_row("failed", _error(call.error))
    show_table(console, facts)
    content = content_of(call.body)
    if content is None:
        if call.body.cut:
            console.print(indented(words(call.body.cut, "dim")))
        return
    show_messages(console, content, full=full)
    if not body:
        return
    view = JsonView(min(console.width, READABLE), full=full)
    shown = view.render(content)
    heading(console, "Upstream body", size(call.body.bytes))
    if view.cut:
        console.print(words(f"{plural(view.cut, 'long string')} cut (…+ says by how much); `--full` shows all", "dim"))
    console.print(shown, soft_wrap=True)


_WHYS: Final = {
    "anew": "another way after a failure",
    "repair": "asked again, because the format was not kept",
    "search": "after a search for tools",
    "tool": "after a tool was run",
    "compaction": "for a summary of the conversation",
    "pause": "on from where the provider paused",
}


def _show_deeds(console: Console, trace: Trace) -> None:
    if trace.tools:
        heading(console, "Tools that ran here", plural(len(trace.tools), "call"))
        table = lined_table("kind", "name", "time", "arguments", "output")
        for tool in trace.tools:
            name = Text(clean(tool.title), "bold red" if tool.failed else "")
            sizes = [Text(size(body.bytes)) for body in (tool.arguments, tool.output)]
            table.add_row(Text(clean(tool.kind)), name, Text(seconds(tool.seconds)), *sizes)
        show_table(console, table)
    for check in trace.checks:
        heading(console, "Format check", _verdict(check.valid, check.unchecked, check.errors))
        for word in check.words:
            console.print(indented(words(word)))


def _verdict(valid: bool, unchecked: str, errors: int) -> str:
    return unchecked or ("the answer fits" if valid else f"the answer does not fit: {plural(errors, 'error')}")


def _show_answer(console: Console, trace: Trace, *, full: bool) -> None:
    if trace.output:
        heading(console, "Answer", f"{plural(len(trace.output), 'item')}, {plural(trace.events, 'event')}")
        table = lined_table("item", "status", "name", "bytes")
        table.columns[3].justify = "right"
        for item in trace.output:
            row = (item.type, item.status, item.name)
            table.add_row(*(Text(clean(each)) for each in row), Text(number(item.bytes)))
        show_table(console, table)
    if trace.marks:
        heading(console, "Timeline", "when which event was told")
        table = lined_table("after", "batch", "event")
        for mark in trace.marks if full else _thinned(trace.marks):
            table.add_row(Text(seconds(mark.seconds)), Text(number(mark.batches)), Text(clean(mark.event)))
        show_table(console, table)
    answer = content_of(trace.answer)
    if answer is not None and full:
        heading(console, "Response", size(trace.answer.bytes))
        console.print(JsonView(min(console.width, READABLE), full=True).render(answer), soft_wrap=True)


def _thinned(marks: Sequence[Any]) -> Sequence[Any]:
    """The beginning, the end and a few between them."""
    step = max(len(marks) // _LISTED, 1)
    return [mark for index, mark in enumerate(marks) if index % step == 0 or index == len(marks) - 1]


def _error(error: TracedError) -> Text:
    told = Text(shorten(error.message, 400))
    told.append(f" ({clean(error.code)}", "dim")
    for more in (error.param or "", f"HTTP {error.status}" if error.status else "", error.request_id):
        if more:
            told.append(f", {clean(more)}", "dim")
    return told.append(")", "dim")
