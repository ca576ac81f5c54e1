"""A `Replay`, drawn: which decisions differ between the two plans, and where the bodies do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console, Group
from rich.text import Text

from isthmus.cli.layout import show_table
from isthmus.cli.replay import Replay, Side
from isthmus.cli.terminal import (
    WIDE,
    clean,
    counts,
    facts_table,
    heading,
    indented,
    lined_table,
    number,
    plain_json,
    plural,
    shorten,
    words,
)
from isthmus.cli.trace_view import fate_of, sent_as
from isthmus.observe.differences import DecisionChange, Difference
from isthmus.ports.traced import TracedDecision

_ORIGINS: Final = {
    "sent": "as it was sent",
    "proven": "planned again; every hash is that of what was sent",
    "planned": "planned again, as it would be today",
}
_KINDS: Final = {"added": ("+", "green"), "removed": ("−", "red"), "changed": ("~", "yellow")}
_VALUE: Final = 70


def show_replay(console: Console, replayed: Replay, *, full: bool = False) -> None:
    before, after, found = replayed.before, replayed.after, replayed.differences
    facts = facts_table()
    facts.add_row("request", Text(clean(replayed.kept.id)))
    if not replayed.kept.exact:
        facts.add_row("", words("made again from the stored response: its trace holds no contents", "dim"))
    facts.add_row("recorded", _side(before))
    facts.add_row("replayed", _side(after))
    facts.add_row("decisions", Text(f"{found.same} the same, {plural(len(found.decisions), 'difference')}"))
    show_table(console, facts, indent=0)
    if replayed.refusal is not None:
        heading(console, "✗ Refused", f"{after.provider} cannot be asked for this")
        console.print(indented(words(str(replayed.refusal["message"]))))
    _show_decisions(console, replayed)
    _show_bodies(console, replayed, full=full)


def _side(side: Side) -> Text:
    origin = f"   {_ORIGINS[side.origin]}" if side.body is not None else "   its body is not known"
    told = Text.assemble((clean(f"{side.provider}/{side.model}"), "bold"), (origin, "dim"))
    tally = counts(decision.action for decision in side.decisions)
    return Text("\n").join([told, tally]) if tally.plain else told


def _show_decisions(console: Console, replayed: Replay) -> None:
    changes = replayed.differences.decisions
    if not changes:
        return
    heading(console, "Decisions", "that are not the same")
    before, after = replayed.before.provider, replayed.after.provider
    if before == after:
        before, after = "then", "now"
    table = lined_table("", "field", clean(before), clean(after))
    table.columns[1].max_width = 30
    for alike in _alike(changes):
        first, paths = alike[0], ", ".join(dict.fromkeys(change.path for change in alike))
        sign, style = _KINDS[first.kind]
        table.add_row(Text(sign, style), Text(clean(paths)), _decision(first.before), _decision(first.after))
    show_table(console, table)


def _alike(changes: Sequence[DecisionChange]) -> list[list[DecisionChange]]:
    """Changes about items or tools that differ only in their place share a row."""
    groups: dict[Any, list[DecisionChange]] = {}
    for change in changes:
        same: Any = (change.kind, *(_words(decision) for decision in (change.before, change.after)))
        groups.setdefault(same if "[" in change.path else change.path, []).append(change)
    return list(groups.values())


def _words(decision: TracedDecision | None) -> Any:
    return None if decision is None else (decision.action, decision.reason, decision.sends, decision.value)


def _decision(decision: TracedDecision | None) -> Any:
    if decision is None:
        return Text("–", "dim")
    sent = sent_as(decision)
    head = Text.assemble(fate_of(decision.action), (f"  {clean(sent)}" if sent else "", "cyan"))
    return Group(head, words(decision.reason, "dim")) if decision.reason else head


def _show_bodies(console: Console, replayed: Replay, *, full: bool) -> None:
    found = replayed.differences.body
    if found is None:
        if replayed.refusal is None:
            heading(console, "Upstream bodies", "cannot be compared: what was sent then is not known")
        return
    more = ", and more" if replayed.differences.more else ""
    heading(console, "Upstream bodies", f"{plural(len(found), 'difference')}{more}" if found else "the same")
    if not found:
        return
    wide = console.width >= WIDE
    table = lined_table("", "field", "then", "now") if wide else lined_table("", "field", "then → now")
    table.columns[1].max_width = 34
    for difference in found:
        sign, style = _KINDS[difference.kind]
        values = [_value(difference, "before", full=full), _value(difference, "after", full=full)]
        cells = values if wide else [Group(*(value for value in values if value.plain))]
        table.add_row(Text(sign, style), Text(clean(difference.path)), *cells)
    show_table(console, table)


def _value(difference: Difference, which: str, *, full: bool) -> Text:
    if which == ("before" if difference.kind == "added" else "after" if difference.kind == "removed" else ""):
        return Text()
    text = plain_json(getattr(difference, which))
    return Text(clean(text) if full else shorten(text, _VALUE), "red" if which == "before" else "green")


def show_answers(console: Console, recorded: Mapping[str, Any], replayed: Mapping[str, Any]) -> None:
    """Two answers beside each other."""
    heading(console, "Answers", "the recorded one and the one of just now")
    table = lined_table("", "then", "now")
    for name, label in (
        ("status", "status"),
        ("input_tokens", "input tokens"),
        ("cached_tokens", "of these cached"),
        ("output_tokens", "output tokens"),
        ("error", "error"),
        ("text", "said"),
    ):
        values = [recorded.get(name), replayed.get(name)]
        if any(value not in (None, "") for value in values):
            table.add_row(Text(label, "dim"), *(Text(_told(value)) for value in values))
    show_table(console, table)


def _told(value: Any) -> str:
    if value is None:
        return "not kept"
    return number(value) if isinstance(value, int) else clean(str(value))
