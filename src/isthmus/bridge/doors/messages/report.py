"""How an answer ended and what it took, as a Messages client reads it.

| the response | `stop_reason` |
|---|---|
| completed, with a call | `tool_use` |
| completed at a stop sequence that the provider named | `stop_sequence` |
| completed | `end_turn` |
| incomplete, `max_output_tokens` | `max_tokens` |
| incomplete, `content_filter` | `refusal`, with `stop_details` |

`pause_turn` is never told: what a provider interrupts is gone on with here.
"""

from __future__ import annotations

from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import FinishedResponse, Response


def in_order(response: FinishedResponse) -> FinishedResponse:
    """A reply in one piece has its words behind its calls; a stream has them before, and so has every message: clients
    send it back like that, and a vendor would refuse words between a call and its result."""
    output = response["output"]
    end = len(output)
    while end and output[end - 1]["type"] in ("message", "reasoning"):
        end -= 1
    begin = end
    while begin and output[begin - 1]["type"] == "function_call":
        begin -= 1
    spoken = [item for item in output[end:] if item["type"] == "message"]
    rest = [item for item in output[end:] if item["type"] != "message"]
    if begin == end or not spoken:
        return response
    return {**response, "output": [*output[:begin], *spoken, *output[begin:end], *rest]}


def stop_of(response: Response) -> JsonObject:
    cut = response["incomplete_details"]
    if cut is not None and cut["reason"] == "content_filter":
        details = {"type": "refusal", "category": None, "explanation": None}
        return {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details}
    if cut is not None:
        return _stop("max_tokens")
    if any(item["type"] == "function_call" for item in response["output"]):
        return _stop("tool_use")
    told: JsonObject = response.get("isthmus") or {}  # type: ignore[assignment]  # a Response that has ended has it
    met = told.get("stop_sequence")
    return _stop("end_turn") if met is None else _stop("stop_sequence", met)


def _stop(reason: str, sequence: str | None = None) -> JsonObject:
    return {"stop_reason": reason, "stop_sequence": sequence, "stop_details": None}


def render_usage(response: Response, estimate: int = 0, searches: int = 0) -> JsonObject:
    """All figures are there from the beginning: the vendor's own client fails without them. What a cache had to do with
    is counted apart; the three together are the whole input."""
    used = response["usage"]
    details = used["input_tokens_details"] if used is not None else None
    known, written = (details["cached_tokens"], details["cache_write_tokens"]) if details is not None else (0, 0)
    fresh = max(used["input_tokens"] - known - written, 0) if used is not None else estimate
    made = used["output_tokens"] if used is not None else 0
    thought = used["output_tokens_details"]["reasoning_tokens"] if used is not None else 0
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": known,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"thinking_tokens": thought},
        "server_tool_use": {"web_search_requests": searches, "web_fetch_requests": 0} if searches else None,
        "service_tier": "standard",
    }
