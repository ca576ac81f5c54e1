"""The Responses API as it travels: spelled as the wire spells it, lenient where clients differ.

`CreateResponse` is what `parse` checks a body against: wrong types are refused, unknown fields survive
(and get a decision of their own). Items and tools stay open objects, because new kinds appear all the
time; the few fields we rely on are listed per type in `ITEM_SHAPES` and `TOOL_SHAPES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Required, TypedDict

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
    stream_options: StreamOptions | None
    store: bool | None
    background: bool | None
    previous_response_id: str | None
    conversation: str | JsonObject | None
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


class _Call(TypedDict, total=False):
    id: str | None
    call_id: Required[str]
    status: str | None


class MessageItem(TypedDict, total=False):
    id: str | None
    role: Required[Role]
    content: Required[str | list[JsonObject] | None]


class FunctionCallItem(_Call, total=False):
    name: Required[str]
    namespace: str | None
    arguments: Required[str]


class CustomCallItem(_Call, total=False):
    name: Required[str]
    namespace: str | None
    input: Required[str]


class ActionCallItem(_Call, total=False):
    action: Required[JsonObject]


class PatchCallItem(_Call, total=False):
    operation: Required[JsonObject]


class TextOutputItem(_Call, total=False):
    output: Required[str | list[JsonObject]]


class FunctionOutputItem(TypedDict, total=False):
    """Without a `call_id` the call is found by `name` and `namespace`."""

    id: str | None
    call_id: str | None
    name: str | None
    namespace: str | None
    status: str | None
    output: Required[str | list[JsonObject]]


class LocalShellOutputItem(TypedDict, total=False):
    id: str | None
    call_id: str | None
    output: Required[str]


class ShellOutputItem(_Call, total=False):
    output: Required[str | list[JsonObject]]


class PatchOutputItem(_Call, total=False):
    output: str | None


class ToolSearchItem(TypedDict, total=False):
    id: str | None
    call_id: str | None
    arguments: Any
    tools: list[JsonObject] | None


class ReasoningItem(TypedDict, total=False):
    id: str | None
    summary: list[JsonObject] | None
    content: list[JsonObject] | None
    encrypted_content: str | None


class AdditionalToolsItem(TypedDict, total=False):
    tools: Required[list[JsonObject]]


class ConfigurationUpdateItem(TypedDict, total=False):
    id: str | None
    reasoning: ReasoningOptions | None
    text: TextOptions | None


class ProgramItem(_Call, total=False):
    code: Required[str]
    fingerprint: str | None


class ProgramOutputItem(_Call, total=False):
    result: Required[str]


class ItemReference(TypedDict, total=False):
    id: Required[str]


class CompactionItem(TypedDict, total=False):
    id: str | None
    encrypted_content: str | None


ITEM_SHAPES: Final[Mapping[str, Any]] = {
    "message": MessageItem,
    "function_call": FunctionCallItem,
    "function_call_output": FunctionOutputItem,
    "custom_tool_call": CustomCallItem,
    "custom_tool_call_output": TextOutputItem,
    "shell_call": ActionCallItem,
    "shell_call_output": ShellOutputItem,
    "local_shell_call": ActionCallItem,
    "local_shell_call_output": LocalShellOutputItem,
    "apply_patch_call": PatchCallItem,
    "apply_patch_call_output": PatchOutputItem,
    "tool_search_call": ToolSearchItem,
    "tool_search_output": ToolSearchItem,
    "reasoning": ReasoningItem,
    "additional_tools": AdditionalToolsItem,
    "configuration_update": ConfigurationUpdateItem,
    "program": ProgramItem,
    "program_output": ProgramOutputItem,
    "item_reference": ItemReference,
    "compaction": CompactionItem,
}
"""Item types we read, with the fields relied on. Any other type is kept and gets a planned fate."""


_Async = TypedDict("_Async", {"async": bool | None}, total=False)
"""Its output may come turns later. The word is Python's own, so only this form can spell it."""


class NamedTool(_Async, total=False):
    name: Required[str]
    description: str | None
    parameters: JsonObject | None
    strict: bool | None
    defer_loading: bool | None
    allowed_callers: list[str] | None
    output_schema: JsonObject | None


class CustomTool(_Async, total=False):
    name: Required[str]
    description: str | None
    format: JsonObject | None
    defer_loading: bool | None
    allowed_callers: list[str] | None


class NamespaceTool(TypedDict, total=False):
    name: Required[str]
    description: str | None
    tools: Required[list[JsonObject]]


TOOL_SHAPES: Final[Mapping[str, Any]] = {
    "function": NamedTool,
    "custom": CustomTool,
    "namespace": NamespaceTool,
}
