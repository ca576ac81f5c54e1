"""The Responses API as it travels: spelled as the wire spells it, lenient where clients differ.

`CreateResponse` is what `parse` checks a body against: wrong types are refused, unknown fields survive
(and get a decision of their own). Items and tools stay open objects, because new kinds appear all the
time; the few fields we rely on are listed per type in `ITEM_SHAPES` and `TOOL_SHAPES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Required, TypedDict

import msgspec

from isthmus.protocol.json import JsonObject

Role = Literal["user", "assistant", "system", "developer"]


class ReasoningOptions(TypedDict, total=False):
    effort: str | None
    summary: str | None
    generate_summary: str | None
    mode: str | None
    context: Literal["auto", "current_turn", "all_turns"] | None


class TextFormat(TypedDict, total=False):
    type: Required[str]
    name: str | None
    description: str | None
    schema: JsonObject | bool | None
    strict: bool | None


class TextOptions(TypedDict, total=False):
    format: TextFormat | None
    verbosity: Literal["low", "medium", "high"] | None


class StreamOptions(TypedDict, total=False):
    include_obfuscation: bool | None


class PromptCacheOptions(TypedDict, total=False):
    mode: Literal["implicit", "explicit"] | None
    ttl: str | None
    comparison_response_id: str | None
    prewarm: bool | None


class ModerationRule(TypedDict, total=False):
    mode: str | None


class ModerationPolicy(TypedDict, total=False):
    input: ModerationRule | None
    output: ModerationRule | None


class ModerationOptions(TypedDict, total=False):
    model: str | None
    policy: ModerationPolicy | None


class AccessPrograms(TypedDict, total=False):
    cyber: str | None


class ImageOptions(TypedDict, total=False):
    context_compression: Literal["auto", "enabled", "disabled"] | None


class MultiAgentOptions(TypedDict, total=False):
    enabled: bool | None
    max_concurrent_subagents: int | None


class ConversationParam(TypedDict, total=False):
    id: Required[str]


class CreateResponse(TypedDict, total=False):
    model: str | None
    input: str | list[JsonObject] | None
    instructions: str | None
    tools: list[JsonObject] | None
    tool_choice: str | JsonObject | None
    parallel_tool_calls: bool | None
    max_tool_calls: int | None
    max_output_tokens: int | None
    temperature: float | None
    top_p: float | None
    top_logprobs: int | None
    presence_penalty: float | None
    frequency_penalty: float | None
    stop: str | list[str] | None
    seed: int | None
    n: int | None
    logprobs: bool | None
    logit_bias: dict[str, float] | None
    reasoning: ReasoningOptions | None
    text: TextOptions | None
    truncation: Literal["auto", "disabled"] | None
    include: list[str] | None
    stream: bool | None
    generate: bool | None
    stream_options: StreamOptions | None
    store: bool | None
    background: bool | None
    previous_response_id: str | None
    conversation: str | ConversationParam | None
    metadata: dict[str, str] | None
    user: str | None
    safety_identifier: str | None
    prompt_cache_key: str | None
    prompt_cache_retention: str | None
    prompt_cache_options: PromptCacheOptions | None
    service_tier: str | None
    prompt: JsonObject | None
    context_management: list[JsonObject] | JsonObject | None
    client_metadata: JsonObject | None
    moderation: ModerationOptions | None
    access_programs: AccessPrograms | None
    image: ImageOptions | None
    multi_agent: MultiAgentOptions | None


def _shape(kind: str, required: Mapping[str, Any], optional: Mapping[str, Any]) -> type[msgspec.Struct]:
    """What an object must look like; fields that are named nowhere may stand in it. None is ever kept: the search for
    garbage need not know of them."""
    maybe = [(name, given, None) for name, given in optional.items()]
    return msgspec.defstruct(kind, [*required.items(), *maybe], gc=False)


_TEXT: Final = str | None
_PARTS: Final = str | list[JsonObject]
_OWN: Final = {"id": _TEXT}
_CALLED: Final = {"call_id": str}
_STATE: Final = {**_OWN, "status": _TEXT}
_NAMED: Final = {**_STATE, "namespace": _TEXT}
_SEARCH: Final = {**_OWN, "call_id": _TEXT, "arguments": Any, "tools": list[JsonObject] | None}
_SETTINGS: Final = {**_OWN, "reasoning": ReasoningOptions | None, "text": TextOptions | None}
_ENVELOPE: Final = {**_OWN, "encrypted_content": _TEXT}
_THOUGHT: Final = {**_ENVELOPE, "summary": list[JsonObject] | None, "content": list[JsonObject] | None}

_ITEMS: Final[Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]] = {
    "message": ({"role": Role, "content": _PARTS | None}, _OWN),
    "function_call": ({**_CALLED, "name": str, "arguments": str}, _NAMED),
    # Without a `call_id` the call is found by `name` and `namespace`.
    "function_call_output": ({"output": _PARTS}, {**_NAMED, "call_id": _TEXT, "name": _TEXT}),
    "custom_tool_call": ({**_CALLED, "name": str, "input": str}, _NAMED),
    "custom_tool_call_output": ({**_CALLED, "output": _PARTS}, _STATE),
    "shell_call": ({**_CALLED, "action": JsonObject}, _STATE),
    "shell_call_output": ({**_CALLED, "output": _PARTS}, _STATE),
    "local_shell_call": ({**_CALLED, "action": JsonObject}, _STATE),
    "local_shell_call_output": ({"output": str}, {**_OWN, "call_id": _TEXT}),
    "apply_patch_call": ({**_CALLED, "operation": JsonObject}, _STATE),
    "apply_patch_call_output": (_CALLED, {**_STATE, "output": _TEXT}),
    "tool_search_call": ({}, _SEARCH),
    "tool_search_output": ({}, _SEARCH),
    "reasoning": ({}, _THOUGHT),
    "additional_tools": ({"tools": list[JsonObject]}, {}),
    "configuration_update": ({}, _SETTINGS),
    "program": ({**_CALLED, "code": str}, {**_STATE, "fingerprint": _TEXT}),
    "program_output": ({**_CALLED, "result": str}, _STATE),
    "item_reference": ({"id": str}, {}),
    "compaction": ({}, _ENVELOPE),
}
ITEM_SHAPES: Final[Mapping[str, Any]] = {kind: _shape(kind, *fields) for kind, fields in _ITEMS.items()}
"""Item types we read, with the fields relied on. Any other type is kept and gets a planned fate."""

_TOOL: Final = {
    "description": _TEXT,
    "async": bool | None,  # its output may come turns later
    "defer_loading": bool | None,
    "allowed_callers": list[str] | None,
}
_OBJECT: Final = JsonObject | None
_FUNCTION: Final = {**_TOOL, "parameters": _OBJECT, "strict": bool | None, "output_schema": _OBJECT}

TOOL_SHAPES: Final[Mapping[str, Any]] = {
    "function": _shape("function", {"name": str}, _FUNCTION),
    "custom": _shape("custom", {"name": str}, {**_TOOL, "format": _OBJECT}),
    "namespace": _shape("namespace", {"name": str, "tools": list[JsonObject]}, {"description": _TEXT}),
}
