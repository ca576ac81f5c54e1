"""A Messages request → the Responses request that means the same, and what had to be decided on the way.

Fields with another name or shape are translated here; all others pass through under their own name, so that the
planner decides about them. Whatever is said of the request afterwards names its own fields (`path`). No beta is
looked at: clients send some that no list knows, and none is needed for what is understood here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.doors.chat.read import reword
from isthmus.bridge.doors.messages import VERSION
from isthmus.bridge.doors.messages.read_options import SESSION, TRANSLATED, OptionReader
from isthmus.bridge.doors.messages.read_tools import ToolReader
from isthmus.bridge.doors.messages.read_turns import Origin, TurnReader
from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits, check_body, few_values
from isthmus.bridge.parse import Request, decode_json, parse_request
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.protocol.messages import CountTokens, CreateMessage

_LONG_WINDOW: Final = "[1m]"
"""What Claude Code puts behind a name to ask for a longer window; it mostly cuts it off itself."""
_OURS: Final = frozenset(
    {
        *("input", "instructions", "include", "reasoning", "text", "background", "conversation", "max_output_tokens"),
        *("parallel_tool_calls", "stop", "stream_options", "truncation", "generate", "prompt"),
    }
)
"""Fields of Responses that mean nothing in a Messages request."""
_ITEM: Final = re.compile(r"^input\[(\d+)\](?:\.(?:content|output)\[(\d+)\])?(.*)$", re.DOTALL)
_TOOL: Final = re.compile(r"^tools\[(\d+)\](.*)$", re.DOTALL)
_FIELDS: Final = {
    ".prompt_cache_breakpoint": ".cache_control",
    ".encrypted_content": ".signature",
    ".arguments": ".input",
    ".call_id": ".id",
    ".parameters": ".input_schema",
}
_PATHS: Final = {
    "input": "messages",
    "instructions": "system",
    "max_output_tokens": "max_tokens",
    "stop": "stop_sequences",
    "reasoning": "thinking",
    "reasoning.effort": "thinking",
    "reasoning.summary": "thinking.display",
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
    "safety_identifier": "metadata.user_id",
    "prompt_cache_retention": "cache_control.ttl",
    "input.prompt_cache_breakpoint": "messages.cache_control",
}


class MessagesRequest(msgspec.Struct, frozen=True):
    request: Request
    decisions: tuple[CompatibilityDecision, ...]
    model: str
    """As it was asked for."""
    shows_thinking: bool
    """Whether the words of thinking are told; its signature always is."""
    path: Callable[[str], str]
    """A planner's path in the caller's own words: `input[3].content[0]` → `messages[2].content[1]`."""


def receive_messages_request(
    raw: bytes | bytearray | str | JsonObject,
    limits: RequestLimits = DEFAULT_LIMITS,
    headers: Mapping[str, str] | None = None,
    *,
    counting: bool = False,
) -> MessagesRequest:
    """`headers` with small names; `counting`: nothing is to be answered, so that no limit for it is needed."""
    body = raw if isinstance(raw, dict) else decode_json(raw, limits)
    if not isinstance(body, dict):
        raise RequestRefused("the request body must be a JSON object", code="invalid_type")
    few = few_values(raw, limits)
    try:  # before anything is translated
        if not few:
            check_body({**body, "input": body.get("messages")}, limits)
    except RequestRefused as error:
        raise reword(error, lambda path: _PATHS.get(path, path)) from error
    asked, told = _checked(body, counting), headers or {}
    turns, tools = TurnReader(), ToolReader()
    options = OptionReader(body, told.get(VERSION, ""))
    instructions = turns.lead(asked["system"]) if asked.get("system") else ""
    turns.take(asked["messages"])
    _check_end(turns, asked)
    if isinstance(mark := asked.get("cache_control"), dict):
        turns.mark_last(mark)
    tools.take(asked.get("tools") or ())
    translated = _pass_on(body, options)
    translated |= {"model": _model(asked["model"]), "input": turns.items, "store": bool(body.get("store"))}
    translated |= tools.choose(asked.get("tool_choice")) | options.read(asked, told.get(SESSION, ""), turns.effort)
    # Thinking is carried by the client, sealed: what a vendor needs again has no other way back.
    translated["include"] = ["reasoning.encrypted_content"]
    if instructions:
        translated["instructions"] = instructions
    if tools.tools or asked.get("tools") is not None:
        translated["tools"] = tools.tools
    if turns.ttl:
        translated["prompt_cache_retention"] = "24h"
    if not counting:
        translated["max_output_tokens"] = body["max_tokens"]
    path = _paths(turns.origins, tools.paths, options.paths)
    try:
        request = parse_request(translated, limits, few)
    except RequestRefused as error:  # the common parser speaks of `input`; the caller wrote `messages`
        raise reword(error, path) from error
    if not isinstance(raw, dict):
        request = msgspec.structs.replace(request, size=len(raw))
    decisions = (*_about_system(asked, instructions), *turns.decisions, *tools.decisions, *options.decisions)
    thinking = asked.get("thinking")
    shown = thinking is None or thinking.get("display") != "omitted"
    return MessagesRequest(request, decisions, asked["model"], shown, path)


def _checked(body: JsonObject, counting: bool) -> CreateMessage:
    try:
        checked: Any = msgspec.convert(body, CountTokens if counting else CreateMessage)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at `$")
        param = where.rstrip("`").lstrip(".")
        if lacking := re.search(r"missing required field `([^`]+)`", words):
            param = f"{param}.{lacking[1]}" if param else lacking[1]
            raise RequestRefused(f"`{param}` is missing", code="missing_required_parameter", param=param) from error
        said = f"`{param}`: {words[0].lower()}{words[1:]}"
        raise RequestRefused(said, code="invalid_type", param=param or None) from error
    if not checked["messages"]:
        raise RequestRefused("`messages` is empty; send at least one message", code="invalid_value", param="messages")
    if not counting and checked["max_tokens"] < 1:
        words = "`max_tokens` must be at least 1; nothing here warms a cache without an answer"
        raise RequestRefused(words, code="invalid_value", param="max_tokens")
    asked: CreateMessage = checked
    return asked


def _check_end(turns: TurnReader, asked: CountTokens) -> None:
    """Words put into the model's mouth: it answers them, it does not go on with them."""
    last = len(asked["messages"]) - 1
    if asked["messages"][last].get("role") == "assistant":
        reason = "an answer cannot be begun for the model here; it is asked to go on, and begins anew"
        turns.decide(f"messages[{last}]", "degraded", reason)


