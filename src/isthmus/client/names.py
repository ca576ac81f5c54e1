"""How a model is named: `provider/model`, `provider:model`, `provider@profile:model`, or an alias.

In: the text, and the providers that there are. Out: its three parts, or `None` for a bare name. Only the first
separator counts, so `openai:ft:gpt-4o:acme` and `openrouter/meta-llama/llama-3:free` keep the rest of their names.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelName:
    provider: str
    model: str
    profile: str = ""


def split_model(text: str, providers: Collection[str]) -> ModelName | None:
    """A colon only separates behind the name of a provider: `llama3:8b` is a bare name."""
    at = min((place for place in (text.find("/"), text.find(":")) if place >= 0), default=-1)
    if at < 0:
        return None
    head, model = text[:at].strip(), text[at + 1 :].strip()
    provider, _, profile = head.partition("@")
    if not provider or not model or (text[at] == ":" and provider not in providers):
        return None
    return ModelName(provider, model, profile)
