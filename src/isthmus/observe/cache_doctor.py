"""Why a prompt was not found in the provider's cache: each turn of a conversation beside the one before it.

In: `Prompt`s of one conversation in the order of time, each with the parts of its prompt, what the provider reported
and its prices. Out: an `Examined`: how much of the prompt was byte-identical, the first difference if there is one,
what was cached, what that cost and what it would have cost with all of the earlier prompt found again. Pure: no clock,
no IO.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from isthmus.bridge.capabilities import Cost
from isthmus.observe.diagnosis import Break, Change, Diagnosis, Examined, Verdict
from isthmus.observe.prefix import ORDER, Part, Section, read_prompt
from isthmus.ports.traced import Trace

_PARENTS: Final = 32
"""Earlier turns among which the one is looked for that a turn goes on from: an agent's helpers share its session."""
_HALF: Final = 0.5
"""Which part of what was said must be said again where the system prompt is another one."""
_NEARLY: Final = 0.8
_BLOCK: Final = 1024
"""Tokens: providers cache in blocks, OpenAI and Anthropic from this many on (checked on 2026-11-17)."""
_ELSEWHERE: Final = "a cache belongs to one model of one provider: another one begins anew"
_SEVERAL: Final = "the model was asked several times for one answer: tokens are sums, and tell nothing of one prompt"
_LONG: Final = 300.0
"""Seconds after which most caches have let go of what nobody asked for (OpenAI 5 to 10 minutes, Anthropic 5)."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What one request told a model."""

    id: str
    at: float
    provider: str
    model: str
    parts: tuple[Part, ...]
    """When it was first asked."""
    grown: tuple[Part, ...] | None = None
    """When it was last asked, where one request asked it several times (tools that run here, a format not kept)."""
    input_tokens: int | None = None
    """Of all that were asked together."""
    cached_tokens: int | None = None
    cost: Cost = Cost()
    previous: str = ""
    """The turn that it continues, where the client names it."""

    @property
    def last(self) -> tuple[Part, ...]:
        """What the next turn goes on from."""
        return self.parts if self.grown is None else self.grown


def prompt_of(trace: Trace, cost: Cost = Cost()) -> Prompt | None:  # noqa: B008  # frozen
    """What a traced request told its model, at these prices; `None`: nothing was sent."""
    asked = [call for call in trace.calls if call.body.pieces and call.why != "compaction"]
    calls = [call for call in asked if call.error is None] or asked[-1:]
    if not calls:
        return None
    told, usage = trace.summary, trace.usage
    return Prompt(
        id=told.response or told.id,
        at=told.at,
        provider=calls[-1].provider,
        model=calls[-1].model,
        parts=read_prompt(calls[0].body.pieces),
        grown=read_prompt(calls[-1].body.pieces) if len(calls) > 1 else None,
        input_tokens=None if usage is None else told.input_tokens,
        cached_tokens=None if usage is None else told.cached_tokens,
        cost=cost,
        previous=told.previous,
    )


def examine(prompts: Sequence[Prompt]) -> Examined:
    """Each turn beside the one that it goes on from."""
    turns: list[Diagnosis] = []
    for index, prompt in enumerate(prompts):
        earlier = _earlier(prompt, prompts[max(index - _PARENTS, 0) : index])
        turns.append(_first(prompt) if earlier is None else _diagnose(earlier, prompt))
    return Examined(tuple(turns))


