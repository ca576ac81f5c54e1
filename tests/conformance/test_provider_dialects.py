"""The same questions once more to every endpoint that a provider has beside its main one, for Responses or Messages:
what it takes is a fact of its own, never that of the chat side by another name.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from conformance.test_provider_bodies import ask_for_format, force_a_tool
from conformance.test_providers import ask_for_effort
from isthmus.bridge.capabilities import EFFORTS, Dialect, ProviderCapabilities
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Host, Target
from isthmus.providers.dialects import capabilities_for
from isthmus.providers.responses import serves
from provider_facts import MODELS, NAMES, provider_of

Json = dict[str, Any]

NATIVE: list[tuple[str, Dialect]] = [(name, "responses") for name in NAMES if provider_of(name).responses is not None]
ENDPOINTS: list[tuple[str, Dialect]] = [
    *NATIVE,
    *((name, "messages") for name in NAMES if provider_of(name).messages_endpoint is not None),
]
each_endpoint = pytest.mark.parametrize(("name", "dialect"), ENDPOINTS)
each_native = pytest.mark.parametrize(("name", "dialect"), NATIVE)

TOOL: Json = {"type": "function", "name": "look", "strict": True, "parameters": {"type": "object", "properties": {}}}
IMAGE: Json = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
EVERYTHING: Json = {
    "temperature": 0.5,
    "top_p": 0.9,
    "max_output_tokens": 100,
    "max_tool_calls": 3,
    "top_logprobs": 2,
    "parallel_tool_calls": True,
    "prompt_cache_key": "k1",
    "safety_identifier": "s1",
    "service_tier": "auto",
    "truncation": "disabled",
    "user": "u1",
    "metadata": {"a": "b"},
    "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"verbosity": "low"},
    "include": ["reasoning.encrypted_content"],
}


def facts_of(name: str, dialect: Dialect) -> list[ProviderCapabilities]:
    """Of every model that its own endpoint has."""
    provider = provider_of(name)
    section = provider.responses if dialect == "responses" else provider.messages_endpoint
    models = [model for model in MODELS[name] if serves(section, model)]
    return [capabilities_for(provider, model, dialect) for model in models]


@each_endpoint
def test_it_has_models_and_they_are_spoken_to_in_its_dialect(name: str, dialect: Dialect) -> None:
    assert facts_of(name, dialect)
    assert {facts.dialect for facts in facts_of(name, dialect)} == {dialect}


@each_endpoint
def test_a_forced_choice_has_a_way_out_there_too(name: str, dialect: Dialect) -> None:
    choices: tuple[Any, ...] = ("required", {"type": "function", "name": "look"})
    for facts, choice, effort in itertools.product(facts_of(name, dialect), choices, (None, "high")):
        force_a_tool(facts, choice, effort)


@each_endpoint
def test_a_format_is_sent_weakened_or_told_there_too(name: str, dialect: Dialect) -> None:
    for facts, kind in itertools.product(facts_of(name, dialect), ("text", "json_object", "json_schema")):
        ask_for_format(facts, kind)


@each_endpoint
def test_every_effort_lands_on_what_that_endpoint_takes(name: str, dialect: Dialect) -> None:
    for facts, effort in itertools.product(facts_of(name, dialect), EFFORTS):
        ask_for_effort(facts, effort)


@each_native
def test_nothing_leaves_that_the_endpoint_does_not_list(name: str, dialect: Dialect) -> None:
    listed = provider_of(name).responses
    assert listed is not None
    for facts in facts_of(name, dialect):
        request = parse_request({"model": "m", "input": "hi", "tools": [TOOL], "tool_choice": "auto", **EVERYTHING})
        body = plan_request(request, Target(name, facts.model, facts), Host()).body
        assert facts.allow is None or set(body) <= facts.allow
        sendable = {field.partition(".")[0] for field in listed.parameters}
        assert set(body) <= sendable | {"model", "input", "instructions", "stream", "tools", "tool_choice"} | {
            *("store", "include", *facts.extra_body)
        }


@each_endpoint
def test_strictness_and_images_follow_the_endpoint(name: str, dialect: Dialect) -> None:
    for facts in facts_of(name, dialect):
        items = [{"type": "message", "role": "user", "content": [IMAGE]}]
        request = parse_request({"model": "m", "input": items, "tools": [TOOL]})
        plan = plan_request(request, Target(name, facts.model, facts), Host())
        assert ("strict" in plan.body["tools"][0]) >= facts.tools.strict
        sees = "image" in facts.messages.input
        assert (IMAGE["image_url"].partition(",")[2] in repr(plan.body.get("input", plan.body.get("messages")))) is sees
        assert sees or any(decision.path.startswith("input[0]") for decision in plan.decisions)
