"""Which models are known, and what is known about them: for listings, budgets and model pickers.

In: providers. Out: `KnownModel`s in the order of the files. A provider serves more than is listed here: an
unlisted model gets its provider's own facts, and what the snapshot knows of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isthmus.bridge.capabilities import EFFORTS, Cost, Modality, ReasoningSupport
from isthmus.providers.dialects import capabilities_for
from isthmus.providers.load import Provider, load_provider, provider_names

LISTED: Final = 10
"""How many models of a provider without a file are listed: some have hundreds, and a client reads the whole list."""
_MOST_LISTED: Final = 100
"""Models of the user's own server that a list shows."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    provider: str
    model: str
    title: str
    context: int | None
    output: int | None
    input: tuple[Modality, ...]
    """What it reads besides text."""
    efforts: tuple[str, ...]
    """The efforts that make a difference; empty where none can be asked for."""
    thinks: bool
    cost: Cost
    formats: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"


def known_models(
    providers: Iterable[Provider] | None = None, user_dirs: Sequence[Path] = (), *, listed: int = LISTED
) -> list[KnownModel]:
    """Every model that a provider file names, and each provider's default; `listed` of those that have no file; what a
    server of the user's own lists in their place."""
    if providers is None:
        providers = [load_provider(name, user_dirs) for name in provider_names(user_dirs)]
    return [known for provider in providers for known in _models_of(provider, listed)]


def is_known(provider: Provider, model: str) -> bool:
    """Whether a file or the snapshot names exactly this model."""
    named = (entry.pattern for entry in provider.models if entry.exact)
    known = provider.snapshot.rows if provider.snapshot is not None and provider.snapshot.whole else {}
    return model in (provider.default_model, *named) or model.lower() in known


def describe_model(provider: Provider, model: str) -> KnownModel:
    """What is known about one model, listed or not, as it is spoken to."""
    facts = capabilities_for(provider, model or provider.default_model)
    titles = [entry.title for entry in provider.models if entry.exact and entry.matches(facts.model) and entry.title]
    known = provider.snapshot.title(facts.model) if provider.snapshot is not None else ""
    return KnownModel(
        provider=provider.name,
        model=facts.model,
        title=titles[-1] if titles else known or facts.model,
        context=facts.limits.context,
        output=facts.limits.output,
        input=tuple(sorted(facts.messages.input)),
        efforts=_efforts(facts.reasoning),
        thinks=facts.reasoning.effort != "none" or facts.reasoning.default_on,
        cost=facts.cost,
        formats=tuple(sorted(facts.response_formats.supported)),
    )


def _models_of(provider: Provider, listed: int) -> Iterator[KnownModel]:
    named = [entry.pattern for entry in provider.models if entry.exact]
    if provider.snapshot is not None and provider.snapshot.whole:
        named += provider.snapshot.listed(listed)
    first = [provider.default_model] if provider.default_model else []
    served = provider.told.models[:_MOST_LISTED] if provider.told.own else ()
    for model in served or dict.fromkeys([*first, *named]):
        yield describe_model(provider, model)


def _efforts(reasoning: ReasoningSupport) -> tuple[str, ...]:
    match reasoning.effort:
        case "native":
            off = ["none"] if reasoning.off else []
            return tuple(effort for effort in EFFORTS if effort in (*off, *reasoning.scale))
        case "boolean":
            return ("none", "high") if reasoning.off else ("high",)
        case _:
            return ()
