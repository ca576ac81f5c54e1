"""Every secret that a configuration holds: for the one scrubber that all words from outside, and all of the log, meet.

In: a `Config`. Out: `Secret`s, found by where they stand: under a secret's name, in headers and queries, in addresses.
A setting that is added later is found without anybody thinking of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from isthmus.config.schema import Config
from isthmus.scrub import Secret, header_secrets, query_secrets, url_secrets
from isthmus.values.redact import is_secret_key


def configured_secrets(config: Config) -> list[Secret]:
    return [secret for secret in dict.fromkeys(_find("", config)) if secret.value]


def _find(name: str, value: Any) -> Iterator[Secret]:
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from _find(field, getattr(value, field))
    elif isinstance(value, Mapping):
        yield from _find_in_table(name, value)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _find(name, inner)
    elif isinstance(value, str) and value:
        if is_secret_key(name):
            yield Secret(value, name)
        elif "://" in value:
            yield from url_secrets(value)


def _find_in_table(name: str, table: Mapping[Any, Any]) -> Iterator[Secret]:
    texts = {str(key): text for key, text in table.items() if isinstance(text, str)}
    match name:
        case "headers":
            yield from header_secrets(texts)
        case "query":
            yield from query_secrets(texts)
        case "keys_for" | "upstream_keys":  # their names are those of callers and of providers
            yield from (Secret(text, name) for text in texts.values() if text)
        case _:
            for key, inner in table.items():
                yield from _find(str(key), inner)
