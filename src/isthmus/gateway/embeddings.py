"""Vectors of texts: the model is found and planned for as any other, and asked over the way that all requests take.

In: a checked request. Out: an `Embedding` to be awaited. Worth knowing: there are no fallbacks. Vectors of two models
have nothing to say to each other, so another model's would spoil the index that they are meant for; another key, or
another place of the same provider, is asked as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from isthmus.bridge.embeddings.answer import Embedded
from isthmus.bridge.embeddings.plan import EmbeddingPlan, plan_embeddings
from isthmus.bridge.embeddings.read import EmbeddingRequest
from isthmus.conduct.life import Life
from isthmus.conduct.run import Stop
from isthmus.errors import IsthmusError, RequestRefused, UpstreamFailed
from isthmus.gateway.caller import Caller
from isthmus.gateway.directory import Candidate, Directory
from isthmus.gateway.planned import tell_planned
from isthmus.gateway.runs import Runs
from isthmus.gateway.settings import Settings
from isthmus.gateway.words import Words
from isthmus.ports import Again, Embedder, Ended, Observer


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
    ) -> None:
        self._directory = directory
        self._words = words
        self._runs = runs
        self._settings = settings
        self._now = now
        self._new_id = new_id
        self._observer = observer

    def create(self, caller: Caller, request: EmbeddingRequest, *, strict: bool | None = None) -> Embedding:
        """Plan it; nothing is sent before it is awaited."""
        began = self._now()
        candidate = self._directory.find(request.body.get("model"))
        embedder = candidate.served.embedder
        if embedder is None or not candidate.target.capabilities.embeddings.supported:
            raise self._none_here(candidate)
        self._words.used(candidate.target.provider)
        strictly = self._settings.strict if strict is None else strict
        plan = plan_embeddings(request, candidate.target, strict=strictly)
        id = self._new_id("emb")
        life = Life(id, caller.owner, self._now, self._observer)
        embedding = Embedding(id, plan, embedder, life, self._runs, candidate.served.total_timeout)
        tell_planned(self._observer, caller, embedding, request.body, (), 0, began, self._now())
        return embedding

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


class Embedding:
    """One request on its way. Await `answer` once."""

    def __init__(
        self, id: str, plan: EmbeddingPlan, embedder: Embedder, life: Life, runs: Runs, total_timeout: float | None
    ) -> None:
        self.id = id
        self.plan = plan
        self.failed = False
        """It never is: what fails has a status."""
        self._embedder = embedder
        self._life = life
        self._runs = runs
        self._total = total_timeout
        self._stop: Stop | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._failure: IsthmusError | None = None
        self._usage: Mapping[str, Any] | None = None

    async def answer(self) -> Embedded:
        """Raises `UpstreamFailed`, and `CancelledError` where its client is gone."""
        self._waiting = asyncio.current_task()
        with self._runs.guest(self):
            try:
                embedded = await self._ask()
            except IsthmusError as failure:
                self._failure = failure
                self._life.failed(self.plan, failure)
                raise
            finally:
                self._waiting = None
                self._life.end(self.ended())
            return embedded

    def stop(self, reason: Stop) -> None:
        """End it now: `left`, its client is gone; anything else is told."""
        if self._stop is None:
            self._stop = reason
            if self._waiting is not None:
                self._waiting.cancel()

    def ended(self) -> Ended:
        """Its life in one fact, as far as it has come."""
        outcome = "completed" if self._usage is not None else "cancelled" if self._stop == "left" else "refused"
        return self._life.whole(self.plan, outcome, self._usage, self._failure)

    async def _ask(self) -> Embedded:
        if self._told_to_stop():
            raise _shutting_down()
        self._life.sent(self.plan, anew=True, body=self.plan.body)
        trail: list[Again] = []
        try:
            async with asyncio.timeout(self._total):
                embedded = await self._embedder.embed(self.plan, trail)
            self._life.accepted()
        except TimeoutError:
            raise UpstreamFailed("the embeddings took longer than allowed", code="upstream_timeout") from None
        except asyncio.CancelledError:
            if not self._told_to_stop():
                raise
            if self._waiting is not None:
                self._waiting.uncancel()
            raise _shutting_down() from None
        finally:
            self._life.asked_again(self.plan, trail)
        spent = embedded.tokens or 0
        self._usage = {"input_tokens": spent, "output_tokens": 0, "total_tokens": spent}
        return embedded

    def _told_to_stop(self) -> bool:
        """By somebody else than its client, who is told."""
        return self._stop not in (None, "left")


def _shutting_down() -> UpstreamFailed:
    return UpstreamFailed("the gateway is shutting down; try again", code="server_is_overloaded")
