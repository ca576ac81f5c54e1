"""One request, all providers: what is supported, degraded, ignored or rejected where.

In: a request and providers. Out: a `Comparison`, rows of fields by columns of providers, drawn as as many tables as
the width asks for. Rows on which all providers agree are told in a line, so that the differences stand out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.text import Text

from isthmus.bridge.diagnostics import Action, CompatibilityDecision
from isthmus.cli.explain_plan import Asked, Explained, choose_model, explain, is_item
from isthmus.cli.layout import show_table
from isthmus.cli.terminal import (
    FATES,
    clean,
    facts_table,
    fate,
    heading,
    lined_table,
    number,
    plural,
    size,
)
from isthmus.errors import ConfigError
from isthmus.protocol.json import JsonObject
from isthmus.providers import Provider

_CELL: Final = 14
_GAP: Final = 3
_ROOMY: Final = 100
_SEVERITY: Final[tuple[Action, ...]] = ("supported", "degraded", "ignored", "rejected")


@dataclass(frozen=True, slots=True)
class Row:
    """One thing the request asks for, and its fate everywhere; a provider that has no word on it is left out."""

    name: str
    fates: Mapping[str, CompatibilityDecision]

    def agreed(self, columns: int) -> Action | None:
        """The fate, where it is the same at every one of the providers."""
        actions = {decision.action for decision in self.fates.values()}
        return actions.pop() if len(actions) == 1 and len(self.fates) == columns else None


@dataclass(frozen=True, slots=True)
class Comparison:
    columns: tuple[Explained, ...]
    rows: tuple[Row, ...]

    def to_json(self) -> JsonObject:
        return {
            "providers": [_column_json(column) for column in self.columns],
            "rows": [
                {
                    "name": row.name,
                    "fates": {
                        provider: {"action": decision.action, "reason": decision.reason}
                        for provider, decision in row.fates.items()
                    },
                }
                for row in self.rows
            ],
        }


def compare(asked: Asked, providers: Sequence[Provider], *, strict: bool = False) -> Comparison:
    """Plan the request for every provider, each with the model that the request means there."""
    columns = tuple(
        explain(asked, provider, choose_or_invent(asked, provider), strict=strict) for provider in providers
    )
    rows: dict[str, dict[str, CompatibilityDecision]] = {}
    for column in columns:
        for name, decision in _named(column):
            cell = rows.setdefault(name, {})
            cell[column.target.provider] = _worse(cell.get(column.target.provider), decision)
    for name, fates in rows.items():
        for column in columns:
            if is_item(name) and (column.plan is not None or strict):  # no word on an item: it travels as it is
                fates.setdefault(column.target.provider, CompatibilityDecision(name, "supported", "sent as it is"))
    ordered = sorted(rows.items(), key=lambda row: _kind(row[0]))
    return Comparison(columns, tuple(Row(name, fates) for name, fates in ordered))


def choose_or_invent(asked: Asked, provider: Provider) -> str:
    """A provider without a model of its own (any compatible server) still has facts to compare."""
    try:
        return choose_model(asked, provider)
    except ConfigError:
        return "model"


def show_comparison(console: Console, comparison: Comparison, *, source: str, full: bool = False) -> None:
    facts = facts_table()
    facts.add_row("request", Text(clean(source)))
    facts.add_row("compared", Text(f"{plural(len(comparison.columns), 'provider')}, {len(comparison.rows)} decisions"))
    facts.add_row("signs", Text("   ").join(fate(action) for action in FATES))
    show_table(console, facts, indent=0)
    _show_verdicts(console, comparison)
    count = len(comparison.columns)
    differ = [row for row in comparison.rows if full or row.agreed(count) is None]
    if not full:
        _show_agreement(console, comparison)
        differ = _gather(differ)
    if differ:
        _show_grid(console, comparison, differ, "Decisions" if full else "Where they differ")


def _show_verdicts(console: Console, comparison: Comparison) -> None:
    heading(console, "Providers")
    wide = console.width >= _ROOMY
    signs = [sign for sign, _ in FATES.values()]
    table = lined_table("provider", "model", *signs, *(("messages", "tools", "body") if wide else ("body",)))
    for numeric in table.columns[2:]:
        numeric.justify, numeric.no_wrap = "right", True
    table.columns[0].no_wrap = True
    for column in comparison.columns:
        plan, counted = column.plan, Counter(decision.action for decision in column.decisions)
        row = [Text(column.target.provider, "bold"), Text(clean(column.target.model))]
        row += [Text(str(counted[action]), style if counted[action] else "dim") for action, (_, style) in FATES.items()]
        if plan is None:
            row += [Text()] * 2 * wide + [Text("✗ refused", "bold red")]
        else:
            messages = len(plan.body.get("messages") or plan.body.get("input") or ())
            row += [Text(number(messages)), Text(number(len(plan.tools.declarations)))] * wide
            row.append(Text(size(len(msgspec.json.encode(plan.body)))))
        table.add_row(*row)
    show_table(console, table)


def _show_agreement(console: Console, comparison: Comparison) -> None:
    agreed: dict[Action, list[str]] = {}
    for row in comparison.rows:
        action = row.agreed(len(comparison.columns))
        if action is not None:
            agreed.setdefault(action, []).append(row.name)
    if not agreed:
        return
    heading(console, "The same everywhere", "`--full` puts these into the tables too")
    table = lined_table("fate", "fields and tools")
    for action in _SEVERITY:
        if action in agreed:
            table.add_row(fate(action), Text(clean(", ".join(agreed[action]))))
    show_table(console, table)


def _gather(rows: Sequence[Row]) -> list[Row]:
    """Tools, and items, that fare alike everywhere share a row."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        profile = tuple(sorted((provider, decision.action) for provider, decision in row.fates.items()))
        alike = (_kind(row.name), profile) if _kind(row.name) else row.name
        groups.setdefault((alike,), []).append(row)
    return [
        group[0] if len(group) == 1 else Row(f"{group[0].name} and {len(group) - 1} more", group[0].fates)
        for group in groups.values()
    ]


