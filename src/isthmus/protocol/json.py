"""JSON as it travels. `Any` stops here: inside, a value is read through a TypedDict or a match."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
