"""Every failure of a provider names it, once, in one form: "provider `deepseek` …".

Sentences of ours begin with it and go on ("provider `deepseek` cannot be reached"); a provider's own words follow
behind a colon. Who reads an error, in an answer, a stream, a log or an exception, need not know who was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from isthmus.bridge.deltas import Delta, Failed
from isthmus.errors import UpstreamFailed

_F = TypeVar("_F", bound=UpstreamFailed)


def name_in(message: str, provider: str) -> str:
    """The message with the provider's name in front, unless it is there already."""
    name = f"provider `{provider}`"
    return message if message.startswith(name) else f"{name}: {message}"


def named(failure: _F, provider: str) -> _F:
    """The same failure, with the name in its words and in its facts."""
    failure.message = name_in(failure.message, provider)
    failure.args = (failure.message,)
    failure.metadata = {"provider": provider, **failure.metadata}
    return failure


def named_deltas(deltas: Sequence[Delta], provider: str) -> Sequence[Delta]:
    """The same deltas; a failure among them has the name in its words."""
    if Failed not in map(type, deltas):  # nearly always: the hot path is one look at the types
        return deltas
    return [
        Failed(name_in(delta.message, provider), delta.code) if isinstance(delta, Failed) else delta for delta in deltas
    ]
