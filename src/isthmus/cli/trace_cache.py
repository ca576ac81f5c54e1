"""`isthmus trace cache`: what prompt caches found of a conversation, why not more, and what that cost.

In: traces. Out: one conversation turn by turn, or all recent ones with a line each. Prices are those of the providers'
facts; a conversation whose prices nobody knows is told in tokens alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console, Group
from rich.text import Text

from isthmus.bridge.capabilities import Cost
from isthmus.cli.layout import show_table
from isthmus.cli.terminal import WIDE, clean, facts_table, heading, indented, lined_table, number, plural, size, words
from isthmus.cli.trace_find import Wanted
from isthmus.cli.trace_list import money, when
from isthmus.cli.trace_source import TraceReader, named
from isthmus.config.schema import Config
from isthmus.errors import ConfigError, IsthmusError
from isthmus.observe.conversation import Conversation, Prices
from isthmus.observe.diagnosis import Break, Diagnosis, Examined, Verdict
from isthmus.observe.inside import Inside
from isthmus.ports.traced import TraceSummary

_LOOKED_AT: Final = 500
"""Recent requests among which conversations are looked for."""
_VERDICTS: Final[dict[Verdict, tuple[str, str]]] = {
    "first": ("·", "dim"),
    "hit": ("✓", "green"),
    "missed": ("–", "magenta"),
    "broken": ("✗", "bold red"),
    "untold": ("?", "yellow"),
}


def known_prices(config: Config) -> Prices:
    """What a provider's facts say that its model costs; nothing where nobody knows it here."""
    from isthmus.cli.heard import load_known

    folders = [Path(folder) for folder in config.provider_folders]
    known: dict[tuple[str, str], Cost] = {}

    def price(provider: str, model: str) -> Cost:
        if (provider, model) not in known:
            try:
                known[provider, model] = load_known(provider, folders, config)[0].capabilities(model).cost
            except IsthmusError:
                known[provider, model] = Cost()
        return known[provider, model]

    return price


async def read_conversation(reader: TraceReader, id: str, prices: Prices) -> Conversation:
    """The one that a request belongs to."""
    turns = await reader.walk(await named(reader, id))
    if not turns:
        raise ConfigError(f"no request `{id}` was traced here; `isthmus trace cache` lists the conversations")
    return await _read(reader, turns, prices)


async def read_conversations(reader: TraceReader, wanted: Wanted, prices: Prices) -> list[Conversation]:
    """Those of the last requests that have more than one turn, the dearest first."""
    from isthmus.cli.trace_find import find_all

    threads: dict[str, list[TraceSummary]] = {}
    for summary in reversed((await find_all(reader, wanted, _LOOKED_AT))[0]):
        threads.setdefault(summary.thread or summary.id, []).append(summary)
    found = [await _read(reader, turns, prices) for turns in threads.values() if len(turns) > 1]
    several = [each for each in found if len(each.found.turns) > 1]
    return sorted(
        several, key=lambda each: (-(each.found.lost or 0), -len(each.found.breaks), -each.found.input_tokens)
    )


async def _read(reader: TraceReader, turns: Sequence[TraceSummary], prices: Prices) -> Conversation:
    found = [await reader.find(turn.id) for turn in turns]
    return Conversation([trace for trace in found if trace is not None], prices)


# ── drawn ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def show_conversations(console: Console, found: Sequence[Conversation]) -> None:
    table = lined_table("last turn", "turns", "breaks", "in", "cached", "could save")
    table.padding = (0, 1, 0, 0)
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    for each in found:
        seen = each.found
        cells = (len(seen.turns), len(seen.breaks) or "", number(seen.input_tokens), _share(seen), money(seen.lost))
        table.add_row(Text(clean(seen.turns[-1].id), no_wrap=True), *(Text(str(cell)) for cell in cells))
    show_table(console, table, indent=0)


