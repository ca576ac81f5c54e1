"""Events of a Responses stream as they travel. Plain dict displays are typed by them, which costs nothing at run time.

An event is told once and never changed afterwards: whoever reads it may keep it.
"""

from __future__ import annotations

from typing import Final, Literal, TypedDict, get_args

from isthmus.protocol.items import Annotation, ContentPart, Logprob, OutputItem, SummaryText
from isthmus.protocol.response import Response


class _Event(TypedDict):
    sequence_number: int


SnapshotType = Literal[
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.completed",
    "response.incomplete",
    "response.failed",
]


class ResponseEvent(_Event):
    """The response as it stands; the last three types are terminal."""

    type: SnapshotType
    response: Response


class ItemEvent(_Event):
    type: Literal["response.output_item.added", "response.output_item.done"]
    output_index: int
    item: OutputItem


class ItemPlace(TypedDict):
    item_id: str
    output_index: int


class ContentPlace(ItemPlace):
    content_index: int


class SummaryPlace(ItemPlace):
    summary_index: int


class _InItem(_Event, ItemPlace):
    pass


class _InContent(_Event, ContentPlace):
    pass


class _InSummary(_Event, SummaryPlace):
    pass


class ContentPartEvent(_InContent):
    type: Literal["response.content_part.added", "response.content_part.done"]
    part: ContentPart


class SummaryPartEvent(_InSummary):
    type: Literal["response.reasoning_summary_part.added", "response.reasoning_summary_part.done"]
    part: SummaryText


class TextDelta(_InContent):
    type: Literal["response.output_text.delta"]
    delta: str
    logprobs: list[Logprob]


class TextDone(_InContent):
    type: Literal["response.output_text.done"]
    text: str
    logprobs: list[Logprob]


class AnnotationAdded(_InContent):
    type: Literal["response.output_text.annotation.added"]
    annotation_index: int
    annotation: Annotation


class RefusalDelta(_InContent):
    type: Literal["response.refusal.delta"]
    delta: str


class RefusalDone(_InContent):
    type: Literal["response.refusal.done"]
    refusal: str


class ReasoningDelta(_InContent):
    type: Literal["response.reasoning_text.delta"]
    delta: str


class ReasoningDone(_InContent):
    type: Literal["response.reasoning_text.done"]
    text: str


class SummaryDelta(_InSummary):
    type: Literal["response.reasoning_summary_text.delta"]
    delta: str


class SummaryDone(_InSummary):
    type: Literal["response.reasoning_summary_text.done"]
    text: str


class CallDelta(_InItem):
    type: Literal["response.function_call_arguments.delta", "response.custom_tool_call_input.delta"]
    delta: str


class ArgumentsDone(_InItem):
    type: Literal["response.function_call_arguments.done"]
    arguments: str


class InputDone(_InItem):
    type: Literal["response.custom_tool_call_input.done"]
    input: str


class CommandPlace(TypedDict):
    """The SDK's shell events name no item."""

    output_index: int
    command_index: int


class _InCommand(_Event, CommandPlace):
    pass


class CommandEvent(_InCommand):
    type: Literal["response.shell_call_command.added", "response.shell_call_command.done"]
    command: str


class CommandDelta(_InCommand):
    type: Literal["response.shell_call_command.delta"]
    delta: str


class Compacting(_InItem):
    type: Literal["response.compaction.compacting"]


HostedStepType = Literal[
    "response.web_search_call.in_progress",
    "response.web_search_call.searching",
    "response.web_search_call.completed",
    "response.file_search_call.in_progress",
    "response.file_search_call.searching",
    "response.file_search_call.completed",
    "response.code_interpreter_call.in_progress",
    "response.code_interpreter_call.interpreting",
    "response.code_interpreter_call.completed",
    "response.code_interpreter_call_code.delta",
    "response.code_interpreter_call_code.done",
    "response.image_generation_call.in_progress",
    "response.image_generation_call.generating",
    "response.image_generation_call.partial_image",
    "response.image_generation_call.completed",
    "response.mcp_call.in_progress",
    "response.mcp_call.completed",
    "response.mcp_call.failed",
    "response.mcp_call_arguments.delta",
    "response.mcp_call_arguments.done",
    "response.mcp_list_tools.in_progress",
    "response.mcp_list_tools.completed",
    "response.mcp_list_tools.failed",
]
HOSTED_STEPS: Final[frozenset[str]] = frozenset(get_args(HostedStepType))


class HostedStep(_InItem):
    """How far a tool of the provider is; some kinds carry fields of their own (`partial_image_b64`, `delta` …)."""

    type: HostedStepType


Event = (
    ResponseEvent
    | ItemEvent
    | ContentPartEvent
    | SummaryPartEvent
    | TextDelta
    | TextDone
    | AnnotationAdded
    | RefusalDelta
    | RefusalDone
    | ReasoningDelta
    | ReasoningDone
    | SummaryDelta
    | SummaryDone
    | CallDelta
    | ArgumentsDone
    | InputDone
    | CommandEvent
    | CommandDelta
    | Compacting
    | HostedStep
)
