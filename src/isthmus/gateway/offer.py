"""Which models a client may name: those that the servers list, asked and remembered, and the names of the user's own.

In: the directory, and what the servers said. Out: `Offered`s by the name that a client uses, the default first. Worth
knowing: who asks for the list is worth a question to every server whose word is old, but not a wait: only what was
never heard, and what runs on this machine, is waited for, and not longer than a moment.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from isthmus.bridge.resolve import ANY_NAME
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.gateway.directory import Candidate, Directory
from isthmus.gateway.scopes import may_use, permitted
from isthmus.gateway.words import Words
from isthmus.providers.catalog import Offered, describe_model, offer_named, offered_embeddings

_PATIENCE: Final = 1.0
"""Seconds that a list of models waits for servers that are being asked: Codex reads it once, when it starts."""


class Offer:
    def __init__(self, directory: Directory, words: Words) -> None:
        self._directory = directory
        self._words = words

    async def models(self, caller: Caller = LOCAL) -> dict[str, Offered]:
        """The default, then aliases, then every model that the servers or their files name; of these what the caller
        may use."""
        listed = await self._models()
        if not caller.grant.models and not caller.team_models:
            return listed
        return {
            name: offered
            for name, offered in listed.items()
            if any(may_use(caller, name, each) for each in self._behind(name))
        }

    def _behind(self, name: str) -> list[Candidate]:
        """All that a name leads to at first: of a choice each of its targets."""
        choice = self._directory.choice_of(name)
        return [self._directory.find(name)] if choice is None else self._directory.options(choice, name)

    async def _models(self) -> dict[str, Offered]:
        await self._words.settled(_PATIENCE)
        directory = self._directory
        known = (directory.default, *directory.aliases, *directory.choices)
        listed = {name: self._configured(name) for name in known if name and name != ANY_NAME}
        for name, served in directory.served.items():
            vectors = offered_embeddings(served.provider) if served.embedder is not None else []
            for offered in (*await served.offered(), *vectors):
                listed.setdefault(f"{name}/{offered.model.model}", offered)
        return listed

    async def describe(self, name: str, caller: Caller = LOCAL) -> Offered:
        """Whatever works as `model`: also what no list shows, unless its server shows one without it."""
        listed = await self._models()
        candidate = self._directory.find(name)
        permitted(caller, name, [each for each in self._behind(name) if may_use(caller, name, each)] or [candidate])
        if name in listed:
            return listed[name]
        target = candidate.target
        found = offer_named(candidate.served.provider, target.model)
        if found is None:
            words = f"no model `{name}`: provider `{target.provider}` does not list `{target.model}`"
            raise RequestRefused(f"{words}; `/v1/models` shows what there is", code="model_not_found", param="model")
        return replace(found, source="configuration") if target.alias is not None else found

    def _configured(self, name: str) -> Offered:
        """What the user names is shown, whatever its server says; but not without a word."""
        candidate = self._directory.find(name)
        provider, model = candidate.served.provider, candidate.target.model
        found = offer_named(provider, model)
        if (choice := self._directory.choice_of(name)) is not None:
            return self._together(choice)
        if found is None:
            return Offered(describe_model(provider, model), "configuration", served=False)
        embeds = model in provider.capabilities().embeddings.models
        return replace(found, source=found.source if candidate.target.alias is None else "configuration", embeds=embeds)

    def _together(self, choice: str) -> Offered:
        """Of several targets what holds for all of them: whoever reads it may be answered by any."""
        found = [each.target for each in self._directory.options(choice, choice)]
        known = [describe_model(self._directory.served[each.provider].provider, each.model) for each in found]
        first = known[0]
        together = replace(
            first,
            context=min((each.context for each in known if each.context is not None), default=None),
            output=min((each.output for each in known if each.output is not None), default=None),
            input=tuple(kind for kind in first.input if all(kind in each.input for each in known)),
            efforts=tuple(effort for effort in first.efforts if all(effort in each.efforts for each in known)),
        )
        return Offered(together, "configuration")
