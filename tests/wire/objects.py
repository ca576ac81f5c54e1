"""Schemas of the Response object and of every event that we send, in our own words.

Response side, one rule: a required nullable field is always there, an optional one is never `null`.
"""

from __future__ import annotations

from wire.items import ANNOTATION, IMAGE, ITEM, LOGPROBS, STREAMED_PART, SUMMARY_TEXT
from wire.shapes import (
    COUNT,
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    WORD,
    Schema,
    by_type,
    const,
    list_of,
    nullable,
    one_of,
    open_shape,
    shape,
)

USAGE = shape(
    {
        "input_tokens": COUNT,
        "output_tokens": COUNT,
        "total_tokens": COUNT,
        # The SDK requires `cache_write_tokens`; the specification lets it pass.
        "input_tokens_details": shape({"cached_tokens": COUNT, "cache_write_tokens": COUNT}),
        "output_tokens_details": shape({"reasoning_tokens": COUNT}),
    },
    # Ours: said only where the provider gave no figures.
    {"estimated": {"const": True}},
)

TEXT_FORMAT = by_type(
    {
        "text": shape({"type": const("text")}),
        "json_object": shape({"type": const("json_object")}),
        # The specification's document allows only `schema: null`; clients want their schema back.
        "json_schema": shape(
            {
                "type": const("json_schema"),
                "name": WORD,
                "description": nullable(TEXT),
                "schema": OBJECT,
                "strict": FLAG,
            }
        ),
    }
)

FUNCTION_TOOL = open_shape(
    {
        "type": const("function"),
        "name": WORD,
        "description": nullable(TEXT),
        "parameters": nullable(OBJECT),
        "strict": nullable(FLAG),
    }
)
TOOL: Schema = {
    **open_shape({"type": WORD}),
    "allOf": [{"if": {"properties": {"type": const("function")}}, "then": FUNCTION_TOOL}],
}

TOOL_CHOICE: Schema = {
    "if": {"type": "string"},
    "then": one_of("none", "auto", "required"),
    "else": {
        **open_shape({"type": WORD}),
        "allOf": [
            {
                "if": {"properties": {"type": const("allowed_tools")}},
                "then": shape(
                    {
                        "type": const("allowed_tools"),
                        "mode": one_of("auto", "required", "none"),
                        "tools": list_of(open_shape({"type": WORD})),
                    }
                ),
            },
            {
                "if": {"properties": {"type": one_of("function", "custom")}},
                "then": open_shape({"type": WORD, "name": WORD}),
            },
        ],
    },
}

_NOT_MODERATED = shape({"type": const("error"), "code": WORD, "message": WORD})

RESPONSE = shape(
    {
        "id": {"type": "string", "pattern": "^resp_."},
        "object": const("response"),
        "created_at": COUNT,
        "completed_at": nullable(COUNT),
        "status": one_of("queued", "in_progress", "completed", "incomplete", "failed", "cancelled"),
        "incomplete_details": nullable(shape({"reason": one_of("max_output_tokens", "content_filter", "steered")})),
        "error": nullable(shape({"code": WORD, "message": WORD})),
        "model": WORD,
        "output": list_of(ITEM),
        "previous_response_id": nullable(WORD),
        "instructions": nullable(TEXT),
        "tools": list_of(TOOL),
        "tool_choice": TOOL_CHOICE,
        "parallel_tool_calls": FLAG,
        "max_tool_calls": nullable(COUNT),
        "max_output_tokens": nullable(COUNT),
        "truncation": one_of("auto", "disabled"),
        "text": shape({"format": TEXT_FORMAT}, {"verbosity": one_of("low", "medium", "high")}),
        "temperature": NUMBER,
        "top_p": NUMBER,
        "presence_penalty": NUMBER,
        "frequency_penalty": NUMBER,
        "top_logprobs": COUNT,
        "reasoning": nullable(
            shape(
                {
                    "effort": nullable(one_of("none", "low", "medium", "high", "xhigh")),
                    "summary": nullable(one_of("auto", "concise", "detailed")),
                },
                {"context": one_of("auto", "current_turn", "all_turns"), "mode": one_of("standard", "pro")},
            )
        ),
        "usage": nullable(USAGE),
        "store": FLAG,
        "background": FLAG,
        "service_tier": WORD,
        "metadata": {"type": "object", "additionalProperties": TEXT},
        "safety_identifier": nullable(WORD),
        "prompt_cache_key": nullable(WORD),
    },
    {
        # The seeds' own field; the SDK computes the same from the items.
        "output_text": TEXT,
        "user": WORD,
        "prompt_cache_retention": WORD,
        # Only where the request asked for them.
        "prompt_cache_options": shape(
            {"mode": one_of("implicit", "explicit"), "ttl": one_of("30m", "12h")}, {"comparison_response_id": WORD}
        ),
        "prompt_cache_diagnostics": shape({"type": const("unavailable")}),
        "moderation": shape({"input": _NOT_MODERATED, "output": _NOT_MODERATED}),
        "access_programs": shape({"cyber": one_of("standard", "daybreak_blue", "daybreak_red")}),
        # What tools cost that ran here.
        "tool_usage": shape({"web_search": shape({"num_requests": COUNT}), "image_gen": OBJECT}),
        "image": shape({"context_compression": one_of("enabled", "disabled")}),
        "conversation": open_shape({"id": WORD}),
        # Our own extension: what the plan changed, and who answered.
        "isthmus": OBJECT,
    },
)


