"""Vectors of texts: the model is found and planned for as any other, and asked over the way that all requests take.

In: a checked request. Out: an `Embedding` to be awaited. Worth knowing: there are no fallbacks. Vectors of two models
have nothing to say to each other, so another model's would spoil the index that they are meant for; another key, or
another place of the same provider, is asked as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.embeddings.answer import Embedded
from isthmus.bridge.embeddings.plan import EmbeddingPlan, plan_embeddings
from isthmus.bridge.embeddings.read import EmbeddingRequest, read_embedding_request
from isthmus.conduct.life import Life
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.gateway.directory import Candidate, Directory
from isthmus.gateway.gates import NO_GATES, Gates
from isthmus.gateway.hooked import before_once, before_sending_once
from isthmus.gateway.once import Once
from isthmus.gateway.planned import tell_planned
from isthmus.gateway.runs import Runs
from isthmus.gateway.scopes import permitted
from isthmus.gateway.settings import Settings
from isthmus.gateway.words import Words
from isthmus.hooks.hooked import Hooked, Hooks
from isthmus.ports import Observer, key_for
from isthmus.protocol.json import JsonObject

Embedding = Once[EmbeddingPlan, Embedded]


class Embeddings:
    def __init__(
        self,
        directory: Directory,
        words: Words,
        runs: Runs,
        settings: Settings,
        *,
        now: Callable[[], float],
        new_id: Callable[[str], str],
        observer: Observer | None = None,
        gates: Gates = NO_GATES,
        hooks: Hooks | None = None,
    ) -> None:
        self._directory = directory
        self._words = words
        self._runs = runs
        self._settings = settings
        self._now = now
        self._new_id = new_id
        self._observer = observer
        self._gates = gates
        self._hooks = hooks

    async def create(
        self,
        caller: Caller,
        request: EmbeddingRequest,
        *,
        strict: bool | None = None,
        noted: Sequence[CompatibilityDecision] = (),
    ) -> Embedding:
        """Plan it; nothing is sent before it is awaited."""
        began, id, hooked = self._now(), self._new_id("emb"), None
        if self._hooks is not None:
            hooked, request, noted = await self._before_plan(self._hooks, caller, request, noted, id)
        asked = request.body.get("model")
        candidate = self._directory.find(asked)
        permitted(caller, self._directory.spelled(asked), (candidate,))
        if (choice := self._directory.choice_of(asked)) is not None:
            targets = ", ".join(f"`{each}`" for each in self._directory.choices[choice].targets)
            raise RequestRefused(
                f"`{choice}` stands for several models, and vectors of two have nothing to say to each other; name one "
                f"of them: {targets}",
                code="invalid_model",
                param="model",
            )
        embedder = candidate.served.embedder
        if embedder is None or not candidate.target.capabilities.embeddings.supported:
            raise self._none_here(candidate)
        self._words.used(candidate.target.provider)
        strictly = self._settings.strict if strict is None else strict
        plan = plan_embeddings(request, candidate.target, strict=strictly, noted=noted)
        if hooked is not None:
            plan = await before_sending_once(hooked, plan)
        life = Life(id, caller.owner, self._now, self._observer)
        embedding = Embedding(
            id,
            plan,
            lambda trail: embedder.embed(plan, trail, caller.behalf),
            what="the embeddings",
            usage=_usage,
            life=life,
            runs=self._runs,
            total_timeout=candidate.served.total_timeout,
            gate=self._gates.of_once(caller, str(request.body.get("model") or ""), plan, request.body),
            key=key_for(embedder, caller.behalf),
        )
        tell_planned(self._observer, caller, embedding, request.body, (), 0, began, self._now())
        return embedding

    async def _before_plan(
        self,
        hooks: Hooks,
        caller: Caller,
        request: EmbeddingRequest,
        noted: Sequence[CompatibilityDecision],
        id: str,
    ) -> tuple[Hooked, EmbeddingRequest, Sequence[CompatibilityDecision]]:
        def read(body: JsonObject) -> EmbeddingRequest:
            return read_embedding_request(msgspec.json.encode(body), self._settings.limits)

        hooked, body, decisions = await before_once(hooks, caller, "embeddings", id, request.body, read)
        return hooked, request if body is None else read(body), (*noted, *decisions)

    def _none_here(self, candidate: Candidate) -> RequestRefused:
        target, able = candidate.target, self.models()
        known = ", ".join(f"`{name}`" for name in able[:_NAMED]) or "none; configure one, `isthmus providers list`"
        return RequestRefused(
            f"provider `{target.provider}` has no embeddings that we know of, so `{target.model}` makes none; "
            f"ask one that has: {known}",
            code="embeddings_not_supported",
            param="model",
        )

    def models(self) -> list[str]:
        """What may be asked for: the usual model of each provider that has some, by the name a client uses."""
        found = [
            (name, served.provider.capabilities().embeddings.models)
            for name, served in self._directory.served.items()
            if served.embedder is not None
        ]
        return [f"{name}/{models[0]}" if models else f"{name}/…" for name, models in found]


_NAMED = 12
"""Models that a refusal names."""


def _usage(embedded: Embedded) -> dict[str, int]:
    spent = embedded.tokens or 0
    return {"input_tokens": spent, "output_tokens": 0, "total_tokens": spent}
