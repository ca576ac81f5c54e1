"""Schemas of every output item and content part that we send, in our own words.

Facts: Open Responses 2026-04-24 for messages, reasoning, function calls and compaction; the types of the
`openai` SDK for the rest. The specification's prose gives every item `id`, `type` and `status`.
"""

from __future__ import annotations

from wire.shapes import (
    COUNT,
    ITEM_ID,
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
    shape,
)

STATUS = one_of("in_progress", "completed", "incomplete")
HOSTED_STATUS = one_of(
    "in_progress", "searching", "interpreting", "generating", "calling", "completed", "incomplete", "failed"
)

ANNOTATION = by_type(
    {
        "url_citation": shape(
            {"type": const("url_citation"), "url": TEXT, "title": TEXT, "start_index": COUNT, "end_index": COUNT}
        ),
        "file_citation": shape({"type": const("file_citation"), "file_id": WORD, "filename": TEXT, "index": COUNT}),
        "container_file_citation": shape(
            {
                "type": const("container_file_citation"),
                "container_id": WORD,
                "file_id": WORD,
                "filename": TEXT,
                "start_index": COUNT,
                "end_index": COUNT,
            }
        ),
        "file_path": shape({"type": const("file_path"), "file_id": WORD, "index": COUNT}),
    }
)

_TOKEN: dict[str, Schema] = {"token": TEXT, "logprob": NUMBER, "bytes": list_of(COUNT)}
LOGPROBS = list_of(shape({**_TOKEN, "top_logprobs": list_of(shape(_TOKEN))}))

OUTPUT_TEXT = shape(
    {"type": const("output_text"), "text": TEXT, "annotations": list_of(ANNOTATION)}, {"logprobs": LOGPROBS}
)
REFUSAL = shape({"type": const("refusal"), "refusal": TEXT})
REASONING_TEXT = shape({"type": const("reasoning_text"), "text": TEXT})
SUMMARY_TEXT = shape({"type": const("summary_text"), "text": TEXT})
MESSAGE_PART = by_type({"output_text": OUTPUT_TEXT, "refusal": REFUSAL})
STREAMED_PART = by_type({"output_text": OUTPUT_TEXT, "refusal": REFUSAL, "reasoning_text": REASONING_TEXT})

_DIFF = {"path": TEXT, "diff": TEXT}
PATCH_OPERATION = by_type(
    {
        "create_file": shape({"type": const("create_file"), **_DIFF}),
        "update_file": shape({"type": const("update_file"), **_DIFF}),
        "delete_file": shape({"type": const("delete_file"), "path": TEXT}),
    }
)

_LIMITS = {"timeout_ms": nullable(COUNT), "max_output_length": nullable(COUNT)}
"""Null means no limit here: the `shell` tool's own schema makes both required and nullable."""
SHELL_ACTION = shape({"commands": list_of(TEXT)}, _LIMITS)
LOCAL_SHELL_ACTION = shape(
    {"type": const("exec"), "command": list_of(TEXT), "env": {"type": "object", "additionalProperties": TEXT}},
    {"timeout_ms": COUNT, "user": TEXT, "working_directory": TEXT},
)
WEB_SEARCH_ACTION = by_type(
    {
        "search": shape(
            {"type": const("search"), "query": TEXT},
            {"queries": list_of(TEXT), "sources": list_of(shape({"type": const("url"), "url": TEXT}, {"title": TEXT}))},
        ),
        "open_page": shape({"type": const("open_page"), "url": TEXT}),
        "find_in_page": shape({"type": const("find_in_page"), "url": TEXT, "pattern": TEXT}),
    }
)


_SEALED = {"encrypted_content": WORD}
"""What the model read of a call that ran here, for the next request."""


def _item(kind: str, required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return shape({"type": const(kind), "id": ITEM_ID, "status": STATUS, **required}, optional)


def _hosted(kind: str, required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return shape({"type": const(kind), "id": ITEM_ID, "status": HOSTED_STATUS, **required}, optional)


IMAGE: dict[str, Schema] = {
    "background": one_of("transparent", "opaque", "auto"),
    "output_format": one_of("png", "webp", "jpeg"),
    "quality": one_of("low", "medium", "high", "auto"),
    "size": WORD,
}
"""What is said of an image, of a partial one too."""
IMAGE_ERROR = shape({"type": WORD, "code": WORD, "message": WORD, "param": nullable(WORD)})
ITEMS: dict[str, Schema] = {
    "message": _item(
        "message",
        {"role": const("assistant"), "content": list_of(MESSAGE_PART)},
        {"phase": one_of("commentary", "final_answer")},
    ),
    "reasoning": _item(
        "reasoning",
        {"summary": list_of(SUMMARY_TEXT)},
        {"content": list_of(REASONING_TEXT), "encrypted_content": WORD},
    ),
    "function_call": _item("function_call", {"call_id": WORD, "name": WORD, "arguments": TEXT}, {"namespace": WORD}),
    "custom_tool_call": _item("custom_tool_call", {"call_id": WORD, "name": WORD, "input": TEXT}, {"namespace": WORD}),
    "shell_call": _item("shell_call", {"call_id": WORD, "action": SHELL_ACTION}, {"environment": nullable(OBJECT)}),
    "local_shell_call": _item("local_shell_call", {"call_id": WORD, "action": LOCAL_SHELL_ACTION}),
    "apply_patch_call": _item("apply_patch_call", {"call_id": WORD, "operation": PATCH_OPERATION}),
    "tool_search_call": _item(
        "tool_search_call",
        {"call_id": nullable(WORD), "execution": one_of("client", "server"), "arguments": OBJECT},
    ),
    "tool_search_output": _item(
        "tool_search_output",
        {"call_id": nullable(WORD), "execution": one_of("client", "server"), "tools": list_of(OBJECT)},
    ),
    "web_search_call": _item(
        "web_search_call",
        {
            "action": WEB_SEARCH_ACTION,
            "status": one_of("in_progress", "searching", "completed", "incomplete", "failed"),
        },
        _SEALED,
    ),
    "file_search_call": _hosted("file_search_call", {"queries": list_of(TEXT)}, {"results": nullable(list_of(OBJECT))}),
    "code_interpreter_call": _hosted(
        "code_interpreter_call",
        {"code": nullable(TEXT), "container_id": WORD, "outputs": nullable(list_of(OBJECT))},
    ),
    "image_generation_call": _hosted(
        "image_generation_call",
        {"result": nullable(TEXT)},
        {
            "revised_prompt": nullable(TEXT),
            "error": IMAGE_ERROR,
            "action": one_of("generate", "edit"),
            **IMAGE,
            **_SEALED,
        },
    ),
    "mcp_call": _hosted(
        "mcp_call",
        {"server_label": WORD, "name": WORD, "arguments": TEXT},
        {"output": nullable(TEXT), "error": {}, "approval_request_id": nullable(WORD), **_SEALED},
    ),
    "mcp_list_tools": _hosted("mcp_list_tools", {"server_label": WORD, "tools": list_of(OBJECT)}, {"error": {}}),
    "mcp_approval_request": _hosted("mcp_approval_request", {"server_label": WORD, "name": WORD, "arguments": TEXT}),
    "computer_call": _item(
        "computer_call",
        {"call_id": WORD, "pending_safety_checks": list_of(OBJECT)},
        {"action": OBJECT, "actions": list_of(OBJECT)},
    ),
    "compaction": _item("compaction", {"encrypted_content": TEXT}, {"created_by": WORD}),  # empty while it is made
}
ITEM = by_type(ITEMS)