def shared(before: Sequence[Part], after: Sequence[Part]) -> int:
    """How many parts are the same from the beginning on."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one.hash != other.hash or one.section != other.section:
            break
        count += 1
    return count


def find_break(before: Sequence[Part], after: Sequence[Part]) -> Break | None:
    """The first difference; `None`: all of the earlier prompt stands at the beginning of the later one."""
    at = shared(before, after)
    if at == len(before):
        return None
    old, new = before[at], after[at] if at < len(after) else None
    if new is None:
        return _break(old, None, "removed")
    if old.section != new.section:
        # Sections follow one another: the one that is over sooner has lost its rest, or the other has grown.
        came = ORDER.index(new.section) < ORDER.index(old.section)
        return _break(None, new, "added") if came else _break(old, None, "removed")
    comes_later = old.hash in _rest(after, at)
    stood_later = new.hash in _rest(before, at)
    if comes_later and stood_later:
        return _break(old, new, "reordered")
    if comes_later:
        return _break(None, new, "added")
    return _break(old, None, "removed") if stood_later else _break(old, new, "changed")


def _rest(parts: Sequence[Part], at: int) -> set[str]:
    """What stands further on in the same section."""
    return {part.hash for part in islice(parts, at + 1, None) if part.section == parts[at].section}


def _break(old: Part | None, new: Part | None, change: Change) -> Break:
    part = new or old
    assert part is not None
    before, after = old.bytes if old else 0, new.bytes if new else 0
    why = _why(part.section, change, alike=before == after)
    return Break(part.path, part.section, change, part.what, before, after, why)


def _why(section: Section, change: Change, *, alike: bool) -> str:
    if section == "model":
        return _ELSEWHERE
    if section in ("tools", "format"):
        return "it stands before the system prompt and all messages, so none of them is found again: keep it as it was"
    if change == "reordered":
        return "what was said is sent in another order: keep the order of earlier turns"
    if change == "changed" and section == "system":
        clock = "the size is the same, so look for a time, a date or an id in it; " if alike else ""
        return f"{clock}move what changes behind the conversation, or round it to a day"
    if section == "settings":
        return "messages are cached apart for each value of it: keep it for the whole conversation"
    if change == "removed":
        return "what was said before is gone (shortened, compacted or edited): what stood behind it is not found again"
    return "a cache finds only an unchanged beginning: add to the end, and leave earlier messages as they were"


def _earlier(prompt: Prompt, before: Sequence[Prompt]) -> Prompt | None:
    """The turn that it goes on from: as the client says, else the one with most in common, of those the last.

    One with another system prompt that was told other things is no earlier turn: an agent's session holds the prompts
    of its helpers, too, which share its tools and a reminder or two.
    """
    if prompt.previous:
        named = [each for each in before if each.id == prompt.previous]
        if named:
            return named[-1]
    told = _told(prompt.parts)
    system, said = _of(told, "system"), set(_of(told, "messages"))
    related = [
        each
        for each in before
        if _share(_of(each.last, "messages"), said) > _HALF or (system and system == _of(each.last, "system"))
    ]
    at_home = [each for each in related if _home(each) == _home(prompt)] or related
    return max(reversed(at_home), key=lambda each: shared(_told(each.last), told), default=None)


def _told(parts: Sequence[Part]) -> Sequence[Part]:
    return [part for part in parts if part.section != "model"]


def _of(parts: Sequence[Part], section: Section) -> list[str]:
    return [part.hash for part in parts if part.section == section]


def _share(hashes: Sequence[str], within: set[str]) -> float:
    return sum(each in within for each in hashes) / (len(hashes) or 1)


def _home(prompt: Prompt) -> tuple[str, str]:
    return prompt.provider, prompt.model


def _first(prompt: Prompt) -> Diagnosis:
    return Diagnosis(
        id=prompt.id,
        at=prompt.at,
        provider=prompt.provider,
        model=prompt.model,
        verdict="first",
        bytes=_size(prompt.parts),
        input_tokens=prompt.input_tokens,
        cached_tokens=prompt.cached_tokens,
        cost=_cost(prompt, prompt.cached_tokens or 0),
    )


def _diagnose(earlier: Prompt, prompt: Prompt) -> Diagnosis:
    count = shared(earlier.last, prompt.parts)
    broken = find_break(earlier.last, prompt.parts)
    if _home(earlier) != _home(prompt):
        count, broken = 0, _moved(earlier, prompt)
    seconds = prompt.at - earlier.at
    possible = _possible(earlier, prompt)
    verdict = _verdict(broken, prompt.cached_tokens, possible)
    return Diagnosis(
        id=prompt.id,
        at=prompt.at,
        provider=prompt.provider,
        model=prompt.model,
        verdict=verdict,
        against=earlier.id,
        bytes=_size(prompt.parts),
        same_bytes=_size(prompt.parts[:count]),
        earlier_bytes=_size(earlier.last),
        same_parts=count,
        earlier_parts=len(earlier.last),
        broken=broken,
        seconds=seconds,
        input_tokens=prompt.input_tokens,
        cached_tokens=prompt.cached_tokens,
        could_be_cached=possible,
        cost=_cost(prompt, prompt.cached_tokens or 0),
        cost_with_hit=None if possible is None else _cost(prompt, max(possible, prompt.cached_tokens or 0)),
        note=_SEVERAL if prompt.grown or earlier.grown else _note(verdict, possible, seconds),
    )


def _moved(earlier: Prompt, prompt: Prompt) -> Break:
    if earlier.provider == prompt.provider:
        return Break("model", "model", "changed", prompt.model, why=_ELSEWHERE)
    return Break("provider", "model", "changed", prompt.provider, why=_ELSEWHERE)


def _possible(earlier: Prompt, prompt: Prompt) -> int | None:
    """A prompt that became shorter cannot have more of it in the cache than it has. Of several askings only the sum is
    known, and so not what one of them could have found."""
    if earlier.input_tokens is None or prompt.input_tokens is None or earlier.grown or prompt.grown:
        return None
    return min(earlier.input_tokens, prompt.input_tokens)


def _verdict(broken: Break | None, cached: int | None, possible: int | None) -> Verdict:
    if broken is not None:
        return "broken"
    if cached is None or possible is None:
        return "untold"
    found = cached >= min(possible * _NEARLY, possible - _BLOCK) and cached > 0
    return "hit" if found else "missed"


def _note(verdict: Verdict, possible: int | None, seconds: float) -> str:
    """What may be behind a miss that is not ours."""
    if verdict != "missed":
        return ""
    if possible is not None and possible < _BLOCK:
        return f"most caches take prompts of {_BLOCK:,} tokens and more"
    if seconds > _LONG:
        return f"{seconds / 60:.0f} minutes after the turn before: the provider may have let go of it"
    return "nothing changed on our side: the provider found less, or does not say what it found"


def _cost(prompt: Prompt, cached: int) -> float | None:
    if prompt.input_tokens is None:
        return None
    return prompt.cost.price(prompt.input_tokens, 0, min(cached, prompt.input_tokens))


def _size(parts: Sequence[Part]) -> int:
    return sum(part.bytes for part in parts)
