"""A Chat Completions body → `Question`: what was asked, with what at hand.

The user's words are those of the last message that a person wrote: clients send context in tags, and media
that came out of tools, in the user's voice as well. Wrong shapes are refused like a provider would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from isthmus.demo.directives import BadDirective, Directives, read_directives
from isthmus.protocol.json import JsonObject


class Refused(Exception):
    """An HTTP error, as a provider would send it."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class Result:
    """What came back from a tool."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    model: str
    text: str
    """The user's last words, without directives."""
    earlier: tuple[str, ...]
    """What the user said before, oldest first."""
    directives: Directives
    messages: int
    instructed: bool
    images: int
    """The URLs of the images that came with the last words."""
    media: int
    """Other attachments beside images."""
    tools: tuple[Tool, ...]
    choice: str
    """`auto`, `none` or `required`."""
    named: str | None
    """The one tool that must be called."""
    parallel: bool
    results: tuple[Result, ...]
    """What tools answered since the user's last words."""
    rounds: int
    """How often tools were called since then."""
    format: str
    """`text`, `json_object` or `json_schema`."""
    schema: Any
    """For `json_schema`: what the answer has to satisfy."""
    effort: str | None
    verbosity: str | None


def read_question(body: Mapping[str, Any]) -> Question:
    messages = _messages(body)
    spoken = _spoken(messages)
    last = spoken[-1]
    try:
        text, directives = read_directives(_words(messages[last]))
    except BadDirective as error:
        raise Refused(400, str(error), "invalid_directive") from error
    tools = tuple(_tools(body.get("tools")))
    choice, named = _choice(body.get("tool_choice"), tools)
    since = messages[last + 1 :]
    return Question(
        model=str(body.get("model")),
        text=text,
        earlier=tuple(read_earlier(_words(messages[at])) for at in spoken[:-1]),
        directives=directives,
        messages=len(messages),
        instructed=any(message.get("role") in ("system", "developer") for message in messages),
        images=sum(part.get("type") == "image_url" for part in _parts(messages[last])),
        media=sum(part.get("type") not in ("text", "image_url") for part in _parts(messages[last])),
        tools=tools,
        choice=choice,
        named=named,
        parallel=body.get("parallel_tool_calls") is not False,
        results=tuple(_results(messages, last)),
        rounds=sum(bool(message.get("tool_calls")) for message in since),
        format=str(_object(body.get("response_format")).get("type", "text")),
        schema=_schema(_object(body.get("response_format"))),
        effort=_string(body.get("reasoning_effort")),
        verbosity=_string(body.get("verbosity")),
    )


def read_earlier(text: str) -> str:
    """Past words without their directives; what was wrong with those no longer matters."""
    try:
        return read_directives(text)[0]
    except BadDirective:
        return text


def _messages(body: Mapping[str, Any]) -> list[JsonObject]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused(400, "`messages` must be a list with at least one message", "invalid_request_error")
    if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
        raise Refused(400, "each of `messages` must be an object with a `role`", "invalid_request_error")
    return messages


_CONTEXT: Final = re.compile(r"\s*(?:<([a-zA-Z_][\w-]*)[^>]*>.*</\1>|\[from the output of .*)\s*", re.DOTALL)


_ASIDE: Final = re.compile(r"\s*<(system-reminder)>.*?</\1>\s*", re.DOTALL)


def _words(message: Mapping[str, Any]) -> str:
    """What a person wrote: coding agents put reminders of their own beside it, in the same message."""
    text = _text(message)
    return _ASIDE.sub("\n", text).strip() or text


def _spoken(messages: list[JsonObject]) -> list[int]:
    """Where a person speaks: not blocks of context, nor media out of a tool. Where nobody does, the next best."""
    users = [at for at, message in enumerate(messages) if message["role"] == "user"]
    people = [at for at in users if not _CONTEXT.fullmatch(_text(messages[at]))]
    leading = [at for at, message in enumerate(messages) if message["role"] in ("system", "developer")]
    return people or users[-1:] or leading[-1:] or [0]


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in _parts(message) if isinstance(part.get("text"), str))


def _parts(message: Mapping[str, Any]) -> list[JsonObject]:
    content = message.get("content")
    return [part for part in _list(content) if isinstance(part, dict)]


def _tools(given: object) -> Iterator[Tool]:
    for tool in _list(given):
        function = _object(_object(tool).get("function"))
        if isinstance(function.get("name"), str):
            parameters = _object(function.get("parameters"))
            check_schema(parameters, f"the parameters of tool `{function['name']}`")
            yield Tool(function["name"], str(function.get("description") or ""), parameters)


def check_schema(schema: Any, what: str) -> None:
    """Refuse what is no JSON Schema, as providers do."""
    import jsonschema_rs  # late: a gateway leaves it to its worker processes

    try:
        valid = jsonschema_rs.meta.is_valid(schema)
    except (ValueError, TypeError, jsonschema_rs.ReferencingError):
        valid = False
    if not valid:
        raise Refused(400, f"{what} are not a valid JSON Schema", "invalid_json_schema")


def _choice(given: object, tools: tuple[Tool, ...]) -> tuple[str, str | None]:
    if isinstance(given, dict):
        name = str(_object(given.get("function")).get("name"))
        if all(tool.name != name for tool in tools):
            raise Refused(400, f"`tool_choice` names `{name}`, which is not among `tools`", "invalid_request_error")
        return "required", name
    return (given if given in ("none", "required") else "auto"), None


def _schema(given: JsonObject) -> Any:
    schema = _object(given.get("json_schema")).get("schema", True)
    if schema is not True:
        check_schema(schema, "the contents of `response_format`")
    return schema


def _results(messages: list[JsonObject], last: int) -> Iterator[Result]:
    names = {
        str(call.get("id")): str(_object(call.get("function")).get("name"))
        for message in messages
        for call in _list(message.get("tool_calls"))
        if isinstance(call, dict)
    }
    for message in messages[last + 1 :]:
        if message["role"] == "tool":
            yield Result(names.get(str(message.get("tool_call_id")), "the tool"), _text(message))


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None