def _show_grid(console: Console, comparison: Comparison, rows: Sequence[Row], title: str) -> None:
    names = [column.target.provider for column in comparison.columns]
    label = min(max(len(row.name) for row in rows), max(22, console.width // 4))
    fitting = max(1, (console.width - 2 - label) // _CELL)
    for part in _share(names, -(-len(names) // fitting)):
        heading(console, title, f"{part[0]} … {part[-1]}" if len(part) < len(names) else "")
        table = lined_table("", *(name.replace("-", "-\n") if len(name) > _CELL - _GAP else name for name in part))
        table.columns[0].width = label
        for cell in table.columns[1:]:
            cell.width = _CELL - _GAP
        for row in rows:
            table.add_row(Text(clean(row.name)), *(_cell(row.fates.get(name)) for name in part))
        show_table(console, table)


def _share(names: Sequence[str], tables: int) -> Iterator[Sequence[str]]:
    """Tables of nearly the same width look better than one with a rest."""
    each, more = divmod(len(names), tables)
    start = 0
    for index in range(tables):
        end = start + each + (index < more)
        yield names[start:end]
        start = end


def _cell(decision: CompatibilityDecision | None) -> Text:
    return fate(decision.action) if decision is not None else Text("· not sent", "dim")


def _named(column: Explained) -> Iterator[tuple[str, CompatibilityDecision]]:
    """Each decision under a name that means the same at every provider."""
    tools = {tool.path: tool for tool in column.tools}
    for decision in column.decisions:
        tool = tools.get(decision.path)
        if tool is None:
            yield decision.path, decision
            continue
        source = tool.source
        kind = "" if source.type in (source.name, "function") else f"{source.type} "
        yield f"tool {kind}{'' if source.namespace is None else source.namespace + '/'}{source.name}", decision


def _worse(known: CompatibilityDecision | None, other: CompatibilityDecision) -> CompatibilityDecision:
    """Several decisions about one place count as the worst of them."""
    if known is None or _SEVERITY.index(other.action) > _SEVERITY.index(known.action):
        return other
    return known


def _kind(name: str) -> int:
    """Fields first, then tools, then items, then what the provider's own list holds back."""
    if name.startswith("tool "):
        return 1
    if is_item(name):
        return 2
    return 3 if name.startswith("upstream.") else 0


def _column_json(column: Explained) -> JsonObject:
    counted = Counter(decision.action for decision in column.decisions)
    return {
        "provider": column.target.provider,
        "model": column.target.model,
        "refused": column.refusal.message if column.refusal is not None else None,
        "counts": {action: counted[action] for action in _SEVERITY},
    }
