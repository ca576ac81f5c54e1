"""An `Explained`, drawn: what was decided, what became of the tools, what is promised, and what is sent.

Three widths in mind: 80 columns stack value and reason, from 110 on each has a column of its own. Every decision
appears. The body only comes when it is asked for, and what sums it all up comes last, where the eye is: only strings
inside the body are cut, and `full` shows those too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.console import Console, Group
from rich.text import Text

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.types.plan import OutputContract, Plan
from isthmus.cli.explain_plan import Explained, ToolFate, is_item, is_validated
from isthmus.cli.json_view import JsonView
from isthmus.cli.layout import show_table
from isthmus.cli.message_view import show_messages
from isthmus.cli.terminal import (
    READABLE,
    WIDE,
    clean,
    counts,
    facts_table,
    fate,
    heading,
    indented,
    lined_table,
    plain_json,
    plural,
    shorten,
    size,
    words,
)

_VALUE: Final = 60
_SPACIOUS: Final = 140


def show_explained(
    console: Console, explained: Explained, *, title: str, source: str, full: bool = False, body: bool = False
) -> None:
    """Everything about one request and one target, in the order in which it is decided; then what it comes to."""
    tools = {tool.path for tool in explained.tools}
    told = {decision.path for decision in explained.rejected}
    rest = [decision for decision in explained.decisions if decision.path not in tools | told]
    items = [decision for decision in rest if is_item(decision.path)]
    _show_decisions(console, "Decisions", [decision for decision in rest if not is_item(decision.path)])
    _show_decisions(console, "Input items", items)
    _show_tools(console, explained.tools)
    if explained.plan is not None:
        _show_contract(console, explained.plan)
        show_messages(console, explained.plan.body, full=full)
        if body:
            show_body(console, explained.body or {}, full=full)
    _show_summary(console, explained, title, source, body=body)
    if explained.refusal is not None:
        _show_refusal(console, explained)


def _show_summary(console: Console, explained: Explained, title: str, source: str, *, body: bool) -> None:
    target, plan = explained.target, explained.plan
    asked = explained.asked.request.body.get("model")
    facts = facts_table()
    facts.add_row("request", Text(clean(source)))
    facts.add_row("provider", Text.assemble((target.provider, "bold"), (clean(f"   {title}"), "dim")))
    instead = f"   the request says {asked}" if asked and asked != target.model else ""
    facts.add_row("model", Text.assemble((clean(target.model), "bold"), (clean(instead), "dim")))
    if target.capabilities.dialect != "chat":
        facts.add_row("dialect", Text(target.capabilities.dialect))
    facts.add_row("decisions", counts(decision.action for decision in explained.decisions))
    if plan is not None:
        facts.add_row("upstream", Text(" · ".join(_summarise(plan))))
    heading(console, "In short", "" if plan is None or body else "`--body` shows the exact upstream body")
    show_table(console, facts)


def _summarise(plan: Plan) -> Iterator[str]:
    yield plural(len(plan.body.get("messages") or plan.body.get("input") or ()), "message")
    yield plural(len(plan.tools.declarations), "tool")
    yield size(len(msgspec.json.encode(plan.body)))
    yield "streamed" if plan.stream else "in one piece"
    yield "thinking" if plan.compatibility.thinking else "not thinking"


def _show_refusal(console: Console, explained: Explained) -> None:
    refusal = explained.refusal
    assert refusal is not None
    heading(console, "✗ Refused", "nothing would be sent")
    if explained.rejected:
        _print_decisions(console, explained.rejected)
    else:
        console.print(indented(words(refusal.message)))
    console.print(indented(Text(f"error code {refusal.code}", style="dim")))


def _show_decisions(console: Console, title: str, decisions: Sequence[CompatibilityDecision]) -> None:
    if decisions:
        heading(console, title, plural(len(decisions), "decision"))
        _print_decisions(console, decisions)


def _print_decisions(console: Console, decisions: Sequence[CompatibilityDecision]) -> None:
    wide = console.width >= WIDE
    table = lined_table("field", "fate", "value", "why") if wide else lined_table("field", "fate", "value and why")
    table.columns[0].max_width = 34 if wide else 30
    table.columns[1].no_wrap = True
    if wide:
        table.columns[2].max_width = max(30, console.width // 4)
    for alike in _alike(decisions):
        first = alike[0]
        paths = words(_paths(alike))
        value, why = _value(first), words(first.reason)
        if wide:
            table.add_row(paths, fate(first.action), value, why)
        else:
            table.add_row(paths, fate(first.action), Group(*(part for part in (value, why) if part.plain)))
    show_table(console, table)


def _alike(decisions: Iterable[CompatibilityDecision]) -> list[list[CompatibilityDecision]]:
    """Item decisions that differ only in their place share a row."""
    groups: dict[str, list[CompatibilityDecision]] = {}
    for decision in decisions:
        same = plain_json([decision.action, decision.reason, repr(decision.effective_value), dict(decision.sends)])
        groups.setdefault(same if is_item(decision.path) else decision.path, []).append(decision)
    return list(groups.values())


def _paths(alike: Sequence[CompatibilityDecision]) -> str:
    paths = list(dict.fromkeys(decision.path for decision in alike))
    return ", ".join(paths)


def _value(decision: CompatibilityDecision) -> Text:
    """What goes upstream; the value alone where the field keeps its name."""
    if decision.sends:
        sent = list(_flatten(decision.sends))
        if len(sent) == 1 and sent[0][0] == decision.path:
            return Text(_short(sent[0][1]), "cyan")
        return Text("\n").join(Text.assemble(f"{name} = ", (_short(value), "cyan")) for name, value in sent)
    if decision.effective_value is None:
        return Text()
    return Text(_short(decision.effective_value), "cyan")


def _flatten(sends: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in sends.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _short(value: Any) -> str:
    return shorten(plain_json(value), _VALUE)


def _show_tools(console: Console, tools: Sequence[ToolFate]) -> None:
    if not tools:
        return
    sent = sum(tool.sent for tool in tools)
    heading(console, "Tools", f"{len(tools)} offered, {sent} sent")
    if console.width >= _SPACIOUS:
        table = lined_table("where", "type", "asked for", "fate", "the provider sees", "why")
    elif console.width >= WIDE:
        table = lined_table("where", "type", "asked for", "fate", "the provider sees, and why")
    else:
        table = lined_table("asked for", "fate", "the provider sees, and why")
    table.columns[0].max_width = 18 if console.width >= WIDE else 28
    for tool in tools:
        seen, why, chosen = _seen(tool), words(_tool_reason(tool)), fate(tool.decision.action)
        where, kind = Text(clean(tool.path), "dim"), Text(clean(tool.source.type), "dim")
        if console.width >= _SPACIOUS:
            table.add_row(where, kind, _requested(tool), chosen, seen, why)
        elif console.width >= WIDE:
            table.add_row(where, kind, _requested(tool), chosen, Text("  ").join(filter(len, (seen, why))))
        else:
            asked = Group(_requested(tool), Text.assemble(kind, " ", where))
            table.add_row(asked, chosen, Group(*filter(len, (seen, why))))
    show_table(console, table)


def _requested(tool: ToolFate) -> Text:
    namespace = tool.source.namespace
    prefix = f"{clean(namespace)} / " if namespace is not None else ""
    return Text.assemble(prefix, (clean(tool.source.name), "bold"))


def _seen(tool: ToolFate) -> Text:
    identity = tool.identity
    if identity is None or tool.held_back:
        return Text()
    other = f" ({identity.provider_type})" if identity.provider_type != tool.source.type else ""
    return Text.assemble(("→ ", "dim"), (identity.provider_name, "cyan"), (other, "dim"))


def _tool_reason(tool: ToolFate) -> str:
    if tool.held_back:
        return f"held back by `tool_choice`; {tool.decision.reason}"
    return tool.decision.reason


def _show_contract(console: Console, plan: Plan) -> None:
    contract = plan.contract
    if contract.mode == "none":
        heading(console, "Output contract", "none: the answer is plain text")
        return
    heading(console, "Output contract")
    facts = facts_table()
    name = f" `{contract.name}`" if contract.name else ""
    facts.add_row("asked for", words(f"{contract.requested}{name}{', strict' if contract.strict else ''}"))
    facts.add_row("mode", words(_MODES[contract.mode]))
    facts.add_row("sent as", Text(contract.send["type"] if contract.send else "nothing", "cyan"))
    if contract.instruction:
        facts.add_row("instruction", Text(shorten(contract.instruction, 300), "italic"))
    facts.add_row("validated", words(_validation(contract, plan.repair_budget)))
    show_table(console, facts)


_MODES: Final = {
    "native": "native: the provider enforces it",
    "json_object": "json_object: the provider promises JSON, the schema is told in words",
    "prompt": "prompt: told in words only",
}


def _validation(contract: OutputContract, budget: int) -> str:
    if not is_validated(contract):
        return "no"
    what = "against the schema" if contract.schema is not None else "as a JSON object"
    if not contract.requires_valid_json:
        return f"yes, {what}; a mismatch is a diagnostic, the text stays as it is"
    again = f" after asking again {'once' if budget == 1 else f'{budget} times'}" if contract.held and budget else ""
    return f"yes, {what}, and binding: an answer that does not fit fails the response{again}"


def show_body(console: Console, body: Any, *, full: bool, note: str = "") -> None:
    """The upstream body, as people read JSON."""
    view = JsonView(min(console.width, READABLE), full=full)
    shown = view.render(body)
    heading(console, "Upstream body", f"{size(len(msgspec.json.encode(body)))}{note}")
    if view.cut:
        note = f"{plural(view.cut, 'long string')} cut (…+ says by how much); `--full` and `--body-only` show all"
        console.print(words(note, "dim"))
    console.print(shown, soft_wrap=True)
