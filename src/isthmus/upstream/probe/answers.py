"""One question to an endpoint and its answer, as data; and how an answer is read. Odd shapes never raise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from isthmus.protocol.json import JsonObject


@dataclass(frozen=True, slots=True)
class Ask:
    """What to ask next: a GET, or a POST if there is a body."""

    title: str
    path: str
    """Behind the base URL; one that begins with `/` starts at the server's root."""
    body: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Status 0: nothing did, and `text` says why."""

    status: int
    body: Any = None
    """The decoded JSON, if it was JSON."""
    events: tuple[Any, ...] = ()
    """The decoded data of a stream's events."""
    text: str = ""
    """An excerpt, for people."""
    late: bool = False
    """Whether nothing came back in time."""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def refused(self) -> bool:
        """Whether the request was understood and not liked: that is a finding, other failures are trouble."""
        return 400 <= self.status < 500 and self.status not in (401, 403, 408, 429)


def message_of(answer: Answer) -> JsonObject:
    """The first choice's message; empty where there is none."""
    body = answer.body if answer.ok and isinstance(answer.body, dict) else {}
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    return message if isinstance(message, dict) else {}


def finish_of(answer: Answer) -> str:
    body = answer.body if isinstance(answer.body, dict) else {}
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    return str(choice.get("finish_reason") or "")


def delta_of(event: Any) -> JsonObject:
    """What one event of a stream adds; empty where it adds nothing."""
    choices = event.get("choices") if isinstance(event, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    delta = choice.get("delta")
    return delta if isinstance(delta, dict) else {}


def text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def call_names(message: Mapping[str, Any]) -> list[str]:
    """The tools that a message calls, in order."""
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [str(function.get("name")) for function in functions if isinstance(function, dict)]


def usage_of(events: tuple[Any, ...]) -> bool:
    """Whether a stream told its token usage."""
    return any(isinstance(event, dict) and isinstance(event.get("usage"), dict) for event in events)


def tokens_of(answer: Answer) -> int:
    """How many tokens the model wrote, as the server counts them; 0 where it does not say."""
    whole = answer.body if isinstance(answer.body, dict) else {}
    ends = [event.get("response") for event in answer.events if isinstance(event, dict)]
    for place in (whole, *(event for event in reversed(answer.events)), *reversed(ends)):
        usage = place.get("usage") if isinstance(place, dict) else None
        if isinstance(usage, dict):
            counts = (usage.get("completion_tokens"), usage.get("output_tokens"))
            return next((count for count in counts if type(count) is int and count > 0), 0)
    return 0


def json_of(text: str) -> Any:
    """The JSON that an answer is, or `None`: nothing around it is allowed, a format was promised."""
    try:
        return msgspec.json.decode(text.strip())
    except msgspec.DecodeError:
        return None
