"""Which models are offered, who says so, and what is known about them: for listings, budgets and model pickers.

In: providers. Out: `KnownModel`s in the order of the files, each with whoever names it. What a server lists outranks
what its file names: a model that it does not list any more is not offered. A provider serves more than is listed here:
an unlisted model gets its provider's own facts, and what the snapshot knows of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from isthmus.bridge.capabilities import EFFORTS, Cost, Modality, ReasoningSupport
from isthmus.providers.dialects import capabilities_for
from isthmus.providers.load import Provider, load_provider, provider_names
from isthmus.providers.word.told import Told

LISTED: Final = 10
"""How many models of a provider without a file are listed: some have hundreds, and a client reads the whole list."""
_MOST_LISTED: Final = 100
"""Models of the user's own server that a list shows."""
_DATED: Final = re.compile(r"[-@]20\d\d-?\d\d-?\d\d")
"""What vendors put behind the name of a model that is pinned."""
_OTHER_WORK: Final = re.compile(
    r"embed|whisper|tts|transcri|dall-e|moderation|realtime|rerank|\bocr\b|sora|\bveo|imagen|-image|-audio|davinci|babbage"
)
"""In the names of models that nobody talks to, of vendors whose lists say nothing of a model but its name."""

Source = Literal["server", "file", "snapshot", "program", "configuration", "name"]
"""Who names a model: its server's own list; its provider's file, or the snapshot, where the server could not be asked;
the program that is the provider; the user; or nobody but the one who asks."""


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


@dataclass(frozen=True, slots=True)
class Offered:
    model: KnownModel
    source: Source
    heard_at: float | None = None
    """When the server said so."""
    shutdown: str | None = None
    """The day on which it is switched off, where the server says that."""
    served: bool = True
    """False: the user names it, and its server does not list it."""
    embeds: bool = False
    """Whether it makes vectors, and no answers."""


def offered_models(provider: Provider, *, listed: int = LISTED) -> list[Offered]:
    """What the server lists: all that a server of the user's own has; of a vendor's, what the file names, and `listed`
    more. Where it has not been heard, what the file names."""
    named, told = _named(provider, listed), provider.told
    if not told.models:
        return [_offered(provider, model) for model in named]
    if told.own:
        names = list(told.models[:_MOST_LISTED])
    else:
        found = [model for model in named if lists(told, model)]
        more = [model for model in told.models if model not in found and not _OTHER_WORK.search(model.lower())]
        names = [*found, *more[: max(listed - len(found), 0)]]
    return [_offered(provider, model) for model in names]


def offered_embeddings(provider: Provider) -> list[Offered]:
    """The models that make vectors, as far as they are known by name. A server's list is no proof that one is gone:
    those of other work are not read."""
    named = provider.capabilities().embeddings.models
    return [replace(_offered(provider, model), embeds=True) for model in named]


def offer_named(provider: Provider, model: str) -> Offered | None:
    """One model, whoever names it; `None`: its server lists others, and not this one."""
    known = model in provider.capabilities().embeddings.models
    if provider.told.models and not known and not lists(provider.told, model):
        return None
    return _offered(provider, model)


def lists(told: Told, model: str) -> bool:
    """Whether a server's list has it: under its name, or pinned to a day, or as Ollama spells the latest."""
    wanted, names = model.lower(), [name.lower() for name in (*told.models, *told.words)]
    return any(name in (wanted, f"{wanted}:latest") or _pinned(name, wanted) for name in names)


def _pinned(name: str, wanted: str) -> bool:
    return name.startswith(wanted) and _DATED.fullmatch(name, len(wanted)) is not None


def _offered(provider: Provider, model: str) -> Offered:
    known, told = describe_model(provider, model), provider.told
    if told.models and lists(told, model):
        return Offered(known, "server", told.at, told.word(model).shutdown)
    if model == provider.default_model or any(entry.exact and entry.pattern == model for entry in provider.models):
        return Offered(known, "file")
    if model in provider.capabilities().embeddings.models:
        return Offered(known, "file")
    return Offered(known, "snapshot" if is_known(provider, model) else "name")


def known_models(
    providers: Iterable[Provider] | None = None, user_dirs: Sequence[Path] = (), *, listed: int = LISTED
) -> list[KnownModel]:
    """Every model that a provider file names, and each provider's default; `listed` of those that have no file; what a
    server of the user's own lists in their place."""
    if providers is None:
        providers = [load_provider(name, user_dirs) for name in provider_names(user_dirs)]
    return [offered.model for provider in providers for offered in offered_models(provider, listed=listed)]


def is_known(provider: Provider, model: str) -> bool:
    """Whether a file or the snapshot names exactly this model."""
    named = (entry.pattern for entry in provider.models if entry.exact)
    known = provider.snapshot.rows if provider.snapshot is not None and provider.snapshot.whole else {}
    return model in (provider.default_model, *named) or model.lower() in known


def known_names(provider: Provider) -> frozenset[str]:
    """Every model that a file, the snapshot or the server names, in small letters: nobody's word but theirs."""
    named = [provider.default_model, *(entry.pattern for entry in provider.models if entry.exact)]
    named += provider.capabilities().embeddings.models
    known = provider.snapshot.rows if provider.snapshot is not None else ()
    told = provider.told
    found = {name.lower() for name in (*named, *known, *told.models, *told.words) if name}
    return frozenset(found | {name.removesuffix(":latest") for name in found})


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


def _named(provider: Provider, listed: int) -> list[str]:
    named = [entry.pattern for entry in provider.models if entry.exact]
    if provider.snapshot is not None and provider.snapshot.whole:
        named += provider.snapshot.listed(listed)
    first = [provider.default_model] if provider.default_model else []
    return list(dict.fromkeys([*first, *named]))


def _efforts(reasoning: ReasoningSupport) -> tuple[str, ...]:
    match reasoning.effort:
        case "native":
            off = ["none"] if reasoning.off else []
            return tuple(effort for effort in EFFORTS if effort in (*off, *reasoning.scale))
        case "boolean":
            return ("none", "high") if reasoning.off else ("high",)
        case _:
            return ()
