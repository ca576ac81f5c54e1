"""Events of the older methods (`codex/event/…`), in the words of today's notifications.

In: a method and its parameters, of either kind. Out: the same in newer words, so that there is one decoder.
The older stream marks no end of a model response, so a dynamic call ends its leg as soon as it arrives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isthmus.protocol.json import JsonObject

Params = Mapping[str, Any]

_DELTAS: Final = {
    "agent_message_delta": "item/agentMessage/delta",
    "agent_reasoning_delta": "item/reasoning/summaryTextDelta",
    "agent_reasoning_raw_content_delta": "item/reasoning/textDelta",
}


def translate_older(method: str, params: Params) -> list[tuple[str, Params]]:
    """Newer messages pass unchanged; an older event becomes none, one or two of them."""
    if method == "dynamic_tool_call_request":
        return _call(params)
    if not method.startswith("codex/event"):
        return [(method, params)]
    event = params.get("msg")
    return _translate(event) if isinstance(event, Mapping) else []


def _translate(event: Params) -> list[tuple[str, Params]]:
    match event.get("type"):
        case "agent_message_delta" | "agent_reasoning_delta" | "agent_reasoning_raw_content_delta" as kind:
            return [(_DELTAS[kind], {"itemId": "", "delta": event.get("delta")})]
        case "agent_reasoning_section_break":
            return [("item/reasoning/summaryPartAdded", {"summaryIndex": 1})]
        case "agent_message":
            return [("item/completed", {"item": {"type": "agentMessage", "id": "", "text": event.get("message")}})]
        case "raw_response_item":
            return [("rawResponseItem/completed", {"item": event.get("item")})]
        case "token_count":
            return _usage(event)
        case "dynamic_tool_call_request":
            return _call(event)
        case "stream_error":
            return [("error", {"error": _error(event), "willRetry": True})]
        case "error":
            return _end("failed", _error(event))
        case "turn_aborted":
            return _end("interrupted")
        case "task_complete" | "turn_complete":
            return _end("completed")
        case _:
            return []


def _end(status: str, error: JsonObject | None = None) -> list[tuple[str, Params]]:
    return [("turn/completed", {"turn": {"status": status, "error": error}})]


def _call(event: Params) -> list[tuple[str, Params]]:
    return [("rawResponse/completed", {}), ("item/tool/call", event)]


def _usage(event: Params) -> list[tuple[str, Params]]:
    last = (event.get("info") or {}).get("last_token_usage")
    if not isinstance(last, Mapping):
        return []
    words = {
        "inputTokens": "input_tokens",
        "cachedInputTokens": "cached_input_tokens",
        "outputTokens": "output_tokens",
        "reasoningOutputTokens": "reasoning_output_tokens",
        "totalTokens": "total_tokens",
    }
    return [("isthmus/usage", {ours: last.get(theirs) for ours, theirs in words.items()})]


def _error(event: Params) -> JsonObject:
    """`codex_error_info` words are snake case here."""
    info = event.get("codex_error_info")
    if isinstance(info, str):
        head, *tail = info.split("_")
        info = head + "".join(word.capitalize() for word in tail)
    return {"message": event.get("message"), "codexErrorInfo": info}