def _pass_on(body: JsonObject, options: OptionReader) -> JsonObject:
    translated: JsonObject = {}
    for name, value in body.items():
        if name in _OURS:
            # Quoted, for the bare name is that of the field which something else became.
            reason = "not a parameter of the Messages API"
            options.decisions.append(CompatibilityDecision(f'["{name}"]', "ignored", reason))
        elif name not in TRANSLATED:
            translated[name] = value
    return translated


def _model(name: str) -> str:
    return name.removesuffix(_LONG_WINDOW)


def _about_system(asked: CountTokens, instructions: str) -> list[CompatibilityDecision]:
    """Where it became an item, or nothing is left of it, no field of the request speaks for it."""
    if asked.get("system") is None or instructions:
        return []
    return [CompatibilityDecision("system", "supported", "sent as messages")]


def _paths(origins: list[Origin], tools: list[str], options: Mapping[str, str]) -> Callable[[str], str]:
    known = {**_PATHS, **options}

    def path(given: str) -> str:
        if found := _ITEM.match(given):
            index, part, rest = int(found[1]), found[2], found[3]
            origin = origins[index] if index < len(origins) else Origin("messages")
            where = origin.path
            if part is not None and int(part) < len(origin.parts):
                where = origin.parts[int(part)]
            return where + _FIELDS.get(rest, rest)
        if found := _TOOL.match(given):
            index, rest = int(found[1]), found[2]
            return (tools[index] if index < len(tools) else f"tools[{index}]") + _FIELDS.get(rest, rest)
        return known.get(given, given)

    return path
