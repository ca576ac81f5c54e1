"""Which client asks, by what it says of itself: the profile goes into the plan, and nobody looks at headers again."""

from __future__ import annotations

from isthmus.bridge.types.plan import ANY_CLIENT, CODEX, ClientProfile


def recognise_client(*, originator: str, user_agent: str) -> ClientProfile:
    """The client behind these two headers. Codex sends both, its forks and older versions one of them."""
    if originator.startswith("codex") or user_agent.startswith("codex"):
        return CODEX
    return ANY_CLIENT
