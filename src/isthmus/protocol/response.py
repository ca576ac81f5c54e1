"""The Response object as it travels: what it says about itself, and what it repeats of its request.

Required-nullable fields are always there (`null` if nothing); optional ones are left out, never `null`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from isthmus.protocol.items import OutputItem
from isthmus.protocol.json import JsonObject

ResponseStatus = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
IncompleteReason = Literal["max_output_tokens", "content_filter", "steered"]


class InputTokensDetails(TypedDict):
    cached_tokens: int
    cache_write_tokens: int


class OutputTokensDetails(TypedDict):
    reasoning_tokens: int


class ResponseUsage(TypedDict):
    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int
    estimated: NotRequired[Literal[True]]
    """Ours: said only where the provider gave no figures."""


class ResponseFailure(TypedDict):
    code: str
    message: str


class IncompleteDetails(TypedDict):
    reason: IncompleteReason


class Echo(TypedDict):
    """What a Response repeats of its request, with the values that took effect."""

    previous_response_id: str | None
    instructions: str | None
    tools: list[JsonObject]
    tool_choice: str | JsonObject
    parallel_tool_calls: bool
    max_tool_calls: int | None
    max_output_tokens: int | None
    temperature: float
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: int
    truncation: Literal["auto", "disabled"]
    text: JsonObject
    reasoning: JsonObject | None
    store: bool
    background: bool
    service_tier: str
    metadata: dict[str, str]
    safety_identifier: str | None
    prompt_cache_key: str | None
    user: NotRequired[str | None]
    conversation: NotRequired[JsonObject]
    moderation: NotRequired[JsonObject]
    access_programs: NotRequired[JsonObject]
    image: NotRequired[JsonObject]
    prompt_cache_options: NotRequired[JsonObject]
    prompt_cache_diagnostics: NotRequired[JsonObject]


class Extension(TypedDict):
    """Ours: who answered, and what was changed on the way."""

    provider: str
    model: str
    alias: NotRequired[str]
    choice: NotRequired[JsonObject]
    """Why this target, where the name stands for several: `name`, `by`, `reason`."""
    stop_sequence: NotRequired[str]
    """The one that ended the answer, where the provider tells it."""
    diagnostics: list[JsonObject]


class Response(Echo):
    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: ResponseStatus
    error: ResponseFailure | None
    incomplete_details: IncompleteDetails | None
    model: str
    output: list[OutputItem]
    usage: ResponseUsage | None
    tool_usage: NotRequired[JsonObject]
    """What tools cost that ran here."""


class FinishedResponse(Response):
    """One that has ended, however it did."""

    output_text: str
    """All answer text, as SDKs compute it."""
    isthmus: Extension


def weigh_response(response: Response) -> int:
    """About how many characters its texts hold: whether it is worth looking for a way around everybody else."""
    told: Mapping[str, Any] = response
    size = len(told["instructions"] or "") + len(told.get("output_text", ""))
    for item in told["output"]:
        if item["type"] == "message":
            size += _weigh_parts(item["content"])
            continue
        for value in item.values():
            size += len(value) if isinstance(value, str) else _weigh_parts(value) if isinstance(value, list) else 0
    return size


def _weigh_parts(parts: Sequence[Any]) -> int:
    size = 0
    for part in parts:
        if isinstance(part, dict):
            size += len(part.get("text") or "")
    return size