def show_conversation(console: Console, conversation: Conversation) -> None:
    seen, facts = conversation.found, facts_table()
    if conversation.name:
        facts.add_row("conversation", Text(clean(conversation.name)))
    broken = f", {plural(len(seen.breaks), 'break')} in the prefix" if seen.breaks else ", its prefix never changed"
    facts.add_row("turns", Text(f"{len(seen.turns)}{broken}"))
    facts.add_row(
        "input",
        Text(f"{number(seen.input_tokens)} tokens, {number(seen.cached_tokens)} from the cache ({_share(seen)})"),
    )
    if seen.cost is not None:
        facts.add_row(
            "cost",
            Text(f"{money(seen.cost)} for input; whole hits would have saved {money(seen.lost or None) or 'nothing'}"),
        )
    else:
        facts.add_row("cost", Text("not known: the provider's facts name no prices for this model"))
    show_table(console, facts, indent=0)
    _show_turns(console, seen.turns)
    for index, turn in enumerate(seen.turns, 1):
        if turn.broken is not None:
            _show_break(console, index, turn, turn.broken, conversation.inside(turn))


def _show_turns(console: Console, turns: Sequence[Diagnosis]) -> None:
    heading(console, "Turns", "how much of the turn before stands unchanged at the beginning, and what the cache found")
    wide = console.width >= WIDE
    names = ["#", *(("UTC",) if wide else ()), "response", "verdict", "unchanged", "cached"]
    table = lined_table(*names, *(("cost", "could be") if wide else ()))
    for turn, index in zip(turns, range(1, len(turns) + 1), strict=True):
        sign, style = _VERDICTS[turn.verdict]
        row = [Text(str(index), "dim"), *((Text(when(turn.at), "dim"),) if wide else ())]
        row += [Text(clean(turn.id if wide else _short(turn.id)), no_wrap=True), Text(f"{sign} {turn.verdict}", style)]
        row += [Text(_unchanged(turn)), Text(_cached(turn))]
        row += [Text(money(turn.cost)), Text(money(turn.cost_with_hit))] if wide else []
        table.add_row(*row)
    show_table(console, table)
    for note in dict.fromkeys(turn.note for turn in turns if turn.note):
        at = [str(index) for index, turn in enumerate(turns, 1) if turn.note == note]
        console.print(indented(words(f"turn {', '.join(at)}: {note}", "dim")))


def _show_break(console: Console, index: int, turn: Diagnosis, broken: Break, inside: Inside | None) -> None:
    heading(console, f"✗ Turn {index}", f"{clean(turn.id)}")
    what = f" ({clean(broken.what)})" if broken.what else ""
    sizes = f", {size(broken.before)} before and {size(broken.after)} now" if broken.before and broken.after else ""
    told = [words(f"`{broken.path}`{what} was {broken.change}{sizes}: {broken.why}")]
    if inside is not None:
        told.append(Text.assemble(("before  ", "dim"), clean(inside.before)))
        told.append(Text.assemble(("now     ", "dim"), clean(inside.after), (f"   {clean(inside.path)}", "dim")))
    if turn.lost:
        told.append(Text(f"it cost {money(turn.lost)} more than a whole hit", "yellow"))
    console.print(indented(Group(*told)))


def _unchanged(turn: Diagnosis) -> str:
    if turn.kept is None:
        return ""
    share = f"{turn.kept:.0%}" if turn.kept in (0.0, 1.0) else f"{min(max(turn.kept, 0.001), 0.999):.1%}"
    return f"{share} of {size(turn.earlier_bytes)}"


def _cached(turn: Diagnosis) -> str:
    if turn.input_tokens is None:
        return ""
    return f"{number(turn.cached_tokens or 0)} of {number(turn.input_tokens)}"


def _share(seen: Examined) -> str:
    return f"{seen.cached_tokens / seen.input_tokens:.0%}" if seen.input_tokens else ""


def _short(id: str) -> str:
    return id if len(id) <= 16 else f"{id[:11]}…{id[-4:]}"
