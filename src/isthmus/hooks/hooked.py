"""One response and the hooks that look after it: asked in their order, each with what the one before it left.

In: a request, a body or a response. Out: the same, or another one, with a decision for each place that was changed; or
a failure that names the hook. Worth knowing: what a hook is given is a copy, and what it gives back is copied again, so
that nobody holds on to what is planned, sent or kept.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.limits import DEFAULT_LIMITS, HEAVY_TEXT, RequestLimits
from isthmus.errors import HOOK_FAILED, REFUSED_BY_HOOK, IsthmusError, RequestRefused
from isthmus.hooks import Context, Refuse, Sending, Stage
from isthmus.hooks.bounded import Bounded, TooSlow
from isthmus.hooks.changes import find_changes
from isthmus.hooks.guard import Broken, check_reply, check_request, check_sending
from isthmus.log import tell
from isthmus.protocol.json import JsonObject

log = logging.getLogger("isthmus.hooks")

_WHEN: Final[dict[Stage, str]] = {
    "before_plan": "before the plan was made",
    "before_send": "before it was sent",
    "after_reply": "before it was told",
}
_FRAMES: Final = 4
"""Places in a hook's code that are logged of an exception: the innermost ones."""
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode

Changes = tuple[JsonObject | None, tuple[CompatibilityDecision, ...]]
"""What is used from now on, `None`: what there was; and what is to be told of it."""
Check = Callable[[JsonObject, JsonObject], JsonObject]
_T = TypeVar("_T")


class Aside(Protocol):
    """Where what is large is worked on."""

    async def do(self, work: Callable[[], _T], *, heavy: bool) -> _T: ...


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    """As the configuration spells it."""
    hook: object

    def method(self, stage: Stage) -> Callable[..., Any] | None:
        found: Callable[..., Any] | None = getattr(self.hook, stage, None)
        return found


@dataclass(frozen=True, slots=True)
class Hooks:
    """All of them, for as long as the gateway runs."""

    hooks: Sequence[Named]
    bounded: Bounded
    on_failure: Literal["refuse", "skip"] = "refuse"
    limits: RequestLimits = DEFAULT_LIMITS
    aside: Aside | None = None

    def look_after(self, context: Context) -> Hooked:
        return Hooked(self, context)


