"""A request once more, from the response that was stored for it.

In: a Response object and its own input items. Out: a request that leads to it again. A Response repeats its request
with the defaults filled in and with the values that took effect: what was degraded has its new value, and `include` is
not repeated at all. A trace with content needs none of this; one without still knows which fields there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from isthmus.protocol.json import JsonObject, without_nulls

_DEFAULTS: Final[Mapping[str, Any]] = {
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "truncation": "disabled",
    "store": True,
    "background": False,
    "service_tier": "default",
    "metadata": {},
    **dict.fromkeys(
        (
            "previous_response_id",
            "instructions",
            "max_tool_calls",
            "max_output_tokens",
            "safety_identifier",
            "prompt_cache_key",
            "user",
            "conversation",
        )
    ),
}
"""Fields of a request that its Response repeats, each with what it says where the client said nothing."""
_PLAIN: Final = {"format": {"type": "text"}}


def request_again(
    response: Mapping[str, Any],
    items: Sequence[JsonObject],
    model: str,
    *,
    named: Iterable[str] | None = None,
    stream: bool = False,
) -> JsonObject:
    """A request for the same answer, of `model`.

    `named`: the fields that the client's request had, where a trace tells; else those that say more than the default.
    `stream`: whether it was told as a stream, which no Response repeats.
    """
    named = None if named is None else tuple(named)

    def says(name: str, value: Any, usual: Any) -> bool:
        return value != usual if named is None else name in named and value is not None

    told = {name: response[name] for name, usual in _DEFAULTS.items() if says(name, response.get(name, usual), usual)}
    if "tools" in told:
        told["tools"] = [without_nulls(tool) for tool in told["tools"]]
    text = without_nulls(dict(response.get("text") or {}))
    if says("text", text or None, _PLAIN):
        told["text"] = {**text, "format": without_nulls(text.get("format") or {"type": "text"})}
    if reasoning := without_nulls(dict(response.get("reasoning") or {})):
        told["reasoning"] = reasoning
    if conversation := told.get("conversation"):
        told["conversation"] = conversation["id"] if isinstance(conversation, dict) else conversation
    if stream or (named is not None and "stream" in named):
        told["stream"] = stream
    asked = {"model": model, "input": list(items), **told}
    ordered = [name for name in named or () if name in asked]  # fields go upstream in the order of the client's
    return {name: asked[name] for name in dict.fromkeys([*ordered, *asked])}
