"""What the client sent beside what the upstream got, piece by piece, each with the decisions that made it so.

In: a trace. Out: two lists of `Shown`. A piece of the client's request is marked by what was decided about it; a
piece of the upstream's body by where it comes from: a field that a decision names, one of the same name, or our own
addition. At level `metadata` there are sizes; where all was captured, the values, too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from isthmus.observe.sent import content_of
from isthmus.ports.traced import Trace, TracedBody, TracedDecision

LONGEST: Final = 4_000
"""Characters of one value that a page shows."""
LONGEST_WHOLE: Final = 100_000
_TOLD: Final = frozenset({"messages", "input", "system", "instructions"})
"""Where the conversation goes, whatever the upstream calls it."""
_RANK: Final = {"rejected": 3, "ignored": 2, "degraded": 1, "supported": 0}


@dataclass(frozen=True, slots=True)
class Shown:
    path: str
    bytes: int
    role: str = ""
    mark: str = ""
    """`supported`, `degraded`, `ignored`, `rejected`; on the other side `same`, `sent` (by a decision) or `added`."""
    decisions: tuple[int, ...] = ()
    """By their numbers in the table."""
    value: str | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Beside:
    client: tuple[Shown, ...] = ()
    calls: tuple[tuple[Shown, ...], ...] = ()
    """One list for each time that an upstream was asked."""
    notes: tuple[str, ...] = field(default=())


def beside(trace: Trace) -> Beside:
    names = {piece.path: piece.hash for piece in trace.request.pieces}
    return Beside(
        tuple(_client(trace.request, trace.decisions)),
        tuple(tuple(_upstream(call.body, trace.decisions, names)) for call in trace.calls),
        tuple(note for note in (trace.request.cut, *(call.body.cut for call in trace.calls)) if note),
    )


def _client(body: TracedBody, decisions: tuple[TracedDecision, ...]) -> list[Shown]:
    values = content_of(body)
    shown: list[Shown] = []
    for piece in body.pieces:
        about = [number for number, one in enumerate(decisions) if _covers(piece.path, one.path)]
        worst = max((decisions[number].action for number in about), key=lambda action: _RANK.get(action, 0), default="")
        value, cut = _value(values, piece.path)
        shown.append(Shown(piece.path, piece.bytes, piece.role, worst, tuple(about), value, cut))
    return shown


def _upstream(body: TracedBody, decisions: tuple[TracedDecision, ...], names: dict[str, str]) -> list[Shown]:
    values, tops = content_of(body), {path.partition("[")[0] for path in names}
    shown: list[Shown] = []
    for piece in body.pieces:
        top = piece.path.partition("[")[0]
        about = [number for number, one in enumerate(decisions) if piece.path in one.sends or top in one.sends]
        ours = top in _TOLD or top in tops
        mark = "same" if names.get(piece.path) == piece.hash else "sent" if about or ours else "added"
        value, cut = _value(values, piece.path)
        shown.append(Shown(piece.path, piece.bytes, piece.role, mark, tuple(about), value, cut))
    return shown


def _covers(piece: str, decided: str) -> bool:
    """`tools[0].strict` is about `tools[0]`; `tools` is about the list as such, and stands with its first entry."""
    if decided == piece or decided.startswith((f"{piece}.", f"{piece}[")):
        return True
    return piece == f"{decided}[0]"


def shown_content(body: TracedBody) -> str:
    """All of a body, as far as it was captured and a page can show it."""
    values = content_of(body)
    if values is None:
        return ""
    text = json.dumps(values, indent=1, ensure_ascii=False)
    return (
        text
        if len(text) <= LONGEST_WHOLE
        else f"{text[:LONGEST_WHOLE]}\n[… {len(text) - LONGEST_WHOLE} more characters]"
    )


def _value(values: Any, path: str) -> tuple[str | None, bool]:
    if not isinstance(values, dict):
        return None, False
    name, _, rest = path.partition("[")
    found = values.get(name)
    if rest and isinstance(found, str):
        rest = ""  # an input that is one text is one message
    if rest:
        index = rest.rstrip("]")
        inside = isinstance(found, list) and index.isdigit() and int(index) < len(found)
        found = found[int(index)] if inside else None  # type: ignore[index]  # `inside` says that it is a list
    if found is None:
        return None, False
    text = found if isinstance(found, str) else json.dumps(found, indent=1, ensure_ascii=False)
    return text[:LONGEST], len(text) > LONGEST
