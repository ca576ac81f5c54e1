"""The effective configuration as text: TOML that can be read again, or JSON; never with a secret.

In: a `Reading`. Out: text. A value that came from a variable is shown as the reference to it, a secret that was
written out as `<redacted>`, a URL without its password. With origins, every line tells where its value comes from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from isthmus.config.known import CODEX
from isthmus.config.load import Reading
from isthmus.config.origins import Origin
from isthmus.values.problems import KeyPath, dotted
from isthmus.values.redact import HIDDEN, KEY_TABLES, is_secret_key, redact, redact_unnamed
from isthmus.values.toml_text import toml_key, toml_value

_REFERENCE_ONLY: Final = re.compile(r"(?:(?:Bearer|Basic|Token) )?\$\{[A-Za-z_][A-Za-z0-9_]*(?::-)?\}")


def render_toml(reading: Reading, *, origins: bool = False) -> str:
    """The whole configuration, defaults included, as TOML."""
    return "\n".join(_lines(effective_values(reading), (), reading if origins else None)).strip("\n") + "\n"


def render_json(reading: Reading, *, origins: bool = False) -> str:
    """The same as JSON; with origins, a second object maps each dotted key to where its value comes from."""
    values = effective_values(reading)
    shown: dict[str, Any] = values
    if origins:
        shown = {
            "config": values,
            "origins": {dotted(path): _origin(reading, path).text for path, _ in _leaves(values, ())},
        }
    return json.dumps(shown, indent=2, ensure_ascii=False)


def shown_settings(reading: Reading) -> dict[str, list[tuple[str, str, str]]]:
    """By section: key, value and origin of each, as they may be shown."""
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for path, value in _leaves(effective_values(reading), ()):
        row = (path[-1], toml_value(value), _origin(reading, path).text)
        sections.setdefault(dotted(path[:-1]), []).append(row)
    return sections


def effective_values(reading: Reading) -> dict[str, Any]:
    """Every value as it may be shown; keys that are unset or empty are left out."""
    values: dict[str, Any] = msgspec.to_builtins(reading.config, enc_hook=str)
    _leave_out_contents(values["server"], "api_keys", "admin_key")
    _leave_out_contents(values["metrics"], "key")
    for section in ("search", "images"):
        _leave_out_contents(values[section], "api_key")
    for provider in values["providers"].values():
        for place in (provider, *provider["endpoints"]):
            _leave_out_contents(place, "api_key")
        if provider["uses"] != CODEX:
            del provider["codex"]
    for endpoint in values["webhooks"]["endpoints"].values():
        _leave_out_contents(endpoint, "secret")
    return _shown_table(values, (), reading.written)


def _leave_out_contents(table: dict[str, Any], *keys: str) -> None:
    """What was read from a file is shown as the name of that file alone, so that it is read from there again."""
    for key in keys:
        if table[f"{key}_file"]:
            del table[key]


def _shown_table(table: Mapping[str, Any], above: KeyPath, written: Mapping[KeyPath, Any]) -> dict[str, Any]:
    shown = {key: _shown(value, (*above, key), written) for key, value in table.items()}
    return {key: value for key, value in shown.items() if value not in (None, "", [], {})}


def _shown(value: Any, path: KeyPath, written: Mapping[KeyPath, Any]) -> Any:
    match value:
        case Mapping():
            return _shown_table(value, path, written)
        case list():
            return [_shown(entry, (*path[:-1], f"{path[-1]}[{index}]"), written) for index, entry in enumerate(value)]
        case str():
            return _shown_text(value, path, written)
    return value


def _shown_text(value: str, path: KeyPath, written: Mapping[KeyPath, Any]) -> str:
    """What came from the environment may be a secret wherever it stands, so the reference is shown instead."""
    name = path[-1].partition("[")[0]
    show = redact_unnamed if path[-2:-1] in (("query",), ("headers",)) else redact
    reference = written.get(path)
    if path[-2:-1] and path[-2] in KEY_TABLES:
        name = "key"
    if isinstance(reference, str):
        if _REFERENCE_ONLY.fullmatch(reference):
            return reference
        return HIDDEN if is_secret_key(name) else str(show(name, reference))
    shown = str(show(name, value))
    return shown.replace("${", "$${")  # so that reading it again gives the same text


def _lines(table: Mapping[str, Any], above: KeyPath, reading: Reading | None) -> Iterator[str]:
    """The keys of a table first, then its tables: TOML wants that order."""
    for key, value in table.items():
        if not isinstance(value, Mapping):
            comment = f"  # {_origin(reading, (*above, key)).text}" if reading else ""
            yield f"{toml_key(key)} = {toml_value(value)}{comment}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            path = (*above, key)
            if not value or any(not isinstance(inner, Mapping) for inner in value.values()):
                yield ""
                yield f"[{'.'.join(toml_key(part) for part in path)}]"
            yield from _lines(value, path, reading)


def _leaves(table: Mapping[str, Any], above: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _origin(reading: Reading, path: KeyPath) -> Origin:
    return reading.origins.get(path, Origin("default"))
