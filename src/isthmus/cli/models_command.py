"""`isthmus models`: what is served, how much fits in, what comes out at most, what it costs, and who says so.

In: the configuration, or a gateway that runs. Out: a table, or JSON. Of vendors nobody is asked: what they told a
gateway on this store is recalled. Servers of this machine tell it themselves, now.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from isthmus.cli.help_view import examples
from isthmus.cli.layout import show_table
from isthmus.cli.terminal import WIDE, clean, lined_table, number, open_console, plural, print_json, words
from isthmus.errors import ConfigError
from isthmus.protocol.json import JsonObject

_BELOW: Final = "\n  "
_KINDS: Final = (("server", "server"), ("models.dev", "snapshot"), ("genai-prices", "snapshot"), (".toml", "file"))
"""Beginning or part of an origin's words → what it is called in a column."""


@dataclass(frozen=True, slots=True)
class Row:
    """One name that a request may ask for."""

    id: str
    provider: str
    model: str
    window: int | None = None
    output: int | None = None
    price: tuple[float | None, float | None] = (None, None)
    """US dollars per million tokens, in and out."""
    source: str = ""
    """Who names it: `server`, `file`, `snapshot`, `program`, `configuration`."""
    origins: Mapping[str, str] | None = None
    """Who says its window and its price, where that is known."""
    note: str = ""

    @property
    def said_by(self) -> str:
        told = dict.fromkeys([self.source, *(_kind(each) for each in (self.origins or {}).values())])
        return ", ".join(each for each in told if each)


