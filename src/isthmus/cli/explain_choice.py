"""A name that stands for several targets, explained: which one would be taken for this request, and why.

Nothing is known here of what runs: nobody is left alone, and it is the first request that comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isthmus.bridge.capabilities import Dialect
from isthmus.bridge.choose import Choice, Occasion, Option, estimate, order_options, pick
from isthmus.bridge.parse import conversation_of
from isthmus.bridge.resolve import ANY_NAME, split_reference
from isthmus.bridge.types.managed import Managed
from isthmus.bridge.types.plan import Plan, Target
from isthmus.cli.explain_plan import Asked, Explained
from isthmus.cli.explain_plan import explain as explain_request
from isthmus.cli.heard import load_known, recall_lessons
from isthmus.config.schema import Config, ProviderConfig
from isthmus.errors import RequestRefused
from isthmus.providers import Provider
from isthmus.providers.dialects import capabilities_for


def choice_named(asked: Asked, model: str, config: Config) -> str | None:
    """The choice that is meant, by itself or through an alias."""
    models = config.models
    named = model or str(asked.request.body.get("model") or "") or models.default
    if named in models.choices or "/" in named:
        return named if named in models.choices else None
    meant = models.aliases.get(named) or models.aliases.get(ANY_NAME, "")
    return meant if meant in models.choices else None


def explain_choice(
    asked: Asked, name: str, config: Config, folders: Sequence[Path], *, strict: bool, managed: Managed
) -> tuple[Explained, Provider]:
    said, body = config.models.choices[name], asked.request.body
    choice = Choice(tuple(said.targets), tuple(said.weights), said.by)
    sides = [pair for pair in map(split_reference, choice.targets) if pair is not None]
    known = {provider: load_known(provider, folders, config) for provider, _ in sides}
    targets = [Target(at, model, capabilities_for(known[at][0], model, _dialect(known[at]))) for at, model in sides]
    spends, makes = estimate(body, [*asked.history, *asked.request.items])
    sticky = str(body.get("prompt_cache_key") or conversation_of(body) or "")
    occasion = Occasion(sticky=sticky, spends=spends, makes=makes)
    ordered = order_options(name, choice, [Option(target) for target in targets], occasion)

    def explain(target: Target) -> Explained:
        provider, _ = known[target.provider]
        return explain_request(
            asked,
            provider,
            target.model,
            strict=strict,
            name=target.provider,
            dialect=_dialect(known[target.provider]),
            lessons=recall_lessons(config, target.provider, provider, target.model),
            managed=managed,
            choice=target.choice,
        )

    def make(target: Target) -> Explained:
        explained = explain(target)
        if explained.refusal is not None:
            raise explained.refusal
        return explained

    try:
        taken, explained = pick(ordered, make, _plan_of)
    except RequestRefused:
        taken, explained = ordered[0], explain(ordered[0])
    return explained, known[taken.provider][0]


def _plan_of(explained: Explained) -> Plan:
    assert explained.plan is not None
    return explained.plan


def _dialect(known: tuple[Provider, ProviderConfig | None]) -> Dialect | None:
    return None if known[1] is None else known[1].dialect
