"""A provider's settings → the places where it is asked: an address, headers, a signer where the key is made there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from isthmus.addresses import fill_gaps, fill_in, gaps_of, host_of, may_get_key
from isthmus.bridge.capabilities import Dialect
from isthmus.config.keys import shows_header, tell_key
from isthmus.config.schema import ProviderConfig
from isthmus.errors import ConfigError
from isthmus.providers import Provider
from isthmus.providers.dialects import facts_in, more_dialects
from isthmus.providers.schema import COMPUTED, EndpointFacts
from isthmus.upstream.breaker import BreakerRule
from isthmus.upstream.endpoint import EMBEDDINGS, IMAGE_EDITS, IMAGES, Elsewhere, Endpoint


def places_of(settings: ProviderConfig) -> list[ProviderConfig]:
    """One set of settings for each key and each place."""
    keys = settings.api_keys or [settings.api_key]
    if not settings.endpoints:
        return [msgspec.structs.replace(settings, api_key=key) for key in keys]
    return [
        msgspec.structs.replace(
            settings,
            base_url=place.base_url,
            api_key=place.api_key or key,
            headers={**settings.headers, **place.headers},
        )
        for place in settings.endpoints
        for key in ([place.api_key] if place.api_key else keys)
    ]


def with_key(settings: ProviderConfig, key: str) -> ProviderConfig:
    """The same places, all of them with this key alone."""
    endpoints = [msgspec.structs.replace(place, api_key="") for place in settings.endpoints]
    return msgspec.structs.replace(settings, api_key=key, api_keys=[], endpoints=endpoints)


def http_endpoint(
    name: str, provider: Provider, settings: ProviderConfig, base_url: str, dialect: Dialect = "chat"
) -> Endpoint:
    facts = provider.endpoint.alternative(settings.endpoint) if settings.endpoint else provider.endpoint
    chat, facts = facts, facts_in(provider, facts, dialect)
    own = fill_gaps(facts.base_url, settings.variables)
    base = settings.base_url or base_url or own
    if not base or gaps_of(base):
        missing = f"`variables` for {', '.join(gaps_of(base))}, or `base_url`," if base else "`base_url`"
        raise ConfigError(
            f"provider `{name}` has no address; set {missing} in `providers.{name}`", param=f"providers.{name}.base_url"
        )
    way = _way(facts, settings, base, dialect)
    direct = settings.proxy == "direct" or provider.name == "demo"  # the demo lives in this process
    endpoint = Endpoint(
        provider=name,
        url=way.url,
        headers=way.headers,
        others=dict(_other_ways(provider, chat, settings, base_url, dialect)),
        query=settings.query,
        proxy=settings.proxy if settings.proxy and not direct else None,
        trust_env=not direct and not settings.proxy,
        verify_tls=settings.verify_tls,
        max_connections=settings.max_connections,
        max_queued=settings.max_queued,
        max_queued_per_owner=settings.max_queued_per_owner,
        queue_timeout=settings.queue_timeout,
        breaker=BreakerRule(settings.breaker.failures or 0, settings.breaker.first_rest, settings.breaker.longest_rest),
        patience=settings.timeouts,
        credential=_tell_credential(name, settings),
    )
    if facts.auth not in COMPUTED or settings.api_key or shows_header(settings):
        return endpoint
    return _signed(endpoint, facts, settings, own=own, base=base)


def _way(facts: EndpointFacts, settings: ProviderConfig, base: str, dialect: Dialect) -> Elsewhere:
    """Where a dialect is spoken, and with which headers."""
    base = base.rstrip("/")
    if dialect == "messages" and not re.search(r"/v\d+$", base):
        base = f"{base}/v1"  # vendors name this address without its version (claude-code#20416)
    headers = dict(facts.headers)
    if settings.api_key:  # also where none is needed: who sets a key wants it sent (`vllm serve --api-key`)
        if facts.auth in ("bearer", "none", *COMPUTED):
            headers["authorization"] = f"Bearer {settings.api_key}"
        else:
            headers[facts.auth] = str(settings.api_key)
    return Elsewhere(f"{base}/{facts.path.lstrip('/')}", {**headers, **settings.headers})


def _other_ways(
    provider: Provider, facts: EndpointFacts, settings: ProviderConfig, base_url: str, chosen: Dialect
) -> Iterator[tuple[str, Elsewhere]]:
    """Where the models are asked that are not spoken to as the rest, and where vectors are made."""
    for dialect in more_dialects(provider, chosen):
        there = facts_in(provider, facts, dialect)
        base = settings.base_url or base_url or fill_gaps(there.base_url, settings.variables)
        if base and not gaps_of(base):
            yield dialect, _way(there, settings, base, dialect)
    vectors, images = provider.capabilities().embeddings, provider.capabilities().images
    base = settings.base_url or base_url or fill_gaps(facts.base_url, settings.variables)
    more = {EMBEDDINGS: vectors.path if vectors.supported else ""}
    more |= {IMAGES: images.path, IMAGE_EDITS: images.edits_path} if images.supported else {}
    for name, path in more.items():
        if path and base and not gaps_of(base):
            yield name, _way(msgspec.structs.replace(facts, path=path), settings, base, "chat")


def _signed(endpoint: Endpoint, facts: EndpointFacts, settings: ProviderConfig, *, own: str, base: str) -> Endpoint:
    """The same with a signer, at the file's own host and at no other: a token is as good as a key."""
    if not may_get_key(own, base):
        raise ConfigError(
            f"provider `{endpoint.provider}` is asked at another host than `{host_of(own)}`, and nothing is signed for "
            "that; write a provider file with its address",
            param=f"providers.{endpoint.provider}.base_url",
        )
    from isthmus.upstream.sign.open import open_signer

    filled = {name: fill_in(text, settings.variables) for name, text in facts.sign.items()}
    told = f"what `{facts.auth}` makes of the credentials on this machine"
    return replace(endpoint, signer=open_signer(facts.auth, filled, endpoint, os.environ), credential=told)


def _tell_credential(name: str, settings: ProviderConfig) -> str:
    """What a request shows of us, told without showing it."""
    if not settings.api_key and shows_header(settings):
        return f"what stands in `headers` or `query` of `providers.{name}`"
    return tell_key(name, settings.api_key)