@examples(
    "isthmus models",
    "isthmus models deepseek",
    "isthmus models --gateway http://127.0.0.1:8484",
    "isthmus models --json",
)
def models(
    word: Annotated[str, typer.Argument(metavar="[WORD]", help="A provider, or a text in the name.")] = "",
    gateway: Annotated[str, typer.Option(help="Ask a gateway that runs at this address.")] = "",
    key: Annotated[str, typer.Option(help="The key for it; else $ISTHMUS_API_KEY.", envvar="ISTHMUS_API_KEY")] = "",
    config: Annotated[Path | None, typer.Option(help="Config file (TOML).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """The models that are served: window, longest answer, price, and who says so."""
    every = read_gateway(gateway, key) if gateway else list(read_configured(config))
    rows = [row for row in every if _matches(row, word)]
    if not rows:
        hint = f"no model has `{word}` in its name" if word and every else "no model is served"
        raise ConfigError(f"{hint}; `isthmus models` shows all, `isthmus providers test` why some are missing")
    if as_json:
        print_json([_json(row) for row in rows])
    else:
        _show(open_console(), rows)


def read_gateway(url: str, key: str = "") -> list[Row]:
    """What a gateway lists, to whoever has this key."""
    from isthmus.upstream.endpoint import Patience
    from isthmus.upstream.remote import GatewayAddress, RemoteGateway

    async def listing() -> JsonObject:
        remote = RemoteGateway(GatewayAddress(url, key, patience=Patience(10.0, 10.0, 10.0)))
        try:
            return await remote.listing()
        finally:
            await remote.aclose()

    entries = asyncio.run(listing()).get("data")
    if not isinstance(entries, list):
        raise ConfigError(f"`{url}` does not answer like a gateway: it lists no models")
    return [_listed(entry) for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def read_configured(config: Path | None = None) -> Iterator[Row]:
    """What a gateway of this configuration would list."""
    from isthmus.bridge.resolve import ANY_NAME, split_reference
    from isthmus.cli.heard import ask_own_servers, recall_words
    from isthmus.providers import load_provider
    from isthmus.providers.catalog import Offered, describe_model, offered_embeddings, offered_models
    from isthmus.providers.load import Provider
    from isthmus.providers.origins import origins_of
    from isthmus.wiring_notice import load_noticed

    settings = load_noticed(config).config
    folders = [Path(folder) for folder in settings.provider_folders]
    known = {
        name: load_provider(given.uses or name, folders, models=given.models, dialect=given.dialect)
        for name, given in settings.providers.items()
    }
    known = ask_own_servers(settings, recall_words(settings, known))

    def row(id: str, name: str, provider: Provider, offered: Offered, note: str = "") -> Row:
        model, said = offered.model, origins_of(provider, offered.model.model, time.time())
        origins = {
            fact: said[path]
            for fact, path, value in (
                ("window", "limits.context", model.context),
                ("output", "limits.output", model.output),
                ("price", "cost.input", model.cost.input),
            )
            if value is not None and path in said
        }
        price = (model.cost.input, model.cost.output)
        return Row(id, name, model.model, model.context, model.output, price, offered.source, origins, note)

    names = {**settings.models.aliases, **{each: choice.targets[0] for each, choice in settings.models.choices.items()}}
    for alias, target in names.items():
        sides = split_reference(target)
        if sides is not None and sides[0] in known and alias != ANY_NAME:
            offered = Offered(describe_model(known[sides[0]], sides[1]), "configuration")
            yield row(alias, sides[0], known[sides[0]], offered, f"stands for `{target}`")
    default, listed = split_reference(settings.models.default), set[str]()
    for name, provider in known.items():
        for offered in offered_models(provider, listed=settings.models.listed):
            id = f"{name}/{offered.model.model}"
            listed.add(id)
            yield row(id, name, provider, offered, "the default" if id == settings.models.default else "")
        for offered in offered_embeddings(provider):
            vectors = row(f"{name}/{offered.model.model}", name, provider, offered, "makes vectors")
            yield replace(vectors, window=None, output=None, price=(None, None), origins={})
    if default is not None and default[0] in known and settings.models.default not in listed:
        offered = Offered(describe_model(known[default[0]], default[1]), "configuration")
        yield row(settings.models.default, default[0], known[default[0]], offered, "the default")


def _listed(entry: Mapping[str, Any]) -> Row:
    facts = entry["isthmus"] if isinstance(entry.get("isthmus"), dict) else {}
    cost = facts["cost"] if isinstance(facts.get("cost"), dict) else {}
    return Row(
        str(entry["id"]),
        str(facts.get("provider") or entry.get("owned_by") or ""),
        str(facts.get("model") or entry["id"]),
        facts.get("context_window"),
        facts.get("max_output_tokens"),
        (cost.get("input"), cost.get("output")),
        str(facts.get("source") or ""),
        note="makes vectors" if facts.get("embeddings") else "",
    )


def _matches(row: Row, word: str) -> bool:
    wanted = word.strip().lower()
    return not wanted or wanted in (row.provider.lower(), row.model.lower()) or wanted in row.id.lower()


def _show(console: Console, rows: list[Row]) -> None:
    wide = console.width >= WIDE
    table = lined_table("model", "window", "output", *(("in $/M", "out $/M", "from") if wide else ("$/M in, out",)))
    for column in table.columns[1:]:
        column.no_wrap = True
        column.justify = "right"
    if wide:
        table.columns[-1].justify = "left"
        table.columns[-1].no_wrap = False
    for row in rows:
        note = f"{'  ' if wide else _BELOW}{clean(row.note).replace('`', '')}" if row.note else ""
        name = Text.assemble(clean(row.id), (note, "dim"))
        sizes = (_size(row.window, wide=wide), _size(row.output, wide=wide))
        if wide:
            table.add_row(name, *sizes, *(_price(each) for each in row.price), Text(row.said_by, "dim"))
        else:
            prices = (
                " ".join(_price(each) for each in row.price) if any(each is not None for each in row.price) else "–"
            )
            table.add_row(name, *sizes, prices)
    show_table(console, table, indent=0)
    console.print()
    console.print(Text(f"{plural(len(rows), 'model')}; a provider serves more than is listed, by their names.", "dim"))
    if not wide:
        console.print(words("`--json` also tells who says each of these.", "dim"))


def _size(tokens: int | None, *, wide: bool) -> str:
    if tokens is None:
        return "–"
    if wide or tokens < 10_000:
        return number(tokens)
    return f"{tokens / 1_000:.0f}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.3g}M"


def _price(dollars: float | None) -> str:
    return "–" if dollars is None else f"{dollars:g}"


def _kind(origin: str) -> str:
    return next((kind for part, kind in _KINDS if part in origin), origin.partition(" ")[0])


def _json(row: Row) -> JsonObject:
    return {
        "id": row.id,
        "provider": row.provider,
        "model": row.model,
        "context_window": row.window,
        "max_output_tokens": row.output,
        "cost": {"input": row.price[0], "output": row.price[1]},
        "source": row.source or None,
        "origins": dict(row.origins) if row.origins is not None else None,
        "note": row.note or None,
    }
