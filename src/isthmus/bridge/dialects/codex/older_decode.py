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
_USAGE: Final = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")


def translate_older(method: str, params: Params) -> list[tuple[str, Params]]:
    """Newer messages pass unchanged; an older event becomes none, one or two of them."""
    event, kind = params, method
    if method != "dynamic_tool_call_request":
        if not method.startswith("codex/event"):
            return [(method, params)]
        told = params.get("msg")
        event = told if isinstance(told, Mapping) else {}
        kind = event.get("type", "")
    match kind:
        case "agent_message_delta" | "agent_reasoning_delta" | "agent_reasoning_raw_content_delta":
            return [(_DELTAS[kind], {"itemId": "", "delta": event.get("delta")})]
        case "agent_reasoning_section_break":
            return [("item/reasoning/summaryPartAdded", {"summaryIndex": 1})]
        case "agent_message":
            return [("item/completed", {"item": {"type": "agentMessage", "id": "", "text": event.get("message")}})]
        case "raw_response_item":
            return [("rawResponseItem/completed", {"item": event.get("item")})]
        case "token_count":
            last = (event.get("info") or {}).get("last_token_usage")
            if not isinstance(last, Mapping):
                return []
            return [("isthmus/usage", {_camel(name): last.get(name) for name in _USAGE})]
        case "dynamic_tool_call_request":
            return [("rawResponse/completed", {}), ("item/tool/call", event)]
        case "stream_error":
            return [("error", {"error": _error(event), "willRetry": True})]
        case "error":
            return _end("failed", _error(event))
        case "turn_aborted" | "task_complete" | "turn_complete":
            return _end("interrupted" if kind == "turn_aborted" else "completed")
        case _:
            return []


def _end(status: str, error: JsonObject | None = None) -> list[tuple[str, Params]]:
    return [("turn/completed", {"turn": {"status": status, "error": error}})]


def _error(event: Params) -> JsonObject:
    info = event.get("codex_error_info")
    return {"message": event.get("message"), "codexErrorInfo": _camel(info) if isinstance(info, str) else info}


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
