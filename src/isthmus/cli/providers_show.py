"""One provider and one of its models: every fact, its value, and the place that says it.

In: a provider and a model. Out: the head of its file, its models, then the facts section by section. A fact that no
file names has the default of the capability page, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from rich.console import Console, Group
from rich.text import Text

from isthmus.cli.providers_view import key_words, list_json
from isthmus.cli.terminal import (
    WIDE,
    facts_table,
    heading,
    indented,
    lined_table,
    number,
    plain_json,
)
from isthmus.protocol.json import JsonObject
from isthmus.providers import Provider
from isthmus.providers.catalog import KnownModel, describe_model
from isthmus.providers.dialects import facts_in
from isthmus.providers.merge import DEFAULT


@dataclass(frozen=True, slots=True)
class Fact:
    path: str
    value: Any
    origin: str

    @property
    def section(self) -> str:
        return self.path.partition(".")[0] if "." in self.path else ""

    @property
    def name(self) -> str:
        return self.path.partition(".")[2] or self.path


def list_facts(provider: Provider, model: str = "") -> list[Fact]:
    """Every fact that holds for the model, in the order of the capability page."""
    values = msgspec.to_builtins(provider.capabilities(model), order="deterministic")
    return [Fact(path, _find(values, path), origin) for path, origin in provider.origins(model).items()]


def show_json(provider: Provider, model: str = "") -> JsonObject:
    return {
        **list_json([provider])[0],
        "model": provider.capabilities(model).model,
        "sources": list(provider.sources),
        "models": [entry.pattern for entry in provider.models],
        "facts": [{"path": it.path, "value": it.value, "from": it.origin} for it in list_facts(provider, model)],
    }


def show_provider(console: Console, provider: Provider, model: str = "") -> None:
    _show_head(console, provider)
    _show_models(console, provider)
    _show_facts(console, provider, model)


def _show_head(console: Console, provider: Provider) -> None:
    endpoint = provider.endpoint
    facts = facts_table()
    facts.add_row("provider", Text.assemble((provider.name, "bold"), (f"   {provider.title}", "dim")))
    if provider.aliases:
        facts.add_row("also called", Text(", ".join(provider.aliases)))
    facts.add_row("endpoint", Text(endpoint.url() if endpoint.base_url else "its address is known when it runs"))
    for name, other in endpoint.alternatives.items():
        facts.add_row(f"  {name}", Text.assemble(other.base_url, (f"   {other.title}" if other.title else "", "dim")))
    if provider.responses is not None:
        advice = "   recommended by the vendor" if provider.responses.preferred else ""
        facts.add_row("native Responses", Text.assemble(endpoint.url(provider.responses.path), (advice, "dim")))
    if provider.messages_endpoint is not None:
        there = facts_in(provider, endpoint, "messages")
        facts.add_row("Messages", Text.assemble(there.url(), ('   with `dialect = "messages"`', "dim")))
    facts.add_row("key", key_words(provider))
    facts.add_row("default model", Text(provider.default_model or "none: name one", "cyan"))
    facts.add_row("checked", Text(provider.checked or "no date"))
    facts.add_row("against", Group(*map(Text, provider.sources or ("nothing named",))))
    facts.add_row("read from", Group(*map(Text, provider.files)))
    console.print(facts)


def _show_models(console: Console, provider: Provider) -> None:
    if not provider.models:
        return
    heading(console, "Models", "others get the provider's own facts")
    wide = console.width >= WIDE
    columns = ("model", "title", "context", "output", "reads", "efforts", "$ per million: in, cached, out")
    table = lined_table(*(columns if wide else ("model", "context", "output", "$ in, cached, out")))
    for entry in provider.models:
        known = describe_model(provider, entry.example)
        name: Any = Text(entry.pattern, "cyan")
        limits = [_count(known.context), _count(known.output)]
        if wide:
            reads = ", ".join(("text", *known.input))
            table.add_row(name, Text(entry.title), *limits, reads, " ".join(known.efforts) or "–", _cost(known))
        else:
            title = Text(entry.title, "dim")
            table.add_row(Group(name, title) if entry.title else name, *limits, _cost(known))
    console.print(indented(table))


def _show_facts(console: Console, provider: Provider, model: str) -> None:
    heading(console, "Facts", f"for {provider.capabilities(model).model or 'any model'}; grey ones are defaults")
    wide = console.width >= WIDE
    for section, facts in _by_section(list_facts(provider, model)).items():
        table = lined_table(f"[{section}]" if section else "top of the file", "value", "from")
        table.columns[0].width = 34
        table.columns[1].max_width = max(24, console.width // 3)
        for fact in facts:
            default = fact.origin == DEFAULT
            origin = fact.origin if wide else _short_origin(fact.origin)
            table.add_row(
                Text(fact.name, "dim" if default else ""),
                Text(_words(fact), "dim" if default else "cyan"),
                Text(origin, "dim"),
            )
        console.print(indented(table))
        console.print()


def _by_section(facts: Sequence[Fact]) -> dict[str, list[Fact]]:
    """Sections in the order of the page, after the facts that stand above them all."""
    sections: dict[str, list[Fact]] = {"": []}
    for fact in facts:
        sections.setdefault(fact.section, []).append(fact)
    return sections


def _short_origin(origin: str) -> str:
    """The file, and the model's entry if it was one: the heading and the fact's name say the rest."""
    file, _, place = origin.partition(" [")
    entry = _ENTRY.match(place)
    return f"{file} {entry[0]}" if entry else file


_ENTRY: Final = re.compile(r'models\."[^"]*"')


def _words(fact: Fact) -> str:
    """A value, as a person would say it."""
    match fact.value:
        case bool(value):
            return "yes" if value else "no"
        case float(value):
            return f"{value:g}"
        case "":
            return '""'
        case value if not value:
            return "none"
        case list(values):
            return ", ".join(plain_json(entry) for entry in values)
        case dict() if fact.section == "parameters" and "." not in fact.name.removeprefix("text."):
            return "sent as it is"  # a rule that says nothing: `stop = {}`
        case value:
            return plain_json(value)


def _find(tree: Any, path: str) -> Any:
    """The value at a dotted path; names may have dots of their own (`parameters.text.verbosity.to`)."""
    return next(_walk(tree, path), None)


def _walk(tree: Any, path: str) -> Iterator[Any]:
    if not isinstance(tree, Mapping):
        return
    for key, value in tree.items():
        if key == path:
            yield value
        elif path.startswith(f"{key}."):
            yield from _walk(value, path[len(key) + 1 :])


def _count(value: int | None) -> str:
    return number(value) if value is not None else "–"


def _cost(known: KnownModel) -> str:
    cost = known.cost
    if cost.input is None and cost.output is None:
        return "–"
    return ", ".join("–" if price is None else f"{price:g}" for price in (cost.input, cost.cached, cost.output))
