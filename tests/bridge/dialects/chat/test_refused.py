"""Real servers' words about a field that they do not take, and words that only sound like it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.bridge.dialects.chat.failures import upstream_failure

# Where the words were seen stands beside the patterns in `refused`.
REFUSALS: dict[str, tuple[int, Any, str]] = {
    "vLLM, auto": (
        400,
        {
            "object": "error",
            "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        "tool_choice",
    ),
    "vLLM, required": (
        400,
        {"error": {"message": 'tool_choice="required" requires --tool-call-parser to be set', "code": 400}},
        "tool_choice",
    ),
    "vLLM, old": (
        400,
        {"object": "error", "message": 'tool_choice must either be a named tool, "auto", or "none".', "code": 400},
        "tool_choice",
    ),
    "Pydantic, detail": (
        422,
        {
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "parallel_tool_calls"],
                    "msg": "Extra inputs are not permitted",
                }
            ]
        },
        "parallel_tool_calls",
    ),
    "Pydantic, message": (
        400,
        {
            "object": "Error",
            "message": [
                {"type": "extra_forbidden", "loc": ["body", "tool_choice"], "msg": "Extra inputs are not permitted"}
            ],
            "type": "invalid_request_error",
            "code": 3001,
        },
        "tool_choice",
    ),
    "LM Studio, format": (
        400,
        {"error": "'response_format.type' must be 'json_schema' or 'text'"},
        "response_format",
    ),
    "LM Studio, choice": (
        400,
        {"error": "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"},
        "tool_choice",
    ),
    "llama.cpp, format": (
        400,
        {"error": {"code": 400, "message": 'response_format type must be one of "text" or "json_object", but got: x'}},
        "response_format",
    ),
    "llama.cpp, grammar": (
        400,
        {"error": {"code": 400, "message": "Cannot use custom grammar constraints with tools."}},
        "response_format",
    ),
    "llama.cpp, no template": (
        500,
        {"error": {"code": 500, "message": "tool_choice param requires --jinja flag", "type": "server_error"}},
        "tool_choice",
    ),
    "OpenAI": (
        400,
        {
            "error": {
                "message": "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
                "type": "invalid_request_error",
                "param": "parallel_tool_calls",
                "code": "unsupported_parameter",
            }
        },
        "parallel_tool_calls",
    ),
    "serde": (
        422,
        "Failed to deserialize the JSON body into the target type: response_format: response_format.type `json_schema` "
        "is unavailable now at line 32 column 1",
        "response_format",
    ),
    "TGI": (
        422,
        {"error": "response_format: unknown variant `json_schema`, expected `json_object` or `regex`"},
        "response_format",
    ),
    "one kind of value": (
        400,
        {"object": "error", "message": "tool_choice 'required' is not supported by this parser", "code": 400},
        "tool_choice",
    ),
    "in OpenAI's shape": (
        400,
        {"error": {"message": "tool_choice is not supported for this model", "param": "tool_choice", "code": None}},
        "tool_choice",
    ),
    "the format by its own name": (
        400,
        {"error": {"message": "json_schema is not supported by this model"}},
        "response_format",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refused_field_is_known_by_its_name(case: str) -> None:
    status, body, field = REFUSALS[case]
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    failure = upstream_failure(status, raw, provider="p")
    assert (failure.code, failure.metadata.get("refused")) == ("invalid_prompt", field)


OTHERS: dict[str, tuple[int, Any]] = {
    "their schema": (
        400,
        {
            "error": {
                "message": "Invalid schema for response_format 'answer': 'additionalProperties' is required",
                "param": "response_format",
            }
        },
    ),
    "inside the schema": (400, {"error": {"message": "response_format.json_schema.schema: unknown keyword `foo`"}}),
    "no such tool": (400, {"error": {"message": "tool_choice: unknown tool `f`"}}),
    "tool that is missing": (400, {"error": {"message": "Tool 'f' in tool_choice is not present in tools; invalid"}}),
    "another field": (400, {"error": {"message": "temperature is not supported with this model"}}),
    "two fields": (400, {"error": {"message": "tool_choice and response_format cannot be used together"}}),
    "only a mention": (400, {"error": {"message": "while reading tool_choice the parser ran out of input"}}),
    "an image": (400, {"error": {"message": "this model does not support image input"}}),
    "tools as such": (400, {"error": {"message": "registry.ollama.ai/library/gemma:2b does not support tools"}}),
    "a server error": (500, {"error": {"message": "tool_choice is not supported"}}),
    "a rate limit": (429, {"error": {"message": "tool_choice requests are not allowed so often"}}),
    "nothing": (400, {}),
    "odd shapes": (400, {"detail": [1, {"loc": "x", "msg": 3}, {"msg": "no"}], "param": ["tool_choice"]}),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_is_no_refusal_of_a_field_is_not_taken_for_one(case: str) -> None:
    status, body = OTHERS[case]
    assert "refused" not in upstream_failure(status, json.dumps(body).encode(), provider="p").metadata


def test_pydantics_list_of_problems_is_told_in_words() -> None:
    body = {"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "Field required", "type": "missing"}]}
    assert (
        upstream_failure(422, json.dumps(body).encode(), provider="p").message == "body.messages.0.role: Field required"
    )


def test_image_refusals_keep_the_servers_words_and_are_never_tried_again() -> None:
    for status, words in (
        (400, "this model does not support image input"),
        (400, "At most 0 image(s) may be provided in one prompt."),
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    ):
        failure = upstream_failure(status, json.dumps({"error": {"message": words}}).encode(), provider="p")
        assert (failure.code, failure.message, failure.retryable) == ("invalid_prompt", words, False)


@pytest.mark.parametrize(
    "words",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.3: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
    ],
)
def test_a_refused_thinking_block_is_known_by_its_words(words: str) -> None:
    body = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": words}}).encode()
    failure = upstream_failure(400, body, provider="anthropic")
    assert failure.code == "invalid_prompt"
    assert failure.metadata["refused"] == "thinking_blocks"
