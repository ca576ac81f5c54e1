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

from isthmus.bridge.lessons import learn
from isthmus.bridge.types.plan import Lesson, Target
from isthmus.cli.layout import show_table
from isthmus.cli.providers_view import key_words, list_json
from isthmus.cli.terminal import (
    WIDE,
    clean,
    facts_table,
    heading,
    lined_table,
    number,
    plain_json,
)
from isthmus.protocol.json import JsonObject
from isthmus.providers import Provider
from isthmus.providers.catalog import KnownModel, describe_model, known_models
from isthmus.providers.dialects import capabilities_for, dialect_of, facts_in
from isthmus.providers.merge import DEFAULT
from isthmus.providers.origins import origins_of
from isthmus.providers.word.told import age_words

_SPOKEN: Final = {
    "chat": "Chat Completions",
    "responses": "Responses",
    "messages": "Messages",
    "codex": "the protocol of Codex",
}
_NAMED: Final = 4
"""Models of a server that are named in the head."""


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


@dataclass(frozen=True, slots=True)
class Known:
    """What there is to show: a provider with its server's word, and what the server taught about the model."""

    provider: Provider
    model: str = ""
    lessons: tuple[Lesson, ...] = ()
    address: str = ""
    """Where the configuration has it, if it does; without its secrets."""
    now: float | None = None


def list_facts(known: Known) -> list[Fact]:
    """Every fact that holds for the model, in the order of the capability page."""
    provider = known.provider
    capabilities = capabilities_for(provider, known.model or provider.default_model)
    values = msgspec.to_builtins(capabilities, order="deterministic")
    found = [
        Fact(path, _find(values, path), said) for path, said in origins_of(provider, known.model, known.now).items()
    ]
    if not known.lessons:
        return found
    taught = learn(Target(provider.name, capabilities.model, capabilities), known.lessons).capabilities
    after = msgspec.to_builtins(taught, order="deterministic")
    latest = max(lesson.learned_at for lesson in known.lessons)
    when = f"a 400, {age_words((known.now or latest) - latest)}"
    return [
        fact if (value := _find(after, fact.path)) == fact.value else Fact(fact.path, value, when) for fact in found
    ]


def show_json(known: Known) -> JsonObject:
    provider, told = known.provider, known.provider.told
    heard: JsonObject | None = None
    if told.at:
        heard = {"heard_at": int(told.at), "models": list(told.models)}
        if known.now is not None:
            heard["age_seconds"] = max(0, round(known.now - told.at))
    return {
        **list_json([provider])[0],
        "model": provider.capabilities(known.model).model,
        "dialect": dialect_of(provider, known.model or provider.default_model),
        "sources": list(provider.sources),
        "models": [entry.pattern for entry in provider.models] or [known.model for known in _listed(provider)],
        "server": heard,
        "lessons": [
            {"parameter": lesson.parameter, "value": lesson.value or None, "learned_at": int(lesson.learned_at)}
            for lesson in known.lessons
        ],
        "facts": [{"path": it.path, "value": it.value, "from": it.origin} for it in list_facts(known)],
    }


def show_provider(console: Console, known: Known) -> None:
    _show_head(console, known)
    _show_models(console, known.provider)
    _show_facts(console, known)


def _show_head(console: Console, known: Known) -> None:
    provider = known.provider
    endpoint = provider.endpoint
    facts = facts_table()
    facts.add_row("provider", Text.assemble((provider.name, "bold"), (f"   {provider.title}", "dim")))
    if provider.aliases:
        facts.add_row("also called", Text(", ".join(provider.aliases)))
    address = known.address or (endpoint.url() if endpoint.base_url else "its address is known when it runs")
    facts.add_row("endpoint", Text(address))
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
    facts.add_row("its server", _server_words(known))
    show_table(console, facts, indent=0)


def _server_words(known: Known) -> Text:
    told = known.provider.told
    if not told.at:
        return Text("nothing heard from it yet; --ask asks it", "dim")
    when = age_words((known.now or told.at) - told.at)
    names = ", ".join(told.models[:_NAMED]) + (f" … ({len(told.models)} in all)" if len(told.models) > _NAMED else "")
    return Text.assemble(f"heard {when}", (f"   has {clean(names)}" if names else "", "dim"))


def _show_models(console: Console, provider: Provider) -> None:
    listed = _listed(provider)
    if not provider.models and not listed:
        return
    more = len(provider.snapshot.rows) - len(listed) if provider.snapshot is not None and listed else 0
    heading(console, "Models", f"{more} more are known" if more else "others get the provider's own facts")
    wide = console.width >= WIDE
    columns = ("model", "title", "context", "output", "reads", "efforts", "$ per million: in, cached, out")
    table = lined_table(*(columns if wide else ("model", "context", "output", "$ in, cached, out")))
    shown = [(entry.pattern, entry.title, describe_model(provider, entry.example)) for entry in provider.models]
    for pattern, title, known in (*shown, *((known.model, known.title, known) for known in listed)):
        name: Any = Text(pattern, "cyan")
        limits = [_count(known.context), _count(known.output)]
        if wide:
            reads = ", ".join(("text", *known.input))
            table.add_row(name, Text(title), *limits, reads, " ".join(known.efforts) or "–", _cost(known))
        else:
            table.add_row(Group(name, Text(title, "dim")) if title else name, *limits, _cost(known))
    show_table(console, table)


def _listed(provider: Provider) -> list[KnownModel]:
    """The newest models of a provider without a file."""
    return known_models([provider]) if provider.snapshot is not None and provider.snapshot.whole else []


def _show_facts(console: Console, known: Known) -> None:
    about = clean(known.provider.capabilities(known.model).model) or "any model"
    spoken = _SPOKEN[dialect_of(known.provider, known.model or known.provider.default_model)]
    heading(console, "Facts", f"for {about}, spoken to in {spoken}; grey ones are defaults")
    wide = console.width >= WIDE
    for section, facts in _by_section(list_facts(known)).items():
        table = lined_table(f"[{section}]" if section else "top of the file", "value", "from")
        table.columns[0].width = 34 if wide else 26
        table.columns[1].max_width = max(24, console.width // 3)
        for fact in facts:
            default = fact.origin == DEFAULT
            origin = fact.origin if wide else _short_origin(fact.origin)
            table.add_row(
                Text(fact.name, "dim" if default else ""),
                Text(_words(fact), "dim" if default else "cyan"),
                Text(origin, "dim"),
            )
        show_table(console, table)
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
