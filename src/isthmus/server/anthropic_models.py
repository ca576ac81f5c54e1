"""`/v1/models` as clients of Anthropic's API read it (they send `anthropic-version`): pages, and names that Claude Code
shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.providers.catalog import KnownModel
from isthmus.server.anthropic import PREFIX
from isthmus.server.options import whole_number

_CREATED: Final = "2026-01-01T00:00:00Z"
"""A model list has no honest creation time; clients only want a date."""
_OFFERED: Final = ("claude", "anthropic")


def anthropic_page(listed: Mapping[str, KnownModel], asked: Mapping[str, str]) -> JsonObject:
    listed = _with_prefixed(listed)
    limit, ids = whole_number(asked, "limit", default=20, low=1, high=1_000), list(listed)
    after, before = _place(ids, asked, "after_id"), _place(ids, asked, "before_id")
    if before is not None:
        begin = max(before - limit, 0)
        chosen, more = ids[begin:before], begin > 0
    else:
        begin = 0 if after is None else after + 1
        chosen, more = ids[begin : begin + limit], begin + limit < len(ids)
    return {
        "data": [anthropic_model(id, listed[id]) for id in chosen],
        "has_more": more,
        "first_id": chosen[0] if chosen else None,
        "last_id": chosen[-1] if chosen else None,
    }


def _with_prefixed(listed: Mapping[str, KnownModel]) -> dict[str, KnownModel]:
    """Behind the models themselves once more those that Claude Code would not offer, under names that it does."""
    hidden = {id: model for id, model in listed.items() if not id.startswith(_OFFERED)}
    return {**listed, **{f"{PREFIX}{id}": replace(model, title=id) for id, model in hidden.items()}}


def _place(ids: list[str], asked: Mapping[str, str], name: str) -> int | None:
    given = asked.get(name)
    if not given:
        return None
    if given not in ids:
        raise RequestRefused(f"`{name}` is `{given}`, which is no model of this list", code="invalid_value", param=name)
    return ids.index(given)


def anthropic_model(id: str, model: KnownModel) -> JsonObject:
    return {
        "type": "model",
        "id": id,
        "display_name": model.title,
        "description": _describe(model),
        "created_at": _CREATED,
        "lifecycle": "active",
        "max_input_tokens": model.context,
        "max_tokens": model.output,
        "isthmus": {"provider": model.provider, "model": model.model, "input": ["text", *model.input]},
    }


def _describe(model: KnownModel) -> str | None:
    """What Claude Code shows beside the name in `/model`, and all that it reads there (2.1.325, 2026-11-17): it is told
    of one window when it starts, so a person who changes the model sees the other one here."""
    return None if model.context is None else f"a window of {model.context:,} tokens"
