"""One request and the ways to answer it: each a plan for its own target, made when it is needed.

Nothing here refers back to what it made: a request that is over is forgotten at once, with its megabytes, and does not
wait for the collector of garbage.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from isthmus.bridge.assemble.speech import Seal
from isthmus.bridge.choose import tell_choice
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.envelope import seal
from isthmus.bridge.fit import fit_request
from isthmus.bridge.history.locate import locate_content
from isthmus.bridge.lessons import learn, leave_out, tell_lessons
from isthmus.bridge.parse import Request
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.managed import NOTHING_MANAGED, Managed
from isthmus.bridge.types.plan import Host, Lesson, Plan
from isthmus.conduct.attempt import Attempt
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.gateway.directory import Candidate
from isthmus.gateway.runs import unexpected
from isthmus.gateway.settings import Settings
from isthmus.log import Level, tell
from isthmus.protocol.json import JsonObject

log = logging.getLogger("isthmus.gateway")

HONOURED: Final = frozenset({"metadata", "store", "background", "previous_response_id", "conversation"})
"""Request parameters that the gateway takes care of itself."""


class Attempts(msgspec.Struct, frozen=True):
    settings: Settings
    caller: Caller
    request: Request
    history: Sequence[JsonObject]
    strict: bool | None = None
    noted: Sequence[CompatibilityDecision] = ()
    id: str = ""
    began: float = 0.0
    remembers: bool = False
    managed: Managed = NOTHING_MANAGED

    def make(self, candidate: Candidate, dropped: frozenset[str] = frozenset()) -> Attempt:
        plan = self.plan(candidate, dropped)
        turn = Turn(plan, response_id=self.id, now=int(self.began), seal=self._sealer())

        def without(lesson: Lesson) -> Attempt:
            taught = replace(candidate, target=learn(candidate.target, [lesson]))
            return self.make(taught, dropped | {lesson.parameter})

        def locate(kind: str) -> str | None:
            return locate_content(kind, self.request.items, self.history)

        return Attempt(plan, turn, candidate.served.backend, without, locate)

    def others(self, candidates: Iterable[Candidate]) -> Iterator[Attempt]:
        """Those that can be planned."""
        for other in candidates:
            try:
                yield self.make(other)
            except Exception as error:  # what cannot be planned is no way; those behind it may be
                target = other.target
                level: Level = "warning" if isinstance(error, RequestRefused) else "error"
                facts: dict[str, Any] = {"provider": target.provider, "model": target.model, "reason": error}
                tell(log, level, "fallback.refused", **facts, trace=unexpected(error))

    def plan(self, candidate: Candidate, dropped: frozenset[str] = frozenset()) -> Plan:
        """`dropped`: fields that the server refused a moment ago; this asking goes without them altogether."""
        settings, target, noted = self.settings, candidate.target, self.noted
        if target.lessons:
            noted = (*noted, *tell_lessons(self.request.body, target))
        if target.choice is not None:
            noted = (*noted, *tell_choice(target))
        strictly = settings.strict if self.strict is None else self.strict
        host = Host(
            HONOURED, strictly, settings.repair_budget, settings.bounds, self.remembers, self.managed, settings.tools
        )
        return fit_request(
            self.request,
            leave_out(target, dropped),
            host,
            history=self.history,
            envelope_key=settings.envelope_key,
            owner=self.caller.owner,
            noted=noted,
            client=self.caller.client,
        )

    def _sealer(self) -> Seal | None:
        key = self.settings.envelope_key
        if key is None:
            return None
        return lambda sealed, kind="reasoning": seal(sealed, key, owner=self.caller.owner, kind=kind)
