"""Which dialects a provider speaks, which one is chosen, and what a model can do in it."""

from __future__ import annotations

import msgspec

from isthmus.bridge.capabilities import Dialect, ProviderCapabilities
from isthmus.errors import ConfigError
from isthmus.providers.endpoints import section_for
from isthmus.providers.load import Provider
from isthmus.providers.messages import messages_capabilities
from isthmus.providers.responses import responses_capabilities, serves
from isthmus.providers.schema import COMPUTED, EndpointFacts, MessagesFacts, ResponsesFacts


def choose_dialect(name: str, provider: Provider, asked: Dialect | None = None) -> Dialect:
    """The dialect that is asked for; else the one that the vendor prefers. `name` is the provider's in the
    configuration."""
    own = provider.capabilities().dialect
    others = _others(provider)
    if asked is None:
        return next((dialect for dialect, section in others if section.preferred), own)
    spoken = dict.fromkeys([own, *(dialect for dialect, _ in others)])
    if asked not in spoken:
        known = " and ".join(f"`{dialect}`" for dialect in spoken)
        what = {"responses": "no Responses endpoint", "messages": "no Messages endpoint"}.get(asked, f"no `{asked}`")
        raise ConfigError(
            f"provider `{name}` has {what} that we know of; it speaks {known}: "
            f"leave `providers.{name}.dialect` out, or name one of these",
            param=f"providers.{name}.dialect",
        )
    return asked


def dialect_of(provider: Provider, model: str, asked: Dialect | None = None) -> Dialect:
    """How this model is spoken to: as is asked for; else at the one endpoint that has it, else as the vendor prefers.
    Where that endpoint does not have it, as the file's own facts say."""
    asked = asked or provider.asked
    own = provider.capabilities(model).dialect
    if asked is None and provider.snapshot is not None and provider.snapshot.whole:
        said = provider.snapshot.speaks(model)
        if said in (own, *(name for name, _ in _others(provider))):
            return said
    sections = _others(provider)
    if asked is None:
        only = (name for name, section in sections if section.only and serves(section, model))
        preferred = (name for name, section in sections if section.preferred and serves(section, model))
        return next(only, next(preferred, own))
    return next((name for name, section in sections if name == asked and serves(section, model)), own)


def capabilities_in(provider: Provider, model: str, dialect: Dialect | None) -> ProviderCapabilities:
    """A model's facts in this dialect; `None`, or one that the provider has no other endpoint for: the file's own."""
    known = provider.capabilities(model)
    responses, messages = provider.responses, provider.messages_endpoint
    if dialect == "responses" and responses is not None:
        return provider.remember(
            known.model,
            dialect,
            lambda: responses_capabilities(known, section_for(provider, known.model, "responses", responses)),
        )
    if dialect == "messages" and messages is not None:
        return provider.remember(
            known.model,
            dialect,
            lambda: messages_capabilities(known, section_for(provider, known.model, "messages_endpoint", messages)),
        )
    return known


def capabilities_for(provider: Provider, model: str, asked: Dialect | None = None) -> ProviderCapabilities:
    """A model's facts as it is spoken to: what listings, plans and pages all read."""
    return capabilities_in(provider, model, dialect_of(provider, model, asked))


def more_dialects(provider: Provider, chosen: Dialect) -> list[Dialect]:
    """In which others some of its models are spoken to, while the rest are spoken to in `chosen`."""
    own = provider.capabilities().dialect
    sections = dict(_others(provider))
    mixed = provider.snapshot is not None and provider.snapshot.whole and provider.snapshot.mixed
    found: list[Dialect] = [own] if chosen != own and (mixed or sections[chosen].models) else []
    if provider.asked is None:
        found += [name for name, section in sections.items() if name != chosen and (mixed or section.only)]
    return found


def facts_in(provider: Provider, facts: EndpointFacts, dialect: Dialect) -> EndpointFacts:
    """Where and how the provider is asked in this dialect; `facts` are those of the address that was chosen. One whose
    Messages live elsewhere has no address for them where its file names none."""
    if dialect == "responses" and provider.responses is not None:
        return msgspec.structs.replace(facts, path=provider.responses.path)
    if dialect != "messages" or provider.messages_endpoint is None:
        return facts
    own = provider.messages_endpoint
    base_url = facts.messages_url or ("" if provider.endpoint.messages_url else facts.base_url)
    headers = {**facts.headers, **own.headers}
    auth = facts.auth if facts.auth in COMPUTED else own.auth or facts.auth  # a signature is one at every path
    return msgspec.structs.replace(facts, base_url=base_url, path=own.path, auth=auth, headers=headers)


def _others(provider: Provider) -> list[tuple[Dialect, ResponsesFacts | MessagesFacts]]:
    """The endpoints that it has beside that of its file's own facts."""
    found: list[tuple[Dialect, ResponsesFacts | MessagesFacts]] = []
    if provider.responses is not None:
        found.append(("responses", provider.responses))
    if provider.messages_endpoint is not None:
        found.append(("messages", provider.messages_endpoint))
    return found
