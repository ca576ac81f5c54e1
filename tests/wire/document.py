"""The third judge: the Open Responses document, by the names, types and required fields in `open_responses.json`.

In: an event or a response. Out: complaints. What the document does not know (item types, tools, events and
annotations of OpenAI's own) is taken out first; where it contradicts its own prose or every client, the value is
adapted. `scripts/take_open_responses.py` takes the facts from a newer document.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema_rs

from wire.shapes import complaints

Json = dict[str, Any]

DOCUMENT = Path(__file__).with_name("open_responses.json")
ITEM_TYPES = ("message", "function_call", "reasoning", "compaction")


def judge_response(response: Json) -> list[str]:
    return judge("ResponseResource", _adapt_response(response))


def judge_item(item: Json) -> list[str]:
    return judge("ItemField", _adapt_item(item)) if item["type"] in ITEM_TYPES else []


def knows_event(kind: str) -> bool:
    """Whether it is one of the events that the document lists; its suite takes no other."""
    return kind in _event_schemas()


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
    return judge(name, adapted)


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


def judge(name: str, value: Json) -> list[str]:
    return [f"{found} (document)" for found in complaints(_validator(name), value)]


@functools.cache
def _validator(name: str) -> jsonschema_rs.Validator:
    schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": _schemas()}}
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
    schemas: Json = json.loads(DOCUMENT.read_bytes())["schemas"]
    return schemas
