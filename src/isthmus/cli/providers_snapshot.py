"""The providers that no file is kept for, in a table: name, key, protocol, models, address.

In: the index of the snapshot, and a word to look for. Out: a table for people, or JSON. Nothing but the index is read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console, Group
from rich.text import Text

from isthmus.cli.layout import show_table
from isthmus.cli.terminal import lined_table, plural, words
from isthmus.protocol.json import JsonObject
from isthmus.providers import Provider
from isthmus.providers.find import snapshot_names
from isthmus.providers.snapshot import Listed, obstacle, snapshot_head, snapshot_index

_SPACIOUS: Final = 150


def listed_providers(word: str = "") -> list[Listed]:
    """Those of the snapshot, or those of them in which the word stands."""
    index = snapshot_index()
    listed = [index[name] for name in snapshot_names()]
    return [each for each in listed if matches(word, each.id, each.title, each.base_url, *each.key_env)]


def matching_providers(providers: Sequence[Provider], word: str) -> list[Provider]:
    return [
        provider
        for provider in providers
        if matches(word, provider.name, provider.title, *provider.aliases, provider.endpoint.base_url)
        or matches(word, *provider.endpoint.key_env)
    ]


def matches(word: str, *texts: str) -> bool:
    return any(word.strip().lower() in text.lower() for text in texts)


def show_listed(console: Console, listed: Sequence[Listed], environ: Mapping[str, str] = os.environ) -> None:
    head = snapshot_head()
    spacious = console.width >= _SPACIOUS
    columns = ("name", "key", "speaks", "models", "endpoint")
    table = lined_table(*(columns if spacious else ("name", "key, endpoint, what it speaks")))
    for each in listed:
        reason = obstacle(each)
        name, key = Text(each.id, "dim" if reason else "bold"), _key(each, environ)
        spoken = Text(each.protocol or "–", "dim" if reason else "")
        where = Text(each.base_url.removeprefix("https://")) if not reason else Text(f"not usable: {reason}", "dim")
        if spacious:
            table.add_row(name, key, spoken, str(each.models), where)
        else:
            table.add_row(name, Group(key, where, Text.assemble(spoken, f"   {plural(each.models, 'model')}")))
    show_table(console, table, indent=0)
    console.print()
    told = f"{plural(len(listed), 'provider')} without a file, from {head.label}"
    console.print(Text(f"{told}: cautious facts, and what is known of each model.", "dim"))


def show_hint(console: Console) -> None:
    told = f"`isthmus providers list --all` adds {len(snapshot_names())} of {snapshot_head().label};"
    console.print(words(f"{told} `isthmus providers list WORD` looks in all of them.", "dim"))


def listed_json(listed: Sequence[Listed], environ: Mapping[str, str] = os.environ) -> list[JsonObject]:
    return [
        {
            "name": each.id,
            "title": each.title,
            "endpoint": each.base_url,
            "key_variables": [{"name": name, "set": _is_set(name, environ)} for name in each.key_env],
            "protocol": each.protocol or None,
            "obstacle": obstacle(each) or None,
            "models": each.models,
            "checked": snapshot_head().date,
            "files": [snapshot_head().label],
        }
        for each in listed
    ]


def _key(each: Listed, environ: Mapping[str, str]) -> Text:
    found = next((name for name in each.key_env if _is_set(name, environ)), None)
    return Text(f"{found} ✓ set", "green") if found else Text(each.key_env[0] if each.key_env else "no key needed")


def _is_set(name: str, environ: Mapping[str, str]) -> bool:
    return bool(environ.get(name, "").strip())
