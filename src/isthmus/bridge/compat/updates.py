"""`configuration_update` items: settings that change in the middle of a conversation.

In: a request and all items of its conversation. Out: the request as it counts for the next answer. Each setting
holds until a later item replaces it, and only the last one matters: one answer is asked for. The items themselves
never reach the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from isthmus.bridge.parse import Request
from isthmus.protocol.json import JsonObject
from isthmus.protocol.responses import CreateResponse

UPDATE: Final = "configuration_update"
_SETTINGS: Final = (("reasoning", "effort"), ("text", "format"))


def apply_updates(request: Request, items: Sequence[JsonObject]) -> Request:
    """The same request where nothing was updated."""
    changed: dict[str, Any] = {}
    for item in items:
        if item["type"] == UPDATE:
            for group, name in _SETTINGS:
                value = (item.get(group) or {}).get(name)
                if value is not None:
                    changed[group] = {name: value}
    if not changed:
        return request
    body: Mapping[str, Any] = request.body
    merged = {group: {**(body.get(group) or {}), **options} for group, options in changed.items()}
    return replace(request, body=cast(CreateResponse, {**body, **merged}))
