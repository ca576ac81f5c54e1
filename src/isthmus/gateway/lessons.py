"""What the servers taught us, between the store and the plan: looked up before planning, kept once it is proven.

Several processes share one store. A look at it is remembered for a moment, so that a busy model does not cost a read
for each request; a process that does not know a lesson yet would only learn it itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from isthmus.bridge.lessons import FACTS, config_lines, learn
from isthmus.bridge.types.plan import Lesson, Target
from isthmus.errors import IsthmusError
from isthmus.log import tell
from isthmus.ports import Store
from isthmus.providers import Provider

log = logging.getLogger("isthmus.gateway")

_REMEMBERED: Final = 256
"""How many models are remembered: their names come from clients, so they must not pile up."""
_LONGEST_NAME: Final = 256


class Lessons:
    def __init__(self, store: Store, *, keep: float, now: Callable[[], float], fresh: float = 1.0) -> None:
        """`keep`: seconds until a lesson is forgotten; `fresh`: seconds until the store is asked again."""
        self._store = store
        self._keep = keep
        self._now = now
        self._fresh = fresh
        self._looked: dict[tuple[str, str], tuple[float, list[Lesson]]] = {}

    async def taught(self, target: Target, provider: Provider | None = None) -> Target:
        """The target with what is known of its model. A store that does not answer is no reason to refuse. What the
        user states about the `provider` himself outranks a lesson."""
        if not target.capabilities.assumed or not self._keep:
            return target
        now, key = self._now(), (target.provider, target.model)
        looked = self._looked.get(key)
        if looked is None or not 0 <= now - looked[0] < self._fresh:
            try:
                found = await self._store.lessons(*key, since=now - self._keep)
            except IsthmusError as error:
                tell(log, "error", "lessons.not_read", provider=key[0], model=key[1], reason=str(error))
                return target
            if len(self._looked) >= _REMEMBERED:
                self._looked.clear()
            looked = self._looked[key] = (now, found)
        if not looked[1]:
            return target
        young = [lesson for lesson in looked[1] if lesson.learned_at >= now - self._keep]
        return learn(target, young if provider is None else believed(young, provider))

    async def keep(self, id: str, lesson: Lesson, target: Target) -> None:
        """A server took the request without the field: that is proof. `target` knows the lesson already."""
        section, fact = config_lines(lesson, target)
        tell(
            log,
            "warning",
            "lesson.learned",
            id=id,
            provider=lesson.provider,
            model=lesson.model,
            parameter=lesson.parameter,
            value=lesson.value or "-",
            keep=self._keep,
            section=section,
            fact=fact,
        )
        if not self._keep or len(lesson.model) > _LONGEST_NAME:
            return
        self._looked.pop((lesson.provider, lesson.model), None)
        lesson = replace(lesson, learned_at=self._now())
        try:
            await self._store.learn(lesson, since=lesson.learned_at - self._keep)
        except IsthmusError as error:
            tell(log, "error", "lesson.not_kept", id=id, reason=str(error))


def believed(lessons: Iterable[Lesson], provider: Provider) -> list[Lesson]:
    """Those about facts that the user does not state himself."""
    return [each for each in lessons if not provider.states(each.model, FACTS.get(each.parameter, ("", "")))]
