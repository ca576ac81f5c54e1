"""What a configuration may say of how much callers, teams and models may have, and of what is kept of their use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from isthmus.config.section import Count, Section, Text


class RateLimits(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    requests_per_minute: Annotated[int, Meta(ge=0)] = 0
    """Requests within a minute. 0: no limit."""
    tokens_per_minute: Annotated[int, Meta(ge=0)] = 0
    """Tokens within a minute, those that are sent and those that are made. 0: no limit."""
    concurrent_requests: Annotated[int, Meta(ge=0)] = 0
    """Requests at the same time. 0: no limit."""
    concurrent_streams: Annotated[int, Meta(ge=0)] = 0
    """Streams at the same time. 0: no limit."""


class ModelLimits(RateLimits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a model, for all who ask for it together."""


class TeamConfig(RateLimits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all keys of a team have together."""

    daily_budget: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    """US dollars that may be spent in a day of UTC. 0: no limit."""
    monthly_budget: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    """US dollars that may be spent in a month of UTC. 0: no limit."""
    models: list[Text] = []
    """Models that its keys may ask for, whatever they say themselves; `*` stands for anything. Empty: all."""
    upstream_keys: Mapping[str, str] = {}
    """Provider → the key that it is shown for this team, in place of its own (see also `providers.NAME.keys_for`)."""


class Usage(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of what was used: sums by day, key, team, provider and model."""

    keep_days: Annotated[float, Meta(ge=0)] = 400.0
    """For how long. 0: for ever."""
    max_waiting: Count = 10_000
    """Sums that may wait for a store that does not take them; more are lost, and the log says so."""
