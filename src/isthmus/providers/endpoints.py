"""A provider's other endpoint as it holds for one model: its section, and over it what the server and the user say.

In: `[responses]` or `[messages_endpoint]`, as the files together have it. Out: the same, changed where somebody who
knows better speaks of the same thing. Worth knowing: our file describes an endpoint; that must not beat what is known
of the one model, what a server says of it, nor what the user says of either. The server's word only takes away: that
its chat side can do a thing promises nothing here. A section of the user's own is meant for this endpoint alone, and
has the last word on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final, TypeVar

import msgspec

from isthmus.providers.load import Provider
from isthmus.providers.schema import MessagesFacts, ResponsesFacts

Section = TypeVar("Section", ResponsesFacts, MessagesFacts)

SAME: Final[Mapping[tuple[str, str], str]] = {
    ("response_formats", "supported"): "formats",
    ("tool_choice", "supported"): "tool_choice",
    ("messages", "input"): "input",
    ("reasoning", "scale"): "efforts",
    ("tools", "strict"): "strict",
}
"""Facts of a model → what an endpoint's section calls the same."""
_SPELLED: Final[Mapping[str, str]] = {"stop": "stop_sequences", "parallel_tool_calls": "disable_parallel_tool_use"}
"""Parameters → their names in Messages."""


def section_for(provider: Provider, model: str, name: str, section: Section) -> Section:
    """`name`: what the section is called in a file."""
    settled = own_fields(provider, name)
    changes = {**_heard(provider, model, section), **_stated(provider, model, section)}
    if refused := _refused(provider, model, section) & section.parameters:
        changes["parameters"] = section.parameters - refused
    used = {field: value for field, value in changes.items() if field not in settled}
    return msgspec.structs.replace(section, **used) if used else section


def own_fields(provider: Provider, name: str) -> Set[str]:
    """What the user says of this endpoint himself."""
    heads = (part.head.get(name) for part in provider.parts if part.own)
    return {field for head in heads if isinstance(head, Mapping) for field in head}


def _heard(provider: Provider, model: str, section: Section) -> dict[str, Any]:
    """What the server takes away; its senses are the model's, and are counted where the endpoint is made."""
    word = provider.told.word(model)
    changes: dict[str, Any] = {}
    if lacking := {kind for kind, able in word.formats.items() if not able} & section.formats:
        changes["formats"] = section.formats - lacking
    if word.choice is False:
        changes["tool_choice"] = section.tool_choice & {"auto", "none"}
    return changes


def _stated(provider: Provider, model: str, section: Section) -> dict[str, Any]:
    """What the user says of the model, in a file or in the configuration."""
    changes: dict[str, Any] = {}
    for facts in provider.own_facts(model):
        for (table, fact), field in SAME.items():
            if fact in facts.get(table, ()) and field in section.__struct_fields__:
                changes[field] = facts[table][fact]
        if "effort" in facts.get("reasoning", ()):
            changes["efforts"] = facts["reasoning"].get("scale", [])
    for field in changes.keys() & {"formats", "tool_choice", "input"}:
        changes[field] = frozenset(changes[field])
    return changes


def _refused(provider: Provider, model: str, section: Section) -> frozenset[str]:
    """Parameters that this model does not take: by a file's entry for it, the snapshot, its server, or the user. What a
    file lacks for all its models says nothing of another endpoint."""
    refused: dict[str, bool] = {}
    for own in (False, True):
        for part in (part for part in provider.parts if part.own is own):
            for layer in list(part.layers(model))[0 if own else 1 :]:
                refused |= {name: rule is False for name, rule in layer.facts.get("parameters", {}).items()}
        if not own:
            refused |= dict.fromkeys(provider.told.word(model).untaken, True)
    return _spelled({name for name, no in refused.items() if no}, section)


def _spelled(parameters: Set[str], section: Section) -> frozenset[str]:
    if isinstance(section, ResponsesFacts):
        return frozenset(parameters)
    return frozenset(_SPELLED.get(parameter, parameter) for parameter in parameters)
