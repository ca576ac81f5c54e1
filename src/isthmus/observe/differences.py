"""Two plans of one request, compared: which decisions came, went or changed, and where the two bodies differ.

In: decisions and bodies of both sides, as a trace has them. Out: `PlanDifferences`. Pure, and free of any terminal: the
command line draws it, and so may a page. Lists are aligned before they are compared, so that a message which one
provider wants in front is one difference and not one for every message behind it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Final, Literal

import msgspec

from isthmus.ports.traced import TracedDecision

Kind = Literal["added", "removed", "changed"]

MOST: Final = 200
"""Differences between two bodies that are told; of further ones only that there are more."""
_ALIGNED: Final = 1_000_000
"""Pairs of elements that are looked at to align two lists; longer ones are compared place by place."""
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class Difference(msgspec.Struct, frozen=True):
    """One place where two JSON values differ. What is gone from a list is named by its place before; every other place
    is that after."""

    path: str
    kind: Kind
    before: Any = None
    after: Any = None


class DecisionChange(msgspec.Struct, frozen=True):
    """One decision that only one side made, or that they made differently."""

    path: str
    kind: Kind
    before: TracedDecision | None = None
    after: TracedDecision | None = None


class PlanDifferences(msgspec.Struct, frozen=True):
    decisions: tuple[DecisionChange, ...]
    same: int
    """Decisions on which both agree."""
    body: tuple[Difference, ...] | None
    """`None`: one of the two bodies is not known."""
    more: bool = False
    """Whether there are more differences of the bodies than are told."""

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


def compare_plans(
    before: Sequence[TracedDecision],
    after: Sequence[TracedDecision],
    *,
    bodies: tuple[Any, Any] | None = None,
) -> PlanDifferences:
    changes, same = _compare_decisions(before, after)
    if bodies is None:
        return PlanDifferences(changes, same, None)
    found = tuple(islice(compare_json(*bodies), MOST + 1))
    return PlanDifferences(changes, same, found[:MOST], len(found) > MOST)


def first_words(before: str, after: str, around: int = 20) -> tuple[str, str]:
    """Where two texts part: a few characters of each, from a little before it."""
    at = next((place for place, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None)
    start = max((min(len(before), len(after)) if at is None else at) - around, 0)
    return _excerpt(before, start, 2 * around), _excerpt(after, start, 2 * around)


def _excerpt(text: str, start: int, length: int) -> str:
    end = start + length
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def compare_json(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Every place where they differ, in the order of the second. The order of fields says nothing."""
    match before, after:
        case dict(), dict():
            yield from _compare_objects(before, after, path)
        case list(), list():
            yield from _compare_lists(before, after, path)
        case _ if _encode(before) != _encode(after):  # `True == 1 == 1.0` for Python, for nobody else
            yield Difference(path, "changed", before, after)


def _compare_objects(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Difference]:
    for name, value in before.items():
        if name not in after:
            yield Difference(_below(path, name), "removed", before=value)
    for name, value in after.items():
        if name in before:
            yield from compare_json(before[name], value, _below(path, name))
        else:
            yield Difference(_below(path, name), "added", after=value)


def _compare_lists(before: Sequence[Any], after: Sequence[Any], path: str) -> Iterator[Difference]:
    for kind, old, new in _align(before, after):
        if kind == "removed":
            yield Difference(f"{path}[{old}]", kind, before=before[old])
        elif kind == "added":
            yield Difference(f"{path}[{new}]", kind, after=after[new])
        else:
            yield from compare_json(before[old], after[new], f"{path}[{new}]")


def _align(before: Sequence[Any], after: Sequence[Any]) -> Iterator[tuple[Kind, int, int]]:
    """What became of the elements that do not stand in both: (kind, place before, place after). Those of one kind (the
    user's messages, the tools of one name) belong together, whatever they say."""
    one, other = [_encode(each) for each in before], [_encode(each) for each in after]
    start = _alike(one, other)
    end = _alike(one[start:][::-1], other[start:][::-1])
    for a, a_end, b, b_end in _unlike(one, other, (start, len(one) - end, start, len(other) - end)):
        kinds = [_kind(each) for each in before[a:a_end]], [_kind(each) for each in after[b:b_end]]
        last, then = a, b
        behind = (a_end - a, 0, b_end - b, 0)  # what is left when the last stretch is over
        for c, c_end, d, d_end in [*_unlike(*kinds, (0, a_end - a, 0, b_end - b)), behind]:
            same = a + c - last  # of one kind on both sides
            yield from (("changed", last + step, then + step) for step in range(same))
            both = max(min(c_end - c, d_end - d), 0)
            yield from (("changed", a + c + step, b + d + step) for step in range(both))
            yield from (("removed", place, -1) for place in range(a + c + both, a + c_end))
            yield from (("added", -1, place) for place in range(b + d + both, b + d_end))
            last, then = a + c_end, b + d_end


def _unlike(
    before: Sequence[Any], after: Sequence[Any], within: tuple[int, int, int, int]
) -> Iterator[tuple[int, int, int, int]]:
    """The stretches that are not the same; place by place where they are too long to be aligned."""
    a, a_end, b, b_end = within
    if (a_end - a) * (b_end - b) > _ALIGNED:
        yield within
        return
    matcher = SequenceMatcher(None, before[a:a_end], after[b:b_end], autojunk=False)
    for tag, c, c_end, d, d_end in matcher.get_opcodes():
        if tag != "equal":
            yield a + c, a + c_end, b + d, b + d_end


def _kind(value: Any) -> tuple[str, ...]:
    if not isinstance(value, dict):
        return (type(value).__name__,)
    function = value.get("function")
    named = function if isinstance(function, dict) else value
    return tuple(
        str(each) for each in (value.get("role"), named.get("name"), None if "role" in value else value.get("type"))
    )


def _alike(before: Sequence[bytes], after: Sequence[bytes]) -> int:
    """How many elements are the same from the beginning on."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return count


def _compare_decisions(
    before: Sequence[TracedDecision], after: Sequence[TracedDecision]
) -> tuple[tuple[DecisionChange, ...], int]:
    """By path; several about one path in their order."""
    known: defaultdict[str, deque[TracedDecision]] = defaultdict(deque)
    for decision in before:
        known[decision.path].append(decision)
    changes: list[DecisionChange] = []
    same = 0
    for decision in after:
        if not known[decision.path]:
            changes.append(DecisionChange(decision.path, "added", after=decision))
            continue
        old = known[decision.path].popleft()
        if _says_the_same(old, decision):
            same += 1
        else:
            changes.append(DecisionChange(decision.path, "changed", old, decision))
    changes += [DecisionChange(path, "removed", before=decision) for path, left in known.items() for decision in left]
    return tuple(changes), same


def _says_the_same(one: TracedDecision, other: TracedDecision) -> bool:
    """Of what is plainly supported the reason does not matter: each provider has its own words for it."""
    if one.action != other.action or one.sends != other.sends or _encode(one.value) != _encode(other.value):
        return False
    return one.action == "supported" or one.reason == other.reason


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
