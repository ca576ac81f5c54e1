"""Which model answers: names from clients become targets with their backend."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.bridge.choose import Choice
from isthmus.bridge.resolve import ANY_NAME, ModelRef, resolve_fallbacks, resolve_model, split_reference
from isthmus.bridge.types.plan import Target
from isthmus.ports import Backend, Behalf, Drawer, Embedder
from isthmus.providers import Provider
from isthmus.providers.catalog import LISTED, KnownModel, Offered, offered_models
from isthmus.providers.dialects import capabilities_for
from isthmus.providers.word.told import Told

_REMEMBERED: Final = 256
"""How many names are remembered with what they led to: clients choose them, and each is short (`MAX_MODEL`)."""


class Asking(Protocol):
    """How a server is asked about its own models."""

    own: bool
    """Whether it runs on this machine."""
    place: str
    """Which server it is: another one has another word."""

    async def ask(self) -> Told: ...


@dataclass(frozen=True, slots=True)
class Load:
    """How many requests to a provider are on their way, how many wait for a connection, and how many of its places are
    left alone."""

    sent: int = 0
    waiting: int = 0
    resting: int = 0


@dataclass(slots=True)
class Served:
    """One configured provider: its facts, and the way to it. The facts change when its server is heard; whoever has
    begun to plan goes on with those that it has."""

    name: str
    provider: Provider
    backend: Backend
    total_timeout: float | None = None
    list_models: Callable[[], Awaitable[Sequence[KnownModel]]] | None = None
    """How the provider tells its models itself; `None`: its file names them."""
    listed: int = LISTED
    """How many models are shown of a provider without a file."""
    asking: Asking | None = None
    embedder: Embedder | None = None
    """The way to its vectors, where it makes some."""
    drawer: Drawer | None = None
    """The way to its images, likewise."""
    load: Callable[[], Load] = lambda: Load()
    resting: Callable[[Behalf], bool] = lambda _: False
    """Whether nobody of it would be asked for them now: all its places are left alone for a while."""

    def hear(self, told: Told) -> None:
        """What its server says counts from the next request on."""
        self.provider = self.provider.hear(told)

    async def models(self) -> Sequence[KnownModel]:
        """The models to show in a list."""
        return [offered.model for offered in await self.offered()]

    async def offered(self) -> Sequence[Offered]:
        """The same, each with whoever names it."""
        told = await self.list_models() if self.list_models is not None else ()
        if told:
            return [Offered(model, "program") for model in told]
        return offered_models(self.provider, listed=self.listed)

    def capabilities(self, model: str) -> ProviderCapabilities:
        return capabilities_for(self.provider, model)


class Candidate(msgspec.Struct, frozen=True):
    """A target that could answer a request."""

    target: Target
    served: Served


@dataclass(frozen=True, slots=True)
class Directory:
    """All providers, in their order, with the names that lead to them."""

    served: Mapping[str, Served]
    default: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    fallbacks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    choices: Mapping[str, Choice] = field(default_factory=dict)
    """Names that stand for several targets."""
    unserved: Callable[[str], str] = lambda _: ""
    """What to do to be served by a provider that is known and not configured."""
    _found: dict[str | None, tuple[Candidate, Provider]] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )
    """What names led to, with the facts of that time: the same few are asked for all the time."""

    def find(self, name: str | None) -> Candidate:
        """The model that a request asks for, of a choice its first one; an unknown one is refused with what to write
        instead."""
        known = self._found.get(name)
        if known is not None:
            candidate, facts = known
            if candidate.served.provider is facts and self.served.get(candidate.target.provider) is candidate.served:
                return candidate  # its server was not heard since
        names = self._names() if self.choices else self.aliases
        candidate = self._candidate(resolve_model(name, names, self.default, self.served, self.unserved))
        if len(self._found) >= _REMEMBERED:
            self._found.clear()
        self._found[name] = candidate, candidate.served.provider
        return candidate

    def choice_of(self, name: str | None) -> str | None:
        """The choice that a name means, by itself or through an alias."""
        if not self.choices:
            return None
        asked = (name if name is not None else self.default or "").strip()
        if asked in self.choices or "/" in asked:
            return asked if asked in self.choices else None
        meant = self.aliases.get(asked) or self.aliases.get(ANY_NAME, "")
        return meant if meant in self.choices else None

    def options(self, choice: str, name: str | None) -> list[Candidate]:
        """Its targets; `name` is what was asked for."""
        asked = (name if name is not None else self.default or "").strip() or choice
        alias = asked if asked in self.choices or asked in self.aliases else choice
        sides = [split_reference(each) for each in self.choices[choice].targets]
        return [self._candidate(ModelRef(*each, alias)) for each in sides if each is not None]

    def _names(self) -> dict[str, str]:
        first = {name: choice.targets[0] for name, choice in self.choices.items()}
        return {**first, **{alias: first.get(target, target) for alias, target in self.aliases.items()}}

    @property
    def meanings(self) -> dict[str, str]:
        """Each name of the user's own, and what it stands for."""
        several = {name: " or ".join(choice.targets) for name, choice in self.choices.items()}
        return {**self.aliases, **several}

    def spelled(self, name: str | None) -> str:
        """The name that a request goes by: without one, that of the default."""
        return name or self.default or ""

    def unprefixed(self, name: str, prefix: str) -> str:
        """The name that stands behind a prefix, where that is one of ours, and the whole is none."""
        rest = name.removeprefix(prefix)
        sides = split_reference(rest)
        ours = rest in self.aliases or rest in self.choices or (sides is not None and sides[0] in self.served)
        return rest if rest != name and name not in self.aliases and ours else name

    def after(self, first: Candidate) -> list[Candidate]:
        """The models to try when it fails before it has said anything."""
        if not self.fallbacks:
            return []
        target = first.target
        ref = ModelRef(target.provider, target.model, target.alias)
        return [self._candidate(other) for other in resolve_fallbacks(ref, self.fallbacks, self.served)]

    def _candidate(self, ref: ModelRef) -> Candidate:
        served = self.served[ref.provider]
        target = Target(ref.provider, ref.model, served.capabilities(ref.model), ref.alias)
        return Candidate(target, served)
