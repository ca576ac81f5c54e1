"""Which dialects a provider speaks, which one is chosen, and what a model can do in it."""

from __future__ import annotations

import msgspec

from isthmus.bridge.capabilities import Dialect, ProviderCapabilities
from isthmus.errors import ConfigError
from isthmus.providers.load import Provider
from isthmus.providers.messages import messages_capabilities
from isthmus.providers.responses import responses_capabilities, serves
from isthmus.providers.schema import COMPUTED, EndpointFacts


def choose_dialect(name: str, provider: Provider, asked: Dialect | None = None) -> Dialect:
    """The dialect that is asked for; else the one that the vendor prefers. `name` is the provider's in the
    configuration."""
    own = provider.capabilities().dialect
    others: list[tuple[Dialect, bool]] = []
    if provider.responses is not None:
        others.append(("responses", provider.responses.preferred))
    if provider.messages_endpoint is not None:
        others.append(("messages", provider.messages_endpoint.preferred))
    if asked is None:
        return next((dialect for dialect, preferred in others if preferred), own)
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


def capabilities_in(provider: Provider, model: str, dialect: Dialect | None) -> ProviderCapabilities:
    """A model's facts in this dialect; `None`, or one that the provider has no other endpoint for: the file's own."""
    known = provider.capabilities(model)
    if dialect == "responses" and provider.responses is not None and serves(provider.responses, model):
        return responses_capabilities(known, provider.responses)
    if dialect == "messages" and provider.messages_endpoint is not None:
        return messages_capabilities(known, provider.messages_endpoint)
    return known


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


def capabilities_for(provider: Provider, model: str, dialect: Dialect | None = None) -> ProviderCapabilities:
    """The same in the dialect that is asked for, or in the one that the vendor prefers, if that endpoint has the
    model."""
    try:
        dialect = choose_dialect(provider.name, provider, dialect)
    except ConfigError:
        return provider.capabilities(model)
    facts = {"responses": provider.responses, "messages": provider.messages_endpoint}.get(dialect)
    return capabilities_in(provider, model, dialect if serves(facts, model) else None)
