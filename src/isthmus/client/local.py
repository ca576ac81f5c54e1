"""A provider in this process: requests are planned and answers assembled right here, no server in between.

In: a Responses request. Out: Responses events. It is the gateway's own machine (`plan_request`, `Turn`), carried out
for one caller who holds the conversation: nothing is stored.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from isthmus.bridge.bounds import DEFAULT_BOUNDS, Bounds
from isthmus.bridge.capabilities import Cost, ProviderCapabilities
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.envelope import Kind, Sealed, seal
from isthmus.bridge.fit import fit_request
from isthmus.bridge.history.locate import locate_content
from isthmus.bridge.lessons import learn, leave_out, tell_lessons
from isthmus.bridge.limits import OWN_LIMITS, RequestLimits
from isthmus.bridge.parse import Request, parse_request
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.managed import NOTHING_MANAGED, Managed
from isthmus.bridge.types.plan import Host, Lesson, Target
from isthmus.client.line import Batch, ModelInfo
from isthmus.conduct.attempt import Attempt
from isthmus.conduct.hosted import NO_TOOLS, Hosted
from isthmus.conduct.run import Run
from isthmus.errors import IsthmusError
from isthmus.ports import Backend, Checker
from isthmus.protocol.json import JsonObject
from isthmus.providers import Provider
from isthmus.providers.catalog import KnownModel, describe_model, is_known, known_models

if TYPE_CHECKING:  # loaded only where somebody has hooks
    from isthmus.conduct.review import Review
    from isthmus.hooks.hooked import Hooks

_REMEMBERED: Final = 256
"""Models whose lessons are kept; a forgotten one is learned again."""
ENVELOPE_KEY: Final = b"isthmus.client: the conversation belongs to the caller"
"""Vendor state travels inside the caller's own messages, which nobody but the caller can change: the signature
only has to be the same in every process, so that a saved conversation can be continued."""


class LocalLine:
    """One profile of one provider."""

    def __init__(
        self,
        name: str,
        provider: Provider,
        backend: Backend,
        *,
        checker: Checker,
        capabilities: Callable[[str], ProviderCapabilities] | None = None,
        list_models: Callable[[], Awaitable[Sequence[KnownModel]]] | None = None,
        credential: str = "",
        strict: bool = False,
        repair_budget: int = 1,
        bounds: Bounds = DEFAULT_BOUNDS,
        keep_lessons: float = 604_800.0,
        limits: RequestLimits = OWN_LIMITS,
        hosted: Hosted = NO_TOOLS,
        hooks: Hooks | None = None,
    ) -> None:
        self._name = name
        self._provider = provider
        self._backend = backend
        self._checker = checker
        self._capabilities = capabilities or provider.capabilities
        self._list_models = list_models
        self._credential = credential
        self._host = Host(frozenset({"store"}), strict, repair_budget, bounds, limits=hosted.limits)
        self._hosted = hosted
        self._hooks = hooks
        self._keep_lessons = keep_lessons
        self._limits = limits
        self._lessons: dict[str, tuple[Lesson, ...]] = {}

    @property
    def provider(self) -> str:
        return self._name

    @property
    def credential(self) -> str:
        return self._credential

    async def events(self, request: JsonObject) -> AsyncGenerator[Batch, None]:
        id, checked = _response_id(request), parse_request(request, self._limits)
        noted: Sequence[CompatibilityDecision] = ()
        review: Review | None = None
        if self._hooks is not None:
            from isthmus.conduct.review import before_plan
            from isthmus.hooks import Context

            context = Context(
                id, model=request["model"], metadata=request.get("metadata") or {}, streamed=bool(request.get("stream"))
            )
            review, checked, noted = await before_plan(self._hooks, context, checked, (), self._limits)
        target = self._target(checked.body.get("model") or request["model"])
        supports = [target.capabilities.tools]
        managed = await self._hosted.managed_for(checked.body.get("tools"), checked.items, "", supports)
        first = self._attempt(checked, target, id, managed=managed, noted=noted)
        await self._checker.admit(first.plan.contract)
        run = Run(
            id,
            first,
            checker=self._checker,
            now=time.time,
            keep=self._remember,
            hosted=self._hosted,
            review=review,
        )
        try:
            async with aclosing(run.events()) as batches:
                async for batch in batches:
                    if run.failure is not None:
                        raise run.failure
                    yield batch
        except IsthmusError as failure:
            raise run.bug or failure from None  # who embeds us sees a bug as it is

    def _attempt(
        self,
        request: Request,
        target: Target,
        id: str,
        dropped: frozenset[str] = frozenset(),
        managed: Managed = NOTHING_MANAGED,
        noted: Sequence[CompatibilityDecision] = (),
    ) -> Attempt:
        host = self._host if managed is NOTHING_MANAGED else replace(self._host, managed=managed)
        told = (*noted, *tell_lessons(request.body, target)) if target.lessons else noted
        plan = fit_request(request, leave_out(target, dropped), host, envelope_key=ENVELOPE_KEY, noted=told)

        def without(lesson: Lesson) -> Attempt:
            return self._attempt(request, learn(target, [lesson]), id, dropped | {lesson.parameter}, managed, noted)

        def locate(kind: str) -> str | None:
            return locate_content(kind, request.items, ())

        turn = Turn(plan, response_id=id, now=int(time.time()), seal=_seal)
        return Attempt(plan, turn, self._backend, without, locate)

    async def _remember(self, id: str, lesson: Lesson, target: Target) -> None:
        """The server took the request without what it had refused: that is proof."""
        if self._keep_lessons:
            if len(self._lessons) >= _REMEMBERED:
                self._lessons.clear()
            self._lessons[target.model] = target.lessons

    def _target(self, model: str) -> Target:
        since = time.time() - self._keep_lessons
        known = [lesson for lesson in self._lessons.get(model, ()) if lesson.learned_at >= since]
        return learn(Target(self._name, model, self._capabilities(model)), known)

    def describe(self, model: str) -> ModelInfo:
        return _info(self._name, describe_model(self._provider, model), is_known(self._provider, model))

    def cost(self, model: str, facts: Mapping[str, Any]) -> Cost | None:
        return self._provider.capabilities(model).cost

    async def models(self) -> list[ModelInfo]:
        listed = await self._list_models() if self._list_models is not None else known_models([self._provider])
        return [_info(self._name, known, True) for known in listed]

    async def aclose(self) -> None:
        await self._backend.aclose()


def _info(name: str, known: KnownModel, listed: bool) -> ModelInfo:
    return ModelInfo(
        name=f"{name}/{known.model}",
        provider=name,
        model=known.model,
        title=known.title,
        context_window=known.context,
        max_output_tokens=known.output,
        input=("text", *known.input),
        reasoning_efforts=known.efforts,
        thinks=known.thinks,
        formats=known.formats,
        cost=known.cost,
        known=listed,
    )


def _seal(sealed: Sealed, kind: Kind = "reasoning") -> str:
    return seal(sealed, ENVELOPE_KEY, kind=kind)


def _response_id(request: JsonObject) -> str:
    """Made from the request: the same question gives the same ids, and so the same bytes in the next turn."""
    return f"resp_{hashlib.sha256(msgspec.json.encode(request)).hexdigest()[:32]}"
