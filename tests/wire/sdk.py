"""The second judge: the official `openai` SDK must read what we send, strictly, and lose nothing.

In: an event or a response. Out: complaints. The SDK's own client is lenient and builds models without
checking; here each object is validated in pydantic's strict mode and then written again: the result must
equal what came in. Where the SDK is narrower than the specification, the object is adapted first, and each
such place is listed in `_adapt_*`.
"""

from __future__ import annotations

from typing import Any, get_args

from openai.types.responses import Response, ResponseOutputItem, ResponseStreamEvent
from openai.types.responses.response_error import ResponseError
from pydantic import BaseModel, ValidationError

Json = dict[str, Any]


def judge_response(response: Json) -> list[str]:
    adapted = _adapt_response(response)
    found = [
        f"output[{index}].{complaint}" for index, item in enumerate(adapted["output"]) for complaint in judge_item(item)
    ]
    return found or _read(Response, adapted)


def judge_item(item: Json) -> list[str]:
    model = _ITEM_MODELS.get(item["type"])
    return [f"the SDK knows no item `{item['type']}`"] if model is None else _read(model, _adapt_item(item))


def judge_event(event: Json) -> list[str]:
    adapted = _adapt_event(event)
    model = _EVENT_MODELS.get(adapted["type"])
    if model is None:
        return [f"the SDK knows no event `{event['type']}`"]
    if "response" in adapted and (found := judge_response(adapted["response"])):
        return found
    if "item" in adapted and (found := judge_item(adapted["item"])):
        return found
    return _read(model, adapted)


def _adapt_event(event: Json) -> Json:
    adapted = dict(event)
    # The specification's spelling of raw reasoning; the SDK knows the other one.
    adapted["type"] = event["type"].replace("response.reasoning.", "response.reasoning_text.")
    if "response" in event:
        adapted["response"] = _adapt_response(event["response"])
    if "item" in event:
        adapted["item"] = _adapt_item(event["item"])
    return adapted


def _adapt_response(response: Json) -> Json:
    adapted = dict(response)
    adapted["output"] = [_adapt_item(item) for item in response["output"]]
    # Echoed tools are the client's own words; the two kinds whose shape we answer for are read.
    adapted["tools"] = [tool for tool in response["tools"] if tool.get("type") in ("function", "custom")]
    if response["error"] is not None and response["error"].get("code") not in _ERROR_CODES:
        adapted["error"] = {**response["error"], "code": "server_error"}
    return adapted


def _adapt_item(item: Json) -> Json:
    # The SDK's patch call cannot be `incomplete`; the specification's items all can.
    if item["type"] == "apply_patch_call" and item.get("status") == "incomplete":
        return {**item, "status": "in_progress"}
    return item


def _read(model: type[BaseModel], value: Json) -> list[str]:
    try:
        read = model.model_validate(value, strict=True)
    except ValidationError as error:
        return [f"{'.'.join(map(str, one['loc']))}: {one['msg']} (SDK)" for one in error.errors()[:5]]
    written = read.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings="error")
    lost = [key for key in value if written.get(key) != value[key]]
    return [f"{key}: the SDK reads it as {str(written.get(key))[:200]}" for key in lost]


def _models(union: Any) -> dict[str, type[BaseModel]]:
    """The members of one of the SDK's unions, by the `type` they declare."""
    members = get_args(get_args(union)[0])
    return {kind: member for member in members for kind in get_args(member.model_fields["type"].annotation)}


_ITEM_MODELS = _models(ResponseOutputItem)
_EVENT_MODELS = _models(ResponseStreamEvent)
_ERROR_CODES = get_args(ResponseError.model_fields["code"].annotation)
