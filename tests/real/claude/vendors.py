"""Four vendors as servers that forgive nothing: whole bodies, with what each of them answers a breach with.

The rules are those that their own pages and their users' reports tell; which of them the gateway knows does not matter
here. `playing(target, *steps)` makes steps of a `ScriptedUpstream` that answer 400 where the vendor would.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from isthmus.testing import RecordedRequest, Step, error
from strict_vendors import refused_by_a_strict_template, refused_by_mistral

Json = dict[str, Any]

DEEPSEEK, GLM = "deepseek/deepseek-v4-pro", "zhipu/glm-5.3"
MISTRAL, LLAMA = "mistral/mistral-medium-3.5", "vllm/meta-llama/Llama-4-Scout"

_USUAL = {
    "model",
    "messages",
    "stream",
    "tools",
    "tool_choice",
    "response_format",
    "max_tokens",
    "temperature",
    "top_p",
}
_FIELDS = {
    DEEPSEEK: _USUAL | {"stream_options", "stop", "user_id", "thinking", "reasoning_effort"},
    GLM: _USUAL | {"stream_options", "stop", "user_id", "thinking", "reasoning_effort"},
    MISTRAL: _USUAL | {"stop", "random_seed", "parallel_tool_calls", "reasoning_effort"},
}
_SIDES = ("system", "user", "assistant", "tool")


def playing(target: str, *steps: Step) -> list[Step]:
    return [strictly(target, step) for step in steps]


def strictly(target: str, answer: Step) -> Step:
    """A step that answers like the vendor: 400 where it refuses the body, `answer` otherwise."""

    def handle(request: RecordedRequest) -> Any:
        why = refused(target, request.json)
        if why is not None:
            return error(400, why)
        return answer(request) if callable(answer) else answer

    return handle


def refused(target: str, body: Json) -> str | None:
    """What the vendor says to a body that it does not take; `None`: it takes it."""
    return _refused_by_all(target, body) or _OWN[target](body)


def _refused_by_all(target: str, body: Json) -> str | None:
    extra = set(body) - _FIELDS.get(target, set(body))
    if extra:
        return f"{sorted(extra)[0]}: Extra inputs are not permitted"
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    if len(set(names)) != len(names):
        return "Tool names must be unique."
    if odd := [name for name in names if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", name)]:
        return f"Invalid 'tools[].function.name': '{odd[0]}' does not match '^[a-zA-Z0-9_-]{{1,64}}$'"
    if odd := [t for t in body.get("tools", ()) if t["function"].get("parameters", {}).get("type") != "object"]:
        return f"Invalid schema for function '{odd[0]['function']['name']}': schema must be of type 'object'"
    if "tools" in body and not names:
        return "[] is too short - 'tools'"
    if "tool_choice" in body and not names:
        return "'tool_choice' is only allowed when 'tools' are specified."
    return _refused_calls(body["messages"])


def _refused_calls(messages: list[Json]) -> str | None:
    """Every call is answered at once, once, under its own id; its arguments are an object."""
    waiting: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] not in _SIDES:
            return f"messages[{index}].role: unknown variant `{message['role']}`"
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"An assistant message with 'tool_calls' must be followed by tool messages. Missing: {waiting}"
        for call in message.get("tool_calls") or ():
            if call["id"] in seen:
                return f"Duplicate tool call id {call['id']}"
            try:
                parsed = json.loads(call["function"]["arguments"])
            except ValueError:
                parsed = None
            if not isinstance(parsed, dict):
                return f"Invalid arguments of tool call {call['id']}"
            seen.add(call["id"])
            waiting.append(call["id"])
    return "tool messages are missing at the end" if waiting else None


def _refused_by_deepseek(body: Json) -> str | None:
    thinks = body.get("thinking", {}).get("type") != "disabled"
    last = max((index for index, message in enumerate(body["messages"]) if message["role"] == "user"), default=0)
    for index, message in enumerate(body["messages"]):
        if isinstance(message.get("content"), list) and any(part["type"] != "text" for part in message["content"]):
            return f"messages[{index}]: unknown variant `image_url`, expected `text`"
        if thinks and index > last and message.get("tool_calls") and "reasoning_content" not in message:
            return f"Missing `reasoning_content` field in the assistant message at message index {index}"
    if thinks and body.get("tool_choice", "auto") not in ("auto", "none"):
        return "Thinking mode does not support this tool_choice"
    if body.get("response_format", {}).get("type") == "json_schema":
        return "This response_format type is unavailable now"
    return None


def _refused_by_glm(body: Json) -> str | None:
    messages = body["messages"]
    if not any(message["role"] == "user" for message in messages):
        return '{"code":"1214","message":"messages is illegal"}'
    if any(message["role"] != "assistant" and not message.get("content") for message in messages):
        return '{"code":"1213","message":"the prompt was not received"}'
    if body.get("tool_choice", "auto") != "auto":
        return '{"code":"1210","message":"tool_choice only supports auto"}'
    if body.get("thinking", {}).get("clear_thinking") is False:
        acted = [message for message in messages if message.get("tool_calls")]
        if any("reasoning_content" not in message for message in acted):
            return '{"code":"1214","message":"reasoning_content is missing"}'
    return None


def _refused_by_mistral(body: Json) -> str | None:
    return refused_by_mistral(body["messages"])


def _refused_by_llama(body: Json) -> str | None:
    return refused_by_a_strict_template(body["messages"])


_OWN: dict[str, Callable[[Json], str | None]] = {
    DEEPSEEK: _refused_by_deepseek,
    GLM: _refused_by_glm,
    MISTRAL: _refused_by_mistral,
    LLAMA: _refused_by_llama,
}
