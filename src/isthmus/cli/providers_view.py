"""The providers, in a table: address, key, default model, and the main things that they can do.

In: providers. Out: a table for people, or JSON. A key shows as the name of its variable and whether that is set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console, Group
from rich.text import Text

from isthmus.addresses import gaps_of
from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.cli.layout import show_table
from isthmus.cli.terminal import lined_table, plural, words
from isthmus.protocol.json import JsonObject
from isthmus.providers import Provider
from isthmus.providers.schema import COMPUTED

_SPACIOUS: Final = 190
_FORMATS: Final = ("text", "json_object", "json_schema")


def show_list(console: Console, providers: Sequence[Provider]) -> None:
    if console.width >= _SPACIOUS:
        _show_wide(console, providers)
    else:
        _show_stacked(console, providers)
    ready = sum(_is_ready(provider) for provider in providers)
    console.print()
    console.print(Text(f"{plural(len(providers), 'provider')}; {ready} of them need no key, or have it.", "dim"))
    console.print(words("`isthmus providers show NAME` tells every fact, and where it is written.", "dim"))


def list_json(providers: Sequence[Provider], environ: Mapping[str, str] = os.environ) -> list[JsonObject]:
    return [_provider_json(provider, environ) for provider in providers]


def key_words(provider: Provider, environ: Mapping[str, str] = os.environ) -> Text:
    """The variable, and whether it is set; never what is in it."""
    endpoint = provider.endpoint
    if endpoint.auth in COMPUTED:
        return Text(COMPUTED[endpoint.auth], "dim")
    if endpoint.auth == "none" or not endpoint.key_env:
        return Text("no key needed", "dim")
    found = next((name for name in endpoint.key_env if environ.get(name, "").strip()), None)
    if found is not None:
        return Text.assemble((found, "green"), (" ✓ set", "green"))
    return Text.assemble(endpoint.key_env[0], (" optional" if endpoint.key_optional else " – not set", "dim"))


def reasoning_words(facts: ProviderCapabilities) -> str:
    reasoning = facts.reasoning
    match reasoning.effort:
        case "native":
            return " ".join(reasoning.scale) or "native"
        case "boolean":
            return "on / off" if reasoning.off else "on"
        case _:
            return "always" if reasoning.default_on else "–"


def formats_words(facts: ProviderCapabilities) -> str:
    """Plain text is never worth a word."""
    return ", ".join(name for name in _FORMATS[1:] if name in facts.response_formats.supported) or "text only"


def _show_wide(console: Console, providers: Sequence[Provider]) -> None:
    table = lined_table("name", "title", "endpoint", "key", "default model", "reasoning", "formats")
    table.columns[0].no_wrap = table.columns[6].no_wrap = True
    for provider in providers:
        facts = provider.capabilities()
        table.add_row(
            Text(provider.name, "bold"),
            Text(provider.title),
            _address(provider),
            key_words(provider),
            Text(provider.default_model or "–", "cyan"),
            reasoning_words(facts),
            formats_words(facts),
        )
    show_table(console, table, indent=0)


def _show_stacked(console: Console, providers: Sequence[Provider]) -> None:
    """A few lines each, where seven columns have no room."""
    table = lined_table("provider", "default model, endpoint, key, reasoning, formats")
    for provider in providers:
        facts = provider.capabilities()
        table.add_row(
            Group(Text(provider.name, "bold"), Text(provider.title, "dim")),
            Group(
                Text(provider.default_model or "–", "cyan"),
                _address(provider),
                key_words(provider),
                Text.assemble(("effort ", "dim"), reasoning_words(facts), ("   formats ", "dim"), formats_words(facts)),
            ),
        )
        table.add_row()
    show_table(console, table, indent=0)


def _address(provider: Provider) -> Text:
    address = provider.endpoint.base_url
    return Text(address.removeprefix("https://")) if address else Text("set when it runs", "dim")


def _is_ready(provider: Provider, environ: Mapping[str, str] = os.environ) -> bool:
    endpoint = provider.endpoint
    has_address = all(environ.get(name, "").strip() for name in gaps_of(endpoint.base_url))
    return has_address and (not endpoint.needs_key or any(environ.get(name, "").strip() for name in endpoint.key_env))


def _provider_json(provider: Provider, environ: Mapping[str, str]) -> JsonObject:
    facts = provider.capabilities()
    return {
        "name": provider.name,
        "title": provider.title,
        "aliases": list(provider.aliases),
        "endpoint": provider.endpoint.base_url,
        "key_variables": [
            {"name": name, "set": bool(environ.get(name, "").strip())} for name in provider.endpoint.key_env
        ],
        "key_needed": provider.endpoint.needs_key,
        "variables": [
            {"name": name, "set": bool(environ.get(name, "").strip())} for name in gaps_of(provider.endpoint.base_url)
        ],
        "default_model": provider.default_model,
        "reasoning": {"effort": facts.reasoning.effort, "scale": list(facts.reasoning.scale)},
        "formats": [name for name in _FORMATS if name in facts.response_formats.supported],
        "checked": provider.checked,
        "files": list(provider.files),
    }
