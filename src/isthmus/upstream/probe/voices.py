"""The two dialects of an endpoint: how the same question is put in each, and how its answer is read.

In: a question in neutral words. Out: a body for `chat/completions` or `responses`; and of an answer what was `Said`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from isthmus.protocol.json import JsonObject
from isthmus.upstream.probe.answers import Answer, delta_of, finish_of, message_of, text_of, tokens_of, usage_of

Message = tuple[str, str]
"""A role and what it says."""


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer says, whichever dialect it came in."""

    text: str = ""
    thoughts: tuple[str, ...] = ()
    """The names of the fields in which it shows its thoughts."""
    calls: tuple[tuple[str, str], ...] = ()
    """Name and arguments of each tool called."""
    cut: bool = False
    """Whether the server says that the limit was met."""
    logprobs: bool = False
    usage: bool = False

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


class Voice(Protocol):
    """One dialect."""

    @property
    def path(self) -> str: ...

    @property
    def title(self) -> str:
        """What its questions are marked with; empty for the main one."""

    def body(self, model: str, messages: Sequence[Message], limit: Mapping[str, int], asked: JsonObject) -> JsonObject:
        """`limit`: the field that bounds the answer. `asked`: `tools` (each a name, a description, parameters),
        `choice`, `schema`, `json`, `effort`, `logprobs`, `image`; anything else travels as it is."""

    def hear(self, answer: Answer) -> Said: ...


class ChatVoice:
    path: Final = "chat/completions"
    title: Final = ""

    def body(self, model: str, messages: Sequence[Message], limit: Mapping[str, int], asked: JsonObject) -> JsonObject:
        given = dict(asked)
        said: list[JsonObject] = [{"role": role, "content": text} for role, text in messages]
        if image := given.pop("image", None):
            picture = {"type": "image_url", "image_url": {"url": image}}
            said[-1]["content"] = [{"type": "text", "text": said[-1]["content"]}, picture]
        body: JsonObject = {"model": model, "messages": said, **limit}
        if tools := given.pop("tools", None):
            body["tools"] = [{"type": "function", "function": tool} for tool in tools]
        if choice := given.pop("choice", None):
            named = {"type": "function", "function": {"name": choice[1]}} if isinstance(choice, tuple) else choice
            body["tool_choice"] = named
        if schema := given.pop("schema", None):
            wanted = {"name": "answer", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        if given.pop("json", False):
            body["response_format"] = {"type": "json_object"}
        if effort := given.pop("effort", None):
            body["reasoning_effort"] = effort
        if given.pop("logprobs", False):
            body |= {"logprobs": True, "top_logprobs": 1}
        return {**body, **given}

    def hear(self, answer: Answer) -> Said:
        if answer.events:
            deltas = [delta_of(event) for event in answer.events]
            thoughts = {name: None for delta in deltas for name in _thoughts(delta)}
            return Said("".join(map(text_of, deltas)), tuple(thoughts), usage=usage_of(answer.events))
        message = message_of(answer)
        calls = message.get("tool_calls")
        functions = (
            [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        )
        return Said(
            text_of(message),
            _thoughts(message),
            tuple(_call(function) for function in functions if isinstance(function, dict)),
            finish_of(answer) == "length",
            _has_logprobs(answer.body),
            tokens_of(answer) > 0,
        )


class ResponsesVoice:
    path: Final = "responses"
    title: Final = "Responses"

    def body(self, model: str, messages: Sequence[Message], limit: Mapping[str, int], asked: JsonObject) -> JsonObject:
        given = dict(asked)
        items = [_item(role, text) for role, text in messages]
        if image := given.pop("image", None):
            items[-1]["content"].append({"type": "input_image", "image_url": image})
        body: JsonObject = {"model": model, "input": items, "store": False, **limit}
        if tools := given.pop("tools", None):
            body["tools"] = [{"type": "function", **tool} for tool in tools]
        if choice := given.pop("choice", None):
            body["tool_choice"] = {"type": "function", "name": choice[1]} if isinstance(choice, tuple) else choice
        if schema := given.pop("schema", None):
            wanted = {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}
            body["text"] = {"format": wanted}
        if given.pop("json", False):
            body["text"] = {"format": {"type": "json_object"}}
        if effort := given.pop("effort", None):
            body["reasoning"] = {"effort": effort}
        if given.pop("logprobs", False):
            body |= {"top_logprobs": 1, "include": ["message.output_text.logprobs"]}
        return {**body, **given}

    def hear(self, answer: Answer) -> Said:
        response: Any = answer.body if answer.ok else None
        if answer.events:
            ends = [event.get("response") for event in answer.events if isinstance(event, dict)]
            response = next((end for end in reversed(ends) if isinstance(end, dict) and "output" in end), None)
        output = response.get("output") if isinstance(response, dict) else None
        items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
        parts = [
            part
            for item in items
            if item.get("type") == "message" and isinstance(item.get("content"), list)
            for part in item["content"]
            if isinstance(part, dict)
        ]
        return Said(
            "".join(str(part.get("text") or "") for part in parts),
            ("reasoning",) if any(item.get("type") == "reasoning" for item in items) else (),
            tuple(_call(item) for item in items if item.get("type") == "function_call"),
            isinstance(response, dict) and response.get("status") == "incomplete",
            any(part.get("logprobs") for part in parts),
            isinstance(response, dict) and isinstance(response.get("usage"), dict),
        )


CHAT: Final = ChatVoice()
RESPONSES: Final = ResponsesVoice()


def _item(role: str, text: str) -> JsonObject:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _call(function: JsonObject) -> tuple[str, str]:
    return str(function.get("name")), str(function.get("arguments") or "")


def _thoughts(message: JsonObject) -> tuple[str, ...]:
    return tuple(
        name for name in ("reasoning_content", "reasoning") if isinstance(message.get(name), str) and message[name]
    )


def _has_logprobs(body: Any) -> bool:
    choices = body.get("choices") if isinstance(body, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    told = choice.get("logprobs")
    return isinstance(told, dict) and bool(told.get("content"))
