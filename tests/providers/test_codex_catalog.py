"""Codex's catalogue: whatever a provider file says, each entry is one that Codex can use."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import EFFORTS
from isthmus.providers import load_provider, provider_names
from isthmus.providers.catalog import describe_model, known_models
from isthmus.providers.codex_catalog import DEFAULT_CONTEXT, codex_catalogue, codex_model, offered_models

EVERY = known_models()


@pytest.mark.parametrize("entry", [codex_model(m.name, m, 0) for m in EVERY], ids=[m.name for m in EVERY])
def test_every_known_model_makes_a_sound_entry(entry: dict[str, Any]) -> None:
    efforts = [level["effort"] for level in entry["supported_reasoning_levels"]]
    assert set(efforts) <= set(EFFORTS)
    assert entry["default_reasoning_level"] in (*efforts, None)
    assert entry["apply_patch_tool_type"] == "freeform"
    assert not entry["use_responses_lite"]
    assert 50 <= entry["effective_context_window_percent"] <= 95
    assert 0 < entry["truncation_policy"]["limit"] <= 10_000
    assert "*** Begin Patch" in entry["base_instructions"]


def test_the_answer_has_room_in_the_window() -> None:
    model = describe_model(load_provider("zhipu"), "glm-5.1")
    assert (model.context, model.output) == (204_800, 131_072)
    assert codex_model("x", model, 0)["effective_context_window_percent"] == 50
    unknown = describe_model(load_provider("openai-compatible"), "anything")
    assert codex_model("x", unknown, 0)["context_window"] == DEFAULT_CONTEXT


def test_the_default_comes_first_then_aliases_then_the_rest() -> None:
    providers = {"deepseek": load_provider("deepseek"), "glm": load_provider("zhipu")}
    aliases = {"*": "deepseek/deepseek-flash", "big": "glm/glm-5.3"}
    offered = offered_models(providers, aliases, "glm/some-new-model")
    assert list(offered)[:3] == ["glm/some-new-model", "big", "deepseek/deepseek-v4-pro"]
    assert "*" not in offered
    assert [entry["priority"] for entry in codex_catalogue(offered)["models"]] == list(range(len(offered)))


def test_there_are_providers_to_ask() -> None:
    assert len(provider_names()) > 15
