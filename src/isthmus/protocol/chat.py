"""Chat Completions as it travels: the request fields that `receive` relies on.

Messages and tools stay open objects: vendors and clients add to them freely, and what we do not know
gets a decision of its own.
"""

from __future__ import annotations

from typing import Final, Required, TypedDict

from isthmus.protocol.json import JsonObject

CHAT_ID: Final = "chatcmpl-"
"""What the id of every completion begins with: it is told from a response's by that."""


class ChatStreamOptions(TypedDict, total=False):
    include_usage: bool | None
    include_obfuscation: bool | None


class ChatFormat(TypedDict, total=False):
    type: Required[str]
    json_schema: JsonObject | None


class CreateChatCompletion(TypedDict, total=False):
    model: str | None
    messages: Required[list[JsonObject]]
    stream: bool | None
    stream_options: ChatStreamOptions | None
    tools: list[JsonObject] | None
    tool_choice: str | JsonObject | None
    functions: list[JsonObject] | None
    function_call: str | JsonObject | None
    response_format: ChatFormat | None
    max_tokens: int | None
    max_completion_tokens: int | None
    reasoning_effort: str | None
    verbosity: str | None
    logprobs: bool | None
    top_logprobs: int | None
    web_search_options: JsonObject | None
    store: bool | None
    metadata: dict[str, str] | None
