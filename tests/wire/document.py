"""The third judge: the Open Responses document itself, where a copy lies beside the repository.

In: an event or a response. Out: complaints, none when the document is not there. It is never copied into
the project. What the document does not know (item types, tools, events and annotations of OpenAI's own)
is taken out first; where it contradicts its own prose or every client, the value is adapted.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema_rs

from wire.shapes import complaints

Json = dict[str, Any]

DOCUMENT = Path(__file__).resolve().parents[2].parent / "shared" / "spec" / "open-responses-openapi.json"
ITEM_TYPES = ("message", "function_call", "reasoning", "compaction")


def judge_response(response: Json) -> list[str]:
    return _judge("ResponseResource", _adapt_response(response))


def judge_item(item: Json) -> list[str]:
    return _judge("ItemField", _adapt_item(item)) if item["type"] in ITEM_TYPES else []


def judge_event(event: Json) -> list[str]:
    kind = event["type"].replace("response.reasoning_text.", "response.reasoning.")
    name = _event_schemas().get(kind)
    if name is None or ("item" in event and event["item"]["type"] not in ITEM_TYPES):
        return []
    if "annotation" in event and event["annotation"].get("type") != "url_citation":
        return []
    adapted = {**event, "type": kind}
    for field, adapt in (("response", _adapt_response), ("item", _adapt_item), ("part", _adapt_part)):
        if field in event:
            adapted[field] = adapt(event[field])
    return _judge(name, adapted)


def _adapt_response(response: Json) -> Json:
    adapted = dict(response)
    adapted["output"] = [_adapt_item(item) for item in response["output"] if item["type"] in ITEM_TYPES]
    adapted["tools"] = [tool for tool in response["tools"] if tool.get("type") == "function"]
    adapted["tool_choice"] = _adapt_choice(response["tool_choice"])
    if response["text"].get("format", {}).get("type") == "json_schema":
        # An echoed schema may only be null there, which no client can use.
        adapted["text"] = {**response["text"], "format": {**response["text"]["format"], "schema": None}}
    return adapted


def _adapt_choice(choice: Any) -> Any:
    match choice:
        case {"type": "allowed_tools", "tools": list(tools)}:
            return {**choice, "tools": [tool for tool in tools if tool.get("type") == "function"]}
        case {"type": str(kind)} if kind != "function":
            return "auto"
        case _:
            return choice


def _adapt_item(item: Json) -> Json:
    if item["type"] != "message" or not isinstance(item.get("content"), list):
        return item
    return {**item, "content": [_adapt_part(part) for part in item["content"]]}


def _adapt_part(part: Json) -> Json:
    if not isinstance(part.get("annotations"), list):
        return part
    return {**part, "annotations": [note for note in part["annotations"] if note.get("type") == "url_citation"]}


def _judge(name: str, value: Json) -> list[str]:
    validator = _validator(name)
    return [] if validator is None else [f"{found} (document)" for found in complaints(validator, value)]


@functools.cache
def _validator(name: str) -> jsonschema_rs.Validator | None:
    schemas = _schemas()
    if not schemas:
        return None
    schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
    return jsonschema_rs.Draft202012Validator(schema)


@functools.cache
def _event_schemas() -> dict[str, str]:
    """Names of the document's event schemas, by the event's `type`."""
    return {
        kind: name
        for name, schema in _schemas().items()
        if name.endswith("StreamingEvent")
        for kind in schema["properties"]["type"]["enum"]
    }


@functools.cache
def _schemas() -> Json:
    if not DOCUMENT.exists():
        return {}
    schemas: Json = json.loads(DOCUMENT.read_bytes())["components"]["schemas"]
    return schemas
