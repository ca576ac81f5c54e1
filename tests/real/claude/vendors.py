"""Four vendors as servers that forgive nothing: whole bodies, with what each of them answers a breach with.

The rules are those that their own pages and their users' reports tell; which of them the gateway knows does not matter
here. `playing(target, refusals, *steps)` makes steps of a `ScriptedUpstream` that answer 400 where the vendor would.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from isthmus.testing import RecordedRequest, Step, chat_chunks, error, stream
from strict_vendors import refused_by_mistral

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


def playing(target: str, refusals: list[str], *steps: Step) -> list[Step]:
    """Steps that answer like the vendor: 400 where it refuses the body, which is noted, and the step otherwise."""

    def strictly(answer: Step) -> Step:
        def handle(request: RecordedRequest) -> Any:
            why = refused(target, request.json)
            if why is None:
                return answer(request) if callable(answer) else answer
            refusals.append(f"{why} ({' '.join(message['role'] for message in request.json['messages'])})")
            return error(400, why)

        return handle

    return [strictly(step) for step in steps]


def thinking_in_content(text: str, *, reasoning: str, calls: list[Any]) -> Step:
    """An answer as Mistral's reasoning models stream it: the thinking is a chunk of the content."""
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": reasoning}]}]
    chunks = chat_chunks(text, calls=calls)
    first = {**chunks[0], "choices": [{"index": 0, "delta": {"role": "assistant", "content": thought}}]}
    return stream([first, *chunks[1:]])


def refused(target: str, body: Json) -> str | None:
    """What the vendor says to a body that it does not take; `None`: it takes it."""
    return _refused_by_all(target, body) or _OWN[target](body)


def _refused_by_all(target: str, body: Json) -> str | None:
    extra = set(body) - _FIELDS.get(target, set(body))
    if extra:
        return f"{sorted(extra)[0]}: Extra inputs are not permitted"
    tools = [tool for tool in body.get("tools", ()) if tool["type"] == "function"]
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) != len(names):
        return "Tool names must be unique."
    if odd := [name for name in names if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", name)]:
        return f"Invalid 'tools[].function.name': '{odd[0]}' does not match '^[a-zA-Z0-9_-]{{1,64}}$'"
    if odd := [tool for tool in tools if tool["function"].get("parameters", {}).get("type") != "object"]:
        return f"Invalid schema for function '{odd[0]['function']['name']}': schema must be of type 'object'"
    if not body.get("tools", True):
        return "[] is too short - 'tools'"
    if "tool_choice" in body and "tools" not in body:
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
    return None


def _refused_by_mistral(body: Json) -> str | None:
    return refused_by_mistral(body["messages"])


def _refused_by_llama(body: Json) -> str | None:
    """A chat template: one system message, first, and never two messages of one speaker in a row."""
    roles = [message["role"] for message in body["messages"]]
    if "system" in roles[1:]:
        return "only the first message may be a system message"
    if any(one == other != "tool" for one, other in pairwise(roles)):
        return "Conversation roles must alternate"
    return None


_OWN: dict[str, Callable[[Json], str | None]] = {
    DEEPSEEK: _refused_by_deepseek,
    GLM: _refused_by_glm,
    MISTRAL: _refused_by_mistral,
    LLAMA: _refused_by_llama,
}
