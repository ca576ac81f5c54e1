"""JSON as it travels. `Any` stops here: inside, a value is read through a TypedDict or a match."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]


def without_nulls(given: JsonObject) -> JsonObject:
    """The fields that say something; an object without any `null` is given back as it is."""
    if None not in given.values():
        return given
    return {name: value for name, value in given.items() if value is not None}
