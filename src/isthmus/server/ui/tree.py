"""A conversation as a tree: a response that was continued twice has two ways on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from isthmus.ports.traced import TraceSummary


class Leaf(NamedTuple):
    turn: TraceSummary
    depth: int
    """How many branches lie before it: a turn that goes straight on stays where it is."""


def grow(turns: Sequence[TraceSummary]) -> list[Leaf]:
    """Each turn once, behind the one that it continues, branches one after the other."""
    known = {turn.response for turn in turns if turn.response}
    after: dict[str, list[TraceSummary]] = {}
    for turn in turns:
        after.setdefault(turn.previous if turn.previous in known else "", []).append(turn)
    grown: list[Leaf] = []
    waiting = [Leaf(turn, 0) for turn in reversed(after.get("", []))]
    while waiting:
        leaf = waiting.pop()
        grown.append(leaf)
        following = after.pop(leaf.turn.response, []) if leaf.turn.response else []
        deeper = leaf.depth + (len(following) > 1)
        waiting += [Leaf(turn, deeper) for turn in reversed(following)]
    return grown