def _event(kind: str, required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return shape({"type": const(kind), "sequence_number": COUNT, **required}, optional)


_ITEM_AT: dict[str, Schema] = {"item_id": WORD, "output_index": COUNT}
_PART_AT: dict[str, Schema] = {**_ITEM_AT, "content_index": COUNT}
_SUMMARY_AT: dict[str, Schema] = {**_ITEM_AT, "summary_index": COUNT}
_COMMAND_AT: dict[str, Schema] = {"output_index": COUNT, "command_index": COUNT}
_PADDING: dict[str, Schema] = {"obfuscation": TEXT}

_FIELDS: dict[str, tuple[dict[str, Schema], dict[str, Schema]]] = {
    **{
        f"response.{stage}": ({"response": RESPONSE}, {})
        for stage in ("created", "queued", "in_progress", "completed", "incomplete", "failed")
    },
    "response.output_item.added": ({"output_index": COUNT, "item": ITEM}, {}),
    "response.output_item.done": ({"output_index": COUNT, "item": ITEM}, {}),
    "response.content_part.added": ({**_PART_AT, "part": STREAMED_PART}, {}),
    "response.content_part.done": ({**_PART_AT, "part": STREAMED_PART}, {}),
    # The SDK requires `logprobs`, the specification makes them optional: an empty list suits both.
    "response.output_text.delta": ({**_PART_AT, "delta": TEXT, "logprobs": LOGPROBS}, _PADDING),
    "response.output_text.done": ({**_PART_AT, "text": TEXT, "logprobs": LOGPROBS}, {}),
    "response.output_text.annotation.added": (
        {**_PART_AT, "annotation_index": COUNT, "annotation": ANNOTATION},
        {},
    ),
    "response.refusal.delta": ({**_PART_AT, "delta": TEXT}, _PADDING),
    "response.refusal.done": ({**_PART_AT, "refusal": TEXT}, {}),
    "response.reasoning_text.delta": ({**_PART_AT, "delta": TEXT}, _PADDING),
    "response.reasoning_text.done": ({**_PART_AT, "text": TEXT}, {}),
    "response.reasoning.delta": ({**_PART_AT, "delta": TEXT}, _PADDING),
    "response.reasoning.done": ({**_PART_AT, "text": TEXT}, {}),
    "response.reasoning_summary_part.added": ({**_SUMMARY_AT, "part": SUMMARY_TEXT}, {}),
    "response.reasoning_summary_part.done": ({**_SUMMARY_AT, "part": SUMMARY_TEXT}, {}),
    "response.reasoning_summary_text.delta": ({**_SUMMARY_AT, "delta": TEXT}, _PADDING),
    "response.reasoning_summary_text.done": ({**_SUMMARY_AT, "text": TEXT}, {}),
    "response.function_call_arguments.delta": ({**_ITEM_AT, "delta": TEXT}, _PADDING),
    "response.function_call_arguments.done": ({**_ITEM_AT, "arguments": TEXT}, {"name": WORD}),
    "response.custom_tool_call_input.delta": ({**_ITEM_AT, "delta": TEXT}, _PADDING),
    "response.custom_tool_call_input.done": ({**_ITEM_AT, "input": TEXT}, {}),
    # The SDK's shell events name no item; one that does is no worse.
    "response.shell_call_command.added": ({**_COMMAND_AT, "command": TEXT}, {"item_id": WORD}),
    "response.shell_call_command.delta": ({**_COMMAND_AT, "delta": TEXT}, {"item_id": WORD, **_PADDING}),
    "response.shell_call_command.done": ({**_COMMAND_AT, "command": TEXT}, {"item_id": WORD}),
    **{
        f"response.{kind}.{step}": (_ITEM_AT, {})
        for kind, steps in {
            "web_search_call": ("in_progress", "searching", "completed"),
            "file_search_call": ("in_progress", "searching", "completed"),
            "code_interpreter_call": ("in_progress", "interpreting", "completed"),
            "image_generation_call": ("in_progress", "generating", "completed"),
            "mcp_call": ("in_progress", "completed", "failed"),
            "mcp_list_tools": ("in_progress", "completed", "failed"),
        }.items()
        for step in steps
    },
    "response.compaction.compacting": (_ITEM_AT, {}),
    "response.code_interpreter_call_code.delta": ({**_ITEM_AT, "delta": TEXT}, _PADDING),
    "response.code_interpreter_call_code.done": ({**_ITEM_AT, "code": TEXT}, {}),
    "response.image_generation_call.partial_image": (
        {**_ITEM_AT, "partial_image_index": COUNT, "partial_image_b64": TEXT},
        IMAGE,
    ),
    "response.mcp_call_arguments.delta": ({**_ITEM_AT, "delta": TEXT}, _PADDING),
    "response.mcp_call_arguments.done": ({**_ITEM_AT, "arguments": TEXT}, {}),
    # Both shapes at once: nested for the specification, flat for the SDK.
    "error": (
        {
            "error": shape({"type": WORD, "code": nullable(WORD), "message": WORD, "param": nullable(WORD)}),
            "code": nullable(WORD),
            "message": WORD,
            "param": nullable(WORD),
        },
        {},
    ),
}

EVENTS: dict[str, Schema] = {kind: _event(kind, required, optional) for kind, (required, optional) in _FIELDS.items()}
