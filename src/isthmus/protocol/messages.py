"""Anthropic Messages as it travels: the request fields that the door relies on.

Turns, blocks and tools stay open objects: clients send betas that no list knows, and what we do not know gets a
decision of its own.
"""

from __future__ import annotations

from typing import Required, TypedDict

from isthmus.protocol.json import JsonObject


class Thinking(TypedDict, total=False):
    type: Required[str]
    budget_tokens: int | None
    display: str | None


class OutputFormat(TypedDict, total=False):
    type: Required[str]
    schema: JsonObject | None


class OutputConfig(TypedDict, total=False):
    effort: str | None
    format: OutputFormat | None


class Metadata(TypedDict, total=False):
    user_id: str | None


class MessagesToolChoice(TypedDict, total=False):
    type: Required[str]
    name: str | None
    disable_parallel_tool_use: bool | None


class CountTokens(TypedDict, total=False):
    model: Required[str]
    messages: Required[list[JsonObject]]
    system: str | list[JsonObject] | None
    tools: list[JsonObject] | None
    tool_choice: MessagesToolChoice | None
    thinking: Thinking | None
    output_config: OutputConfig | None
    output_format: OutputFormat | None
    cache_control: JsonObject | None
    context_management: JsonObject | None
    mcp_servers: list[JsonObject] | None


class CreateMessage(CountTokens, total=False):
    max_tokens: Required[int]
    stream: bool | None
    stop_sequences: list[str] | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    metadata: Metadata | None
    service_tier: str | None
    container: str | JsonObject | None
    store: bool | None
