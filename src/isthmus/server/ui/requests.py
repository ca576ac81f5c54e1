"""The list of requests, and one of them: what was decided and why, both sides beside each other, and how it went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from isthmus.errors import RequestRefused
from isthmus.ports.traced import TraceSummary
from isthmus.ports.traces import TraceFilter
from isthmus.server.options import whole_number
from isthmus.server.ui.beside import beside, shown_content
from isthmus.server.ui.doctor import examined
from isthmus.server.ui.timeline import draw_timeline, longest_silence
from isthmus.server.ui.tree import grow

if TYPE_CHECKING:
    from isthmus.server.ui.pages import Look

_PAGE: Final = 50
_TURNS: Final = 200
"""Turns of a conversation that are shown, the latest."""
_CHOICES: Final = {
    "outcome": ("completed", "incomplete", "failed", "cancelled", "refused"),
    "door": ("responses", "chat", "messages", "embeddings", "images", "search", "other"),
}
_TEXTS: Final = ("provider", "model", "code", "key", "client", "thread")


async def latest(look: Look, most: int) -> tuple[TraceSummary, ...]:
    if look.traces is None:
        return ()
    return (await look.traces.list(look.visitor.owner, limit=most)).traces


def read_filter(asked: dict[str, str]) -> TraceFilter:
    """What the form asks for; what it does not know is anything."""
    fields: dict[str, Any] = {name: asked[name].strip()[:200] for name in _TEXTS if asked.get(name, "").strip()}
    fields |= {name: asked[name] for name, known in _CHOICES.items() if asked.get(name) in known}
    if asked.get("changed") in ("yes", "no"):
        fields["changed"] = asked["changed"] == "yes"
    return TraceFilter(**fields)


async def requests_view(look: Look) -> dict[str, Any]:
    asked = look.asked
    values: dict[str, Any] = {"asked": asked, "choices": _CHOICES, "traces": (), "older": None, "latest_seq": 0}
    if look.traces is None:
        return values
    after = whole_number(asked, "after", default=0, low=0) or None
    page = await look.traces.list(look.visitor.owner, read_filter(asked), limit=_PAGE, after=after)
    stats = await look.traces.stats(look.visitor.owner)
    kept = {name: value for name, value in asked.items() if value and name != "after"}
    values |= {
        "traces": page.traces,
        "older": {**kept, "after": page.traces[-1].seq} if page.has_more and page.traces else None,
        "latest_seq": stats.latest,
        "total": stats.traces,
        "filtered": bool(kept),
        "paged": after is not None,
        "kept": kept,
    }
    return values


async def request_view(look: Look) -> dict[str, Any]:
    id = look.scope["path_params"]["id"]
    trace = await look.traces.find(look.visitor.owner, id) if look.traces is not None else None
    if trace is None:
        words = f"nothing is known of `{id[:80]}`; it may be too old, or traces were off when it came"
        raise RequestRefused(words, code="not_found")
    assert look.traces is not None
    turns = await look.traces.walk(look.visitor.owner, id)
    return {
        "trace": trace,
        "summary": trace.summary,
        "beside": beside(trace),
        "timeline": draw_timeline(trace),
        "silence": longest_silence(trace),
        "answer": shown_content(trace.answer),
        "turns": grow(turns[-_TURNS:]) if len(turns) > 1 else (),
        "more_turns": max(len(turns) - _TURNS, 0),
        "doctor": await examined(look, turns),
        "actions": _counted(trace.decisions),
    }


def _counted(decisions: tuple[Any, ...]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for decision in decisions:
        counts[decision.action] = counts.get(decision.action, 0) + 1
    return counts
