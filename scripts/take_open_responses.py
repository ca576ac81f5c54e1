"""Takes from the Open Responses OpenAPI document the facts that the wire tests judge by, and none of its prose.

    python scripts/take_open_responses.py openapi.json      # writes tests/wire/open_responses.json

The document: https://www.openresponses.org. Only its facts are taken: names, types, what is required.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KEPT = Path(__file__).resolve().parents[1] / "tests" / "wire" / "open_responses.json"
ROOTS = ("ResponseResource", "ItemField", "CompactResource", "WebSocketErrorEvent")
"""What is judged, beside all events."""
PROSE = ("description", "title", "example", "examples", "default", "discriminator")
"""Keywords that do not decide whether a value is right; neither do those that begin with `x-`."""
NOTICE = (
    "Names, types and required fields of the Open Responses OpenAPI document, version {version}, without its prose: "
    "made by scripts/take_open_responses.py from https://www.openresponses.org."
)


def take(document: dict[str, Any]) -> dict[str, Any]:
    """The schemas of responses, items and events, and those they refer to; without `PROSE`."""
    schemas = document["components"]["schemas"]
    waiting = [*ROOTS, *(name for name in schemas if name.endswith("StreamingEvent"))]
    taken: dict[str, Any] = {}
    while waiting:
        name = waiting.pop()
        if name not in taken:
            taken[name] = _facts(schemas[name])
            waiting += _references(taken[name])
    notice = NOTICE.format(version=document["info"]["version"])
    return {"about": notice, "schemas": {name: taken[name] for name in sorted(taken)}}


def _facts(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_facts(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in PROSE and not key.startswith("x-")}
    for key in kept.keys() & {"items", "additionalProperties", "allOf", "anyOf", "oneOf"}:
        kept[key] = _facts(kept[key])
    if "properties" in kept:
        kept["properties"] = {name: _facts(each) for name, each in kept["properties"].items()}
    return kept


def _references(schema: Any) -> Iterator[str]:
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for each in inner:
        yield from _references(each)
    if isinstance(schema, dict) and isinstance(reference := schema.get("$ref"), str):
        yield reference.rpartition("/")[2]


if __name__ == "__main__":
    KEPT.write_text(json.dumps(take(json.loads(Path(sys.argv[1]).read_text())), indent=1) + "\n")