@dataclass(slots=True)
class Hooked:
    all: Hooks
    context: Context
    _states: dict[str, dict[str, Any]] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)
    _attempt: int = 1

    @property
    def holds(self) -> bool:
        """Whether nothing of the answer is told before it was looked at: it may yet become another one."""
        looking = [named.hook for named in self.all.hooks if named.method("after_reply") is not None]
        return any(getattr(hook, "holds_streams", False) for hook in looking) or (
            bool(looking) and not self.context.streamed
        )

    async def before_plan(self, body: JsonObject, read: Callable[[JsonObject], object]) -> Changes:
        """`read` is what reads the request, should it be another one: what it refuses, no hook may make of it."""
        return await self._ask("before_plan", body, (), partial(check_request, read))

    async def before_send(self, body: JsonObject, sending: Sending) -> Changes:
        check = partial(check_sending, self.all.limits)
        if sending.attempt != self._attempt:  # another way to answer is told of anew
            self._attempt, self._told = sending.attempt, set()
        return await self._ask("before_send", body, (sending,), check, "upstream")

    async def after_reply(self, response: JsonObject) -> Changes:
        """Where nothing is held back, what is changed is not: it was told already, and the decision says so."""
        return await self._ask("after_reply", response, (), check_reply)

    async def _ask(
        self,
        stage: Stage,
        value: JsonObject,
        facts: tuple[object, ...],
        check: Check,
        path: str = "",
    ) -> Changes:
        current: JsonObject | None = None
        decisions: list[CompatibilityDecision] = []
        for named in self.all.hooks:
            method = named.method(stage)
            if method is None:
                continue
            raw = _encode(value)
            heavy = len(raw) > HEAVY_TEXT
            given = await self._do(partial(_decode, raw), heavy)
            context = replace(self.context, state=self._states.setdefault(named.name, {}))
            try:
                answer = await self.all.bounded.call(method, given, *facts, context)
                if isinstance(answer, Refuse):
                    raise answer
                found = given if answer is None else answer
                after, places = await self._do(partial(_compare, raw, found, check, path), heavy)
            except Refuse as refusal:
                raise self._refused(named, stage, refusal) from refusal
            except Exception as error:
                decisions += self._failed(named, stage, error)
                continue
            if not places:
                continue
            late = stage == "after_reply" and not self.holds
            decisions += self._tell(named, stage, places, late=late)
            if not late:
                value = current = after
        return current, tuple(decisions)

    async def _do(self, work: Callable[[], _T], heavy: bool) -> _T:
        aside = self.all.aside
        return work() if aside is None else await aside.do(work, heavy=heavy)

    def _refused(self, named: Named, stage: Stage, refusal: Refuse) -> RequestRefused:
        tell(log, "info", "hook.refused", id=self.context.id, hook=named.name, stage=stage, param=refusal.param)
        metadata = {"hook": named.name, "stage": stage}
        return RequestRefused(refusal.message, code=REFUSED_BY_HOOK, param=refusal.param, metadata=metadata)

    def _failed(self, named: Named, stage: Stage, error: Exception) -> list[CompatibilityDecision]:
        """Raises, unless the operator would rather go on without the hook. What the exception says may be content."""
        match error:
            case TooSlow():
                what = f"took longer than `hooks.timeout` ({self.all.bounded.timeout:g} s)"
            case Broken():
                what = f"cannot be followed: {error}"
            case _:
                what = f"failed ({type(error).__name__})"
        skipped = self.all.on_failure == "skip"
        facts: dict[str, Any] = {"id": self.context.id, "hook": named.name, "stage": stage, "reason": what}
        tell(log, "warning" if skipped else "error", "hook.failed", **facts, at=_way(error), skipped=skipped)
        if not skipped:
            words = f"the hook `{named.name}` of this gateway {what} in `{stage}`; its operator's log says more"
            raise IsthmusError(words, code=HOOK_FAILED, metadata={"hook": named.name, "stage": stage}) from error
        words = f"the operator's hook `{named.name}` {what}; it was skipped"
        return [_decide(_PLACES[stage], words, "bridge.hook.skipped", named, stage)]

    def _tell(self, named: Named, stage: Stage, places: list[str], *, late: bool) -> list[CompatibilityDecision]:
        code, words = "bridge.hook.changed", f"the operator's hook `{named.name}` changed it {_WHEN[stage]}"
        if late:
            code = "bridge.hook.late"
            words = f"the operator's hook `{named.name}` would change it, and it was told already; it stayed"
        tell(log, "info", code.removeprefix("bridge."), id=self.context.id, hook=named.name, stage=stage, paths=places)
        new = [place for place in places if (words, place) not in self._told]  # each asking changes the same ones
        self._told |= {(words, place) for place in new}
        return [_decide(place, words, code, named, stage) for place in new]


def _compare(raw: bytes, found: Any, check: Check, path: str) -> tuple[JsonObject, list[str]]:
    """What the hook gave back, as a copy of ours, and where it differs. Raises `Broken`."""
    changed = _encode(found)
    if changed == raw:
        return {}, []
    before, after = _decode(raw), _decode(changed)
    if not isinstance(after, dict):
        raise Broken(f"it gave back a {type(found).__name__}, and no object")
    places = find_changes(before, after, path)
    return check(before, after) if places else {}, places


_PLACES: Final[dict[Stage, str]] = {"before_plan": "input", "before_send": "upstream", "after_reply": "output"}


def _decide(path: str, words: str, code: str, named: Named, stage: Stage) -> CompatibilityDecision:
    """Harmless in strict mode: it is what the operator wants, and no client could do anything about it."""
    metadata = {"hook": named.name, "stage": stage}
    return CompatibilityDecision(path, "degraded", words, code=code, metadata=metadata, harmless=True)


def _way(error: BaseException) -> str | None:
    """Where it rose, without a word of what it says: `hooks.py:14 in before_send`."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if "/isthmus/hooks/" not in frame.filename.replace("\\", "/")]
    told = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} in {frame.name}" for frame in theirs[-_FRAMES:]]
    return " > ".join(told) or None
