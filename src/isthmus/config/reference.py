"""The schema → a reference page: every key, its type, its default and what it means, in Markdown.

The words are those under each key in `schema`, so that there is no second text to keep.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args, get_origin

import msgspec

from isthmus.config import (
    schema,
    schema_background,
    schema_bounds,
    schema_hooks,
    schema_limits,
    schema_mcp,
    schema_providers,
    schema_search,
    schema_tools,
    schema_watch,
)
from isthmus.values.read import describe_type
from isthmus.values.toml_text import toml_value


def config_reference() -> str:
    """One table per section, in the order of the schema."""
    said = _documentation()
    return "\n".join(_section(schema.Config, "", said)).strip("\n") + "\n"


NO_BOUNDS: Final = frozenset(
    {
        *("server.port", "server.heartbeat", "server.ping", "server.ready_interval", "store.keep_days"),
        *("webhooks.first_wait", "webhooks.longest_wait", "webhooks.keep", "background.keep_events"),
        *("store.keep_conversation_days", "search.keep", "otel.sample", "otel.interval"),
        *("lessons.keep", "checks.idle", "mcp.NAME.idle", "providers.NAME.retries", "plan.repair_budget"),
        "usage.keep_days",
        *("providers.NAME.breaker.first_rest", "providers.NAME.breaker.longest_rest"),
    }
)
"""Numbers that refuse nothing and cut nothing off."""


_PARTS: Final = (
    *(schema, schema_background, schema_bounds, schema_hooks, schema_limits, schema_mcp, schema_providers),
    *(schema_search, schema_tools, schema_watch),
)
"""Where the words stand."""
_NAMED: Final = (
    schema.ProviderConfig,
    schema.ChoiceConfig,
    schema.TeamConfig,
    schema.WebhookEndpoint,
    schema.McpConfig,
    schema_limits.ModelLimits,
)
"""Sections under names of the user's choice."""


def limit_settings(
    cls: type[msgspec.Struct] = schema.Config, path: str = "", said: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str, str]]:
    """Every number that bounds something: its key, its default, what it means."""
    said = said or _documentation()
    default = cls()
    for field in msgspec.structs.fields(cls):
        at = f"{path}{field.name}"
        inner = _inner_section(field.type)
        if inner is not None:
            yield from limit_settings(inner, f"{at}.NAME." if inner in _NAMED else f"{at}.", said)
        elif at not in NO_BOUNDS and _is_number(field.type):
            yield at, _default(getattr(default, field.name)), _words(cls, field.name, said)


def _is_number(kind: Any) -> bool:
    kinds = (kind, *(each for given in get_args(kind) for each in (given, *get_args(given))))
    return any(each in (int, float) for each in kinds)


def _section(cls: type[msgspec.Struct], path: str, said: Mapping[str, str]) -> Iterator[str]:
    fields = msgspec.structs.fields(cls)
    below = [(field.name, inner) for field in fields if (inner := _inner_section(field.type)) is not None]
    inner_names = {name for name, _ in below}
    plain = [field for field in fields if field.name not in inner_names]
    title = f"`[{path}]`" if path else "Top level"
    yield from ("", f"## {title}", "", inspect.cleandoc(cls.__doc__ or ""), "")
    if plain:
        yield from ("| key | value | default | |", "|---|---|---|---|")
        default = cls()
        for field in plain:
            text = _words(cls, field.name, said).replace("|", "\\|")
            shown = _default(getattr(default, field.name))
            yield f"| `{field.name}` | {describe_type(field.type)} | {shown} | {text} |"
    for name, inner in below:
        at = f"{path}.{name}" if path else name
        yield from _section(inner, f"{at}.NAME" if inner in _NAMED else at, said)


def _inner_section(kind: Any) -> type[msgspec.Struct] | None:
    """The section that a key opens: a struct, a table of structs, a list of structs."""
    for candidate in (kind, *(get_args(kind) if get_origin(kind) is not None else ())):
        if isinstance(candidate, type) and issubclass(candidate, msgspec.Struct):
            return candidate
    return None


def _words(cls: type, name: str, said: Mapping[str, str]) -> str:
    """Where it is declared: several sections may have it."""
    return next(said[at] for kind in cls.__mro__ if (at := f"{kind.__name__}.{name}") in said)


def _default(value: object) -> str:
    return f"`{toml_value(value)}`" if value not in (None, "", [], {}) else ""


def _documentation() -> dict[str, str]:
    """`Class.key` → the string under the key; Python keeps it in the source only."""
    found: dict[str, str] = {}
    for node in (node for part in _PARTS for node in ast.parse(inspect.getsource(part)).body):
        if isinstance(node, ast.ClassDef):
            for key, text in zip(node.body, node.body[1:], strict=False):
                match key, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                        found[f"{node.name}.{name}"] = " ".join(words.split())
    return found
