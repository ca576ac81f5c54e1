"""Vendors that refuse what others forgive, as checks of a message list and as scripted servers that answer 400."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from isthmus.testing import Step, error
from isthmus.testing.requests import RecordedRequest

Json = dict[str, Any]
Refusal = Callable[[list[Json]], str | None]


def refused_by_mistral(messages: list[Json]) -> str | None:
    """What api.mistral.ai says to a list that it does not take; `None`: it takes it."""
    before = ""
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "system" and before not in ("", "system"):
            return f"Unexpected role 'system' after role '{before}'"
        if role == "user" and before == "tool":
            return "Unexpected role 'user' after role 'tool'"
        if role == "assistant" and not message.get("content") and not message.get("tool_calls"):
            return "Assistant message must have either content or tool_calls, but not none."
        if any(not re.fullmatch("[a-zA-Z0-9]{9}", call["id"]) for call in message.get("tool_calls") or ()):
            return f"Tool call id of message {index} must be a-z, A-Z, 0-9, with a length of 9."
        before = role
    return None if before in ("user", "tool") else f"Expected last role User or Tool, got {before}"


def refused_by_a_strict_template(messages: list[Json]) -> str | None:
    """What a chat template says that lets the user and the assistant take turns, calls and results left aside."""
    said = [
        message["role"]
        for message in messages
        if message["role"] in ("user", "assistant") and not message.get("tool_calls")
    ]
    if any(message["role"] in ("system", "developer") for message in messages[1:]):
        return "only the first message may be a system message"
    if said != ["user" if index % 2 == 0 else "assistant" for index in range(len(said))]:
        return "Conversation roles must alternate user/assistant/user/assistant/..."
    return None


def strictly(refuses: Refusal, answer: Step) -> Step:
    """A step that answers like the vendor: 400 where it refuses the messages, `answer` otherwise."""

    def handle(request: RecordedRequest) -> Step:
        why = refuses(request.json["messages"])
        return answer if why is None else error(400, why)

    return handle
