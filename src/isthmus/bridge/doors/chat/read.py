"""A Chat Completions request → the Responses request that means the same.

Fields with another name or shape are translated here; all others pass through under their own name, so that the
planner decides about them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec

from isthmus.bridge.doors.chat.read_messages import missing, translate_messages
from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits, check_body, few_values
from isthmus.bridge.parse import Request, decode_json, parse_request
from isthmus.errors import RequestRefused
from isthmus.protocol.chat import CreateChatCompletion
from isthmus.protocol.json import JsonObject, without_nulls


class ChatRequest(msgspec.Struct, frozen=True):
    request: Request
    include_usage: bool
    legacy_functions: bool
    messages: list[JsonObject]  # as they were sent
    path: Callable[[str], str]  # a planner's path in the caller's own words: `input[3]` → `messages[2]`


_INDEXED: Final = re.compile(r"^(input|tools)\[(\d+)\](.*)$", re.DOTALL)
_QUOTED: Final = re.compile(r"`([^`]+)`")
_PATHS: Final = {
    "input": "messages",
    "text.format": "response_format",
    "text.format.schema": "response_format.json_schema.schema",
    "text.verbosity": "verbosity",
    "reasoning.effort": "reasoning_effort",
    "max_output_tokens": "max_completion_tokens",
}
_TRANSLATED: Final = frozenset(
    {
        *("messages", "tools", "tool_choice", "functions", "function_call", "response_format", "max_tokens"),
        *("max_completion_tokens", "reasoning_effort", "verbosity", "logprobs", "stream_options"),
        *("web_search_options", "store"),
    }
)


def receive_chat_request(
    raw: bytes | bytearray | str | JsonObject, limits: RequestLimits = DEFAULT_LIMITS
) -> ChatRequest:
    body = raw if isinstance(raw, dict) else decode_json(raw, limits)
    if not isinstance(body, dict):
        raise RequestRefused("the request body must be a JSON object", code="invalid_type")
    few = few_values(raw, limits)
    try:  # before anything is translated
        if not few:
            check_body({**body, "input": body.get("messages")}, limits)
    except RequestRefused as error:
        raise reword(error, lambda path: _PATHS.get(path, path)) from error
    chat = _checked(body)
    if not chat["messages"]:
        raise RequestRefused("`messages` is empty; send at least one message", code="invalid_value", param="messages")
    items, messages = translate_messages(chat["messages"])
    tools = _translate_tools(chat)
    translated: JsonObject = {name: value for name, value in body.items() if name not in _TRANSLATED}
    translated |= {"input": items, "store": bool(chat.get("store"))}
    translated |= _translate_options(chat, [tool for tool, _, _ in tools])
    if chat.get("logprobs"):
        translated.setdefault("top_logprobs", 0)
        translated["include"] = ["message.output_text.logprobs"]

    def path(path: str) -> str:
        found = _INDEXED.match(path)
        if found is None:
            return _PATHS.get(path, path)
        index, rest = int(found[2]), found[3]
        if found[1] == "input":
            return messages.get(index, "messages") + rest
        _, tool, fields = tools[index] if index < len(tools) else (None, f"tools[{index}]", f"tools[{index}]")
        return tool + rest if rest in ("", ".type") else fields + rest

    try:
        request = parse_request(translated, limits, few)
    except RequestRefused as error:  # the common parser speaks of `input`; the caller wrote `messages`
        raise reword(error, path) from error
    if not isinstance(raw, dict):
        request = msgspec.structs.replace(request, size=len(raw))
    include_usage = bool((chat.get("stream_options") or {}).get("include_usage"))
    return ChatRequest(request, include_usage, bool(chat.get("functions")), chat["messages"], path)


def reword(error: RequestRefused, path: Callable[[str], str]) -> RequestRefused:
    """A refusal of the parser or planner, with every field that it names as the caller wrote it."""
    told, metadata = error.metadata.get("diagnostics") or (), error.metadata
    if told:
        metadata = {**metadata, "diagnostics": [{**said, "path": path(said["path"])} for said in told]}
    named = {given: path(given) for given in (error.param, *(said["path"] for said in told)) if given}
    message = _QUOTED.sub(lambda found: f"`{named.get(found[1], found[1])}`", error.message)
    return RequestRefused(message, code=error.code, param=named.get(error.param or ""), metadata=metadata)


def _checked(body: JsonObject) -> CreateChatCompletion:
    try:
        return msgspec.convert(body, CreateChatCompletion)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at `$")
        lacking = re.search(r"missing required field `([^`]+)`", words)
        if lacking is not None:
            raise missing(lacking[1]) from error
        param = where.rstrip("`").lstrip(".")
        said = f"`{param}`: {words[0].lower()}{words[1:]}"
        raise RequestRefused(said, code="invalid_type", param=param or None) from error


def _translate_options(chat: CreateChatCompletion, tools: list[JsonObject]) -> JsonObject:
    limit, effort = chat.get("max_completion_tokens"), chat.get("reasoning_effort")
    given = cast(JsonObject | None, chat.get("response_format"))
    if given is not None and given["type"] == "json_schema" and not isinstance(given.get("json_schema"), dict):
        raise missing("response_format.json_schema", "give it a `name` and a `schema`")
    text_format = None if given is None else _flat(given)
    return without_nulls(
        {
            "tools": tools or None,
            "tool_choice": _translate_choice(chat.get("tool_choice"), chat.get("function_call")),
            "max_output_tokens": chat.get("max_tokens") if limit is None else limit,
            "reasoning": None if effort is None else {"effort": effort},
            "text": without_nulls({"verbosity": chat.get("verbosity"), "format": text_format}) or None,
        }
    )


def _translate_tools(chat: CreateChatCompletion) -> list[tuple[JsonObject, str, str]]:
    """Tools (also legacy `functions`, and web search) as Responses spells them, each with its place and its fields'."""
    found: list[tuple[JsonObject, str, str]] = []
    for index, tool in enumerate(chat.get("tools") or ()):
        path = f"tools[{index}]"
        inner = _nested(tool) if tool.get("type") in ("function", "custom") else None
        fields = path if inner is None else f"{path}.{tool['type']}"
        found.append((_translate_tool(tool, inner, path), path, fields))
    for index, function in enumerate(chat.get("functions") or ()):
        found.append(({"type": "function", **function}, f"functions[{index}]", f"functions[{index}]"))
    options = chat.get("web_search_options")
    if options is not None:
        # Chat nests an approximate location; Responses spells it flat.
        location = options.get("user_location")
        placed = {"user_location": _flat({"type": "approximate", **location})} if isinstance(location, dict) else {}
        found.append(({"type": "web_search", **options, **placed}, "web_search_options", "web_search_options"))
    return found


