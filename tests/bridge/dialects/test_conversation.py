"""A conversation is the gateway's own affair: whatever an upstream speaks, it gets the items and never the name."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Host, Target
from isthmus.errors import RequestRefused
from isthmus.gateway.attempts import HONOURED
from isthmus.protocol.json import JsonObject
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for

PAST: list[JsonObject] = [
    {"type": "message", "role": "user", "content": "My name is Ann."},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello Ann."}]},
]
UPSTREAMS = [
    ("openai", "chat"),
    ("openai", "responses"),
    ("azure", "responses"),
    ("anthropic", "messages"),
    ("codex", None),
]


def target(provider: str, dialect: Any) -> Target:
    facts: ProviderCapabilities = capabilities_for(load_provider(provider), "a-model", dialect)
    return Target(provider, "a-model", facts)


@pytest.mark.parametrize(("provider", "dialect"), UPSTREAMS)
def test_its_items_are_sent_and_its_name_is_not(provider: str, dialect: Any) -> None:
    request = parse_request({"model": "a-model", "input": "Who am I?", "conversation": {"id": "conv_1"}})
    plan = plan_request(request, target(provider, dialect), Host(HONOURED), history=PAST)
    sent = str(plan.body)
    assert "My name is Ann." in sent
    assert "Hello Ann." in sent
    assert "conv_1" not in sent
    assert plan.echo["conversation"] == {"id": "conv_1"}


@pytest.mark.parametrize(("provider", "dialect"), UPSTREAMS)
def test_without_a_store_it_is_refused_and_not_forgotten(provider: str, dialect: Any) -> None:
    request = parse_request({"model": "a-model", "input": "Who am I?", "conversation": "conv_1"})
    with pytest.raises(RequestRefused, match="no store here that holds conversations") as refused:
        plan_request(request, target(provider, dialect))
    assert refused.value.param == "conversation"
