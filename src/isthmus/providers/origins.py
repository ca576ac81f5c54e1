"""For every fact of a model, as it is spoken to: who says it.

In: a provider and a model. Out: the origin of each fact by its dotted path: a file and its section, the server, the
configuration, `default`, or the protocol itself. Worth knowing: at an endpoint beside that of the file's own facts, the
endpoint's section says most of it; what the server or the user says of the model still has its own origin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from isthmus.bridge.capabilities import Dialect, ProviderCapabilities
from isthmus.providers.dialects import capabilities_in, dialect_of
from isthmus.providers.endpoints import SAME, section_for
from isthmus.providers.load import Provider
from isthmus.providers.merge import DEFAULT, all_paths
from isthmus.providers.schema import MessagesFacts, ResponsesFacts

_SECTIONS: Final[Mapping[str, str]] = {"responses": "responses", "messages": "messages_endpoint"}
_PROTOCOLS: Final[Mapping[str, str]] = {"responses": "Responses itself", "messages": "Messages itself"}
_SAID_BY: Final[Mapping[str, Mapping[str, str]]] = {
    "responses": {
        **{".".join(path): field for path, field in SAME.items()},
        "allow": "parameters",
        "extra_body": "encrypted_reasoning",
        "messages.cache_breakpoints": "cache_breakpoints",
        "messages.items": "items",
        "messages.phases": "phases",
        "messages.replay_extras": "encrypted_reasoning",
        "messages.tool_media": "tool_media",
        "reasoning.summary": "encrypted_reasoning",
        "reply.tells_length": "tells_length",
        "response_formats.with_tools": "with_tools",
        "tool_choice.while_thinking": "while_thinking",
        "tools.cached_search": "cached_search",
        "tools.native": "tools",
    },
    "messages": {
        **{".".join(path): field for path, field in SAME.items() if field != "strict"},
        "messages.cache_breakpoints": "cache_marks",
        "messages.remote_images": "remote_images",
        "messages.signed": "signed",
        "messages.system": "late_system",
        "messages.tool_media": "tool_media",
    },
}
"""Facts → the field of the endpoint's section that says them there."""


def origins_of(provider: Provider, model: str = "", now: float | None = None) -> dict[str, str]:
    """`now`: to say how long ago the server said so."""
    model = model or provider.default_model
    dialect = dialect_of(provider, model)
    own = provider.origins(model, now)
    known, made = provider.capabilities(model), capabilities_in(provider, model, dialect)
    return own if made is known else dict(_origins(provider, model, dialect, own, known, made))


def _origins(
    provider: Provider,
    model: str,
    dialect: Dialect,
    own: Mapping[str, str],
    known: ProviderCapabilities,
    made: ProviderCapabilities,
) -> Iterator[tuple[str, str]]:
    said = _stated(provider, model, dialect)
    before, after = (msgspec.to_builtins(facts, order="deterministic") for facts in (known, made))
    for path in _paths(own, made):
        field = _SAID_BY[dialect].get(path, "")
        if path.startswith("parameters."):
            yield path, own.get(path) or said.get("parameters", _PROTOCOLS[dialect])
        elif field in said:
            yield path, said[field]
        elif _at(before, path) == _at(after, path):
            yield path, own.get(path) or next((own[each] for each in own if each.startswith(f"{path}.")), DEFAULT)
        elif field:
            yield path, DEFAULT
        else:
            yield path, _PROTOCOLS[dialect]


def _stated(provider: Provider, model: str, dialect: Dialect) -> dict[str, str]:
    """For each field of the endpoint's section that somebody states: the file; not where somebody else's word on the
    model took its place."""
    name = _SECTIONS[dialect]
    found: dict[str, str] = {}
    for part in provider.parts:
        head = part.head.get(name)
        if isinstance(head, Mapping):
            found |= dict.fromkeys(head, f"{part.label} [{name}]")
    kept = _kept(provider, model, name)
    return {field: label for field, label in found.items() if field in kept}


def _kept(provider: Provider, model: str, name: str) -> frozenset[str]:
    """The fields of the section that hold for the model as they are written."""
    before: ResponsesFacts | MessagesFacts | None
    after: ResponsesFacts | MessagesFacts | None
    if name == "responses":
        before = provider.responses
        after = before and section_for(provider, model, name, before)
    else:
        before = provider.messages_endpoint
        after = before and section_for(provider, model, name, before)
    fields = before.__struct_fields__ if before is not None else ()
    return frozenset(field for field in fields if getattr(before, field) == getattr(after, field))


def _paths(own: Mapping[str, str], made: ProviderCapabilities) -> Iterator[str]:
    """Every fact in the order of the page; of the parameters those that are sent, with what is said of each."""
    for path in all_paths():
        if path != "parameters":
            yield path
            continue
        for name in sorted(made.parameters):
            inner = [each for each in own if each.startswith(f"parameters.{name}.") and not each.endswith(".to")]
            yield from inner or [f"parameters.{name}"]


def _at(tree: Any, path: str) -> Any:
    for part in path.split("."):
        tree = tree.get(part) if isinstance(tree, Mapping) else None
    return tree
