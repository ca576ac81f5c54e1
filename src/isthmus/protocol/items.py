"""Output items and their parts as they travel, spelled as the wire spells them.

A field that is required is always sent, with `null` where it has nothing; an optional one is left out, never `null`.
Items of tools that a provider runs itself are passed on with the provider's own fields: what is listed of them here
is what a reader may count on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, TypedDict

from isthmus.protocol.json import JsonObject

Status = Literal["in_progress", "completed", "incomplete"]
HostedStatus = Literal[
    "in_progress", "searching", "interpreting", "generating", "calling", "completed", "incomplete", "failed"
]
Phase = Literal["commentary", "final_answer"]


class TopLogprob(TypedDict):
    token: str
    bytes: list[int]
    logprob: float


class Logprob(TopLogprob):
    top_logprobs: list[TopLogprob]


Annotation = JsonObject
"""`url_citation`, `file_citation`, `container_file_citation`, `file_path`: passed on as they come."""


class OutputText(TypedDict):
    type: Literal["output_text"]
    text: str
    annotations: list[Annotation]
    logprobs: list[Logprob]


class RefusalPart(TypedDict):
    type: Literal["refusal"]
    refusal: str


class ReasoningText(TypedDict):
    type: Literal["reasoning_text"]
    text: str


class SummaryText(TypedDict):
    type: Literal["summary_text"]
    text: str


MessagePart = OutputText | RefusalPart
ContentPart = OutputText | RefusalPart | ReasoningText


class MessageItem(TypedDict):
    type: Literal["message"]
    id: str
    status: Status
    role: Literal["assistant"]
    content: list[MessagePart]
    phase: NotRequired[Phase]


class ReasoningItem(TypedDict):
    type: Literal["reasoning"]
    id: str
    status: Status
    summary: list[SummaryText]
    content: NotRequired[list[ReasoningText]]
    encrypted_content: NotRequired[str]


class FunctionCall(TypedDict):
    type: Literal["function_call"]
    id: str
    call_id: str
    name: str
    arguments: str
    status: Status
    namespace: NotRequired[str]


class CustomToolCall(TypedDict):
    type: Literal["custom_tool_call"]
    id: str
    call_id: str
    name: str
    input: str
    status: Status
    namespace: NotRequired[str]


class ShellAction(TypedDict):
    commands: list[str]
    timeout_ms: int | None
    max_output_length: int | None


class ShellCall(TypedDict):
    type: Literal["shell_call"]
    id: str
    call_id: str
    action: ShellAction
    status: Status


class LocalShellAction(TypedDict):
    type: Literal["exec"]
    command: list[str]
    env: dict[str, str]
    timeout_ms: NotRequired[int]
    user: NotRequired[str]
    working_directory: NotRequired[str]


class LocalShellCall(TypedDict):
    type: Literal["local_shell_call"]
    id: str
    call_id: str
    action: LocalShellAction
    status: Status


class PatchOperation(TypedDict):
    type: Literal["create_file", "update_file", "delete_file"]
    path: str
    diff: NotRequired[str]
    """There unless the file is deleted."""


class ApplyPatchCall(TypedDict):
    type: Literal["apply_patch_call"]
    id: str
    call_id: str
    operation: PatchOperation
    status: Status


class ComputerCall(TypedDict):
    type: Literal["computer_call"]
    id: str
    call_id: str
    pending_safety_checks: list[JsonObject]
    """None: nobody here looks at what an action may do."""
    action: NotRequired[JsonObject]
    """Of `computer_use_preview`: one at a time."""
    actions: NotRequired[list[JsonObject]]
    """Of `computer`."""
    status: Status


class CompactionItem(TypedDict):
    type: Literal["compaction"]
    id: str
    encrypted_content: str
    status: Status


class ToolSearchCall(TypedDict):
    type: Literal["tool_search_call"]
    id: str
    call_id: str | None
    execution: Literal["client", "server"]
    arguments: JsonObject
    status: Status


class ToolSearchOutput(TypedDict):
    type: Literal["tool_search_output"]
    id: str
    call_id: None
    """A search that ran here has no id: its call stands right before it."""
    execution: Literal["server"]
    tools: list[JsonObject]
    status: Status


class _Hosted(TypedDict):
    type: Literal[
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
    ]
    id: str
    status: HostedStatus


class HostedItem(_Hosted, total=False):
    """A tool that the provider ran itself, or asks leave to run."""

    action: JsonObject
    """web_search_call, computer_call"""
    queries: list[str]
    """file_search_call"""
    results: list[JsonObject] | None
    """file_search_call"""
    code: str | None
    """code_interpreter_call"""
    container_id: str
    """code_interpreter_call"""
    outputs: list[JsonObject] | None
    """code_interpreter_call"""
    result: str | None
    """image_generation_call"""
    server_label: str
    """mcp_call, mcp_list_tools, mcp_approval_request"""
    name: str
    """mcp_call, mcp_approval_request"""
    arguments: str
    """mcp_call, mcp_approval_request"""
    output: str | None
    """mcp_call"""
    error: Any
    """mcp_call, mcp_list_tools"""
    tools: list[JsonObject]
    """mcp_list_tools"""
    approval_request_id: str | None
    """mcp_call"""


CallItem = FunctionCall | CustomToolCall | ShellCall | LocalShellCall | ApplyPatchCall | ComputerCall | ToolSearchCall
"""A call that the client answers."""

OutputItem = MessageItem | ReasoningItem | CallItem | ToolSearchOutput | CompactionItem | HostedItem

CALL_PREFIXES: Final[Mapping[str, str]] = {
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "shell_call": "sh",
    "local_shell_call": "lsh",
    "apply_patch_call": "apc",
    "computer_call": "cu",
    "tool_search_call": "tsc",
}
ID_PREFIXES: Final[Mapping[str, str]] = {
    **CALL_PREFIXES,
    **{f"{kind}_output": f"{prefix}o" for kind, prefix in CALL_PREFIXES.items()},
    "tool_search_output": "tso",
    "message": "msg",
    "reasoning": "rs",
    "compaction": "cmp",
    "configuration_update": "cu",
    "additional_tools": "at",
    "mcp_approval_response": "mcpr",
}
"""How the ids of items begin; OpenAI refuses messages whose ids do not begin so, also where they are sent back."""
