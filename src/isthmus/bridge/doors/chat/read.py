"""A Chat Completions request → the Responses request that means the same.

Chat callers take the same way as everybody: planner, tools, contracts, store, diagnostics. Fields with
another name or shape are translated here; all others pass through under their own name, so that the
planner decides about them. `ChatRequest.path` turns a planner's path back into the caller's words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from isthmus.bridge.doors.chat.read_messages import translate_messages
from isthmus.bridge.doors.chat.read_tools import ToolOrigin, translate_choice, translate_tools
from isthmus.bridge.parse import Request, decode_json, parse_request
from isthmus.errors import RequestRefused
from isthmus.protocol.chat import CreateChatCompletion
from isthmus.protocol.json import JsonObject


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The translated request, and what the reply must remember of the original."""

    request: Request
    include_usage: bool
    legacy_functions: bool
    origins: Origins

    def path(self, path: str) -> str:
        return self.origins.path(path)


@dataclass(frozen=True, slots=True)
class Origins:
    """What the caller wrote where: the way back from a planner's path."""

    messages: Mapping[int, str]
    """Index of each input item → the message it came from."""
    tools: Sequence[ToolOrigin]

    def path(self, path: str) -> str:
        """A planner's path in the caller's own words: `input[3]` → `messages[2]`."""
        renamed = _PATHS.get(path)
        if renamed is not None:
            return renamed
        found = _INDEXED.match(path)
        if found is None:
            return path
        index, rest = int(found[2]), found[3]
        if found[1] == "input":
            return self.messages.get(index, "messages") + rest
        return self.tools[index].path(rest) if index < len(self.tools) else path


_INDEXED: Final = re.compile(r"^(input|tools)\[(\d+)\](.*)$", re.DOTALL)
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
        "messages",
        "tools",
        "tool_choice",
        "functions",
        "function_call",
        "response_format",
        "max_tokens",
        "max_completion_tokens",
        "reasoning_effort",
        "verbosity",
        "logprobs",
        "stream_options",
        "web_search_options",
        "store",
    }
)


def receive_chat_request(raw: bytes | str | JsonObject) -> ChatRequest:
    """Check a Chat Completions request and translate it."""
    body = raw if isinstance(raw, dict) else decode_json(raw)
    if not isinstance(body, dict):
        raise RequestRefused("the request body must be a JSON object", code="invalid_type")
    chat = _checked(body)
    if not chat["messages"]:
        raise RequestRefused("`messages` is empty; send at least one message", code="invalid_value", param="messages")
    items, messages = translate_messages(chat["messages"])
    translated: JsonObject = {name: value for name, value in body.items() if name not in _TRANSLATED}
    translated["input"] = items
    translated["store"] = bool(chat.get("store"))
    tools, places = translate_tools(chat.get("tools"), chat.get("functions"), chat.get("web_search_options"))
    origins = Origins(messages, places)
    if tools:
        translated["tools"] = tools
    choice = translate_choice(chat.get("tool_choice"), chat.get("function_call"))
    if choice is not None:
        translated["tool_choice"] = choice
    _translate_options(chat, translated)
    stream_options = chat.get("stream_options") or {}
    return ChatRequest(
        request=_parse(translated, origins),
        include_usage=bool(stream_options.get("include_usage")),
        legacy_functions=bool(chat.get("functions")),
        origins=origins,
    )


def _checked(body: JsonObject) -> CreateChatCompletion:
    try:
        return msgspec.convert(body, CreateChatCompletion)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at `$")
        missing = re.search(r"missing required field `([^`]+)`", words)
        param = missing[1] if missing else where.rstrip("`").lstrip(".")
        said = f"`{param}` is missing" if missing else f"`{param}`: {words[0].lower()}{words[1:]}"
        code = "missing_required_parameter" if missing else "invalid_type"
        raise RequestRefused(said, code=code, param=param or None) from error


def _translate_options(chat: CreateChatCompletion, translated: JsonObject) -> None:
    limit = chat.get("max_completion_tokens")
    if limit is None:
        limit = chat.get("max_tokens")
    if limit is not None:
        translated["max_output_tokens"] = limit
    effort = chat.get("reasoning_effort")
    if effort is not None:
        translated["reasoning"] = {"effort": effort}
    text: JsonObject = {}
    if chat.get("verbosity") is not None:
        text["verbosity"] = chat.get("verbosity")
    given = chat.get("response_format")
    if given is not None:
        text["format"] = _translate_format(cast(JsonObject, given))
    if text:
        translated["text"] = text
    if chat.get("logprobs"):
        translated.setdefault("top_logprobs", 0)
        translated["include"] = ["message.output_text.logprobs"]


def _translate_format(given: JsonObject) -> JsonObject:
    if given["type"] != "json_schema":
        return given
    inner = given.get("json_schema")
    if not isinstance(inner, dict):
        raise RequestRefused(
            "`response_format.json_schema` is missing; give it a `name` and a `schema`",
            code="missing_required_parameter",
            param="response_format.json_schema",
        )
    return {"type": "json_schema", **inner}


def _parse(translated: JsonObject, origins: Origins) -> Request:
    """Errors of the common parser speak of `input`; the caller wrote `messages`."""
    try:
        return parse_request(translated)
    except RequestRefused as error:
        if error.param is None:
            raise
        param = origins.path(error.param)
        message = error.message.replace(f"`{error.param}`", f"`{param}`")
        raise RequestRefused(message, code=error.code, param=param) from error