def _translate_tool(tool: JsonObject, inner: JsonObject | None, path: str) -> JsonObject:
    """`inner`: the fields of a function or custom tool, which chat nests under its type."""
    if tool.get("type") == "function":
        if inner is None:
            raise missing(f"{path}.function", "give it a `name`")
        if not isinstance(inner.get("name"), str) or not inner["name"]:
            said = f"`{path}.function` has no `name`; give each function tool one"
            raise RequestRefused(said, code="missing_required_parameter", param=f"{path}.function.name")
    elif inner is not None and isinstance(inner.get("format"), dict):
        return {**_flat(tool), "format": _flat(inner["format"])}  # the grammar is nested one level deeper
    return tool if inner is None else _flat(tool)


def _translate_choice(choice: str | JsonObject | None, legacy: str | JsonObject | None) -> str | JsonObject | None:
    if choice is None:
        return {"type": "function", "name": legacy.get("name")} if isinstance(legacy, dict) else legacy
    if isinstance(choice, str):
        return choice
    inner = _nested(choice)
    if inner is not None and choice["type"] == "allowed_tools":
        named = [_flat(tool) for tool in inner.get("tools") or () if isinstance(tool, dict)]
        return {"type": "allowed_tools", "mode": inner.get("mode", "auto"), "tools": named}
    return _flat(choice)


def _nested(given: Mapping[str, Any]) -> JsonObject | None:
    kind = given.get("type")
    inner = given.get(kind) if isinstance(kind, str) else None
    return inner if isinstance(inner, dict) else None


def _flat(given: JsonObject) -> JsonObject:
    """What chat nests under its own type, as Responses spells it."""
    inner = _nested(given)
    return given if inner is None else {"type": given["type"], **inner}
