"""What the conformance questions share: every provider file, its models, and the planners to ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.bridge.compat.planner import plan_bridge_compatibility
from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityPlan
from isthmus.bridge.parse import parse_request
from isthmus.bridge.types.plan import Host
from isthmus.protocol.json import deep_merge
from isthmus.providers import Provider, load_provider, provider_names

NAMES = provider_names()


class _Models(dict[str, list[str]]):
    """The models to ask about: every file's, and those of the snapshot when one of its providers is asked about."""

    def __missing__(self, name: str) -> list[str]:
        return snapshot_examples(name)


MODELS = _Models(
    {
        name: list(dict.fromkeys([provider.default_model, *(entry.example for entry in provider.models), "unlisted"]))
        for name in NAMES
        for provider in [load_provider(name)]
    }
)
USER_DIRS: list[Path] = []
"""Where faults are put, to prove that a question can fail."""

UNASKED: list[str] = []
"""Why a question had no meaning, once for each time that one had none; the page of providers looks at it."""

each_file = pytest.mark.parametrize("name", NAMES)


def each_model(question: Callable[[str, str], None]) -> Callable[[str], None]:
    """Ask about every model that a file names, its default, and one that it does not name."""

    def ask(name: str) -> None:
        for model in MODELS[name]:
            try:
                question(name, model)
            except AssertionError as error:
                error.add_note(f"asked about the model `{model}`")
                raise

    ask.__name__ = question.__name__
    ask.per_model = True  # type: ignore[attr-defined]
    return each_file(ask)


def nothing_to_ask(why: str) -> None:
    """A question has no meaning here: the page of providers has a dash for it, not a tick."""
    UNASKED.append(why)


def snapshot_examples(name: str) -> list[str]:
    """Of a provider without a file: its newest model that thinks, its newest that does not, and an unknown one."""
    known = load_provider(name).snapshot
    assert known is not None
    rows = [row for row in known.rows.values() if row.speaks is None]
    found = [next((row.id for row in rows if row.thinks is thinks), "unlisted") for thinks in (True, False)]
    return list(dict.fromkeys([*found, "unlisted"]))


def provider_of(name: str) -> Provider:
    return load_provider(name, USER_DIRS) if USER_DIRS else _ours(name)


@cache
def _ours(name: str) -> Provider:
    """Read once: thousands of questions are asked of it."""
    return load_provider(name)


def facts_of(name: str, model: str) -> ProviderCapabilities:
    return provider_of(name).capabilities(model)


def plan(facts: ProviderCapabilities, body: Mapping[str, Any], **options: Any) -> CompatibilityPlan:
    request = parse_request({"model": facts.model or "any", "input": "hello", **body})
    return plan_bridge_compatibility(request, facts, Host(), **options)


def sent(found: CompatibilityPlan) -> dict[str, Any]:
    """The body fields that a plan makes."""
    return deep_merge(*(decision.sends for decision in found.decisions))


def effort_decision(found: CompatibilityPlan) -> CompatibilityDecision:
    decision = found.decision("reasoning.effort")
    assert decision is not None
    return decision
