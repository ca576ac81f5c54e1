"""Vendors that refuse what others forgive, as checks of a message list and as scripted servers that answer 400."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from isthmus.testing import Step, chat_reply, error, reply, stream
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


SKIPPED = "skip_thought_signature_validator"
"""What Google's own page gives for a call whose signature is lost."""


def refused_by_gemini(messages: list[Json]) -> str | None:
    """What Gemini 3 says behind its OpenAI-compatible endpoint: in the turn that goes on, the first call of each step
    must bring back the signature that it was given (ai.google.dev/gemini-api/docs/thought-signatures, 2026-11-16)."""
    last = max((index for index, message in enumerate(messages) if message["role"] == "user"), default=-1)
    for index, message in enumerate(messages[last + 1 :], start=last + 1):
        calls = message.get("tool_calls") or []
        if not calls:
            continue
        signature = calls[0].get("extra_content", {}).get("google", {}).get("thought_signature", "")
        if not (signature == SKIPPED or signature.startswith("sig-")):
            return f"Function call is missing a thought_signature in functionCall parts (message {index})."
        if any("extra_content" in call for call in calls[1:]):
            return "Only the first of parallel calls has a signature."
    if any(message["role"] == "system" for message in messages[1:]):
        return "Please use a single system message, at the beginning."
    return None


def signed_call(*calls: tuple[str, str, str]) -> Step:
    """Calls as Gemini makes them, whole or streamed: the first of them is signed, and in a stream all have index 0."""

    def handle(request: RecordedRequest) -> Step:
        made = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, "index": 0}
            for id, name, arguments in calls
        ]
        made[0]["extra_content"] = {"google": {"thought_signature": f"sig-{calls[0][0]}"}}
        if not request.json.get("stream"):
            answer = chat_reply(calls=list(calls))
            answer["choices"][0]["message"]["tool_calls"] = made
            return reply(answer)
        head = {"id": "x", "object": "chat.completion.chunk"}
        chunks = [{**head, "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in made]
        return stream([*chunks, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}])

    return handle


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


def openrouter_failure(code: int | str, words: str, *, said: str = "", inside: bool = False) -> Step:
    """A failure that OpenRouter tells behind a 200, because it had begun already: comments while it waits, then perhaps
    some words, then a chunk with `error` and `finish_reason: "error"` (openrouter.ai/docs/api-reference/errors,
    2026-11-16). `inside`: in a whole reply the error stands in the choice, not beside the choices."""

    def handle(request: RecordedRequest) -> Step:
        failed = {"code": code, "message": words}
        if not request.json.get("stream"):
            if not inside:
                return reply({"error": failed})
            choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "error"}
            return reply({"id": "gen-1", "object": "chat.completion", "choices": [{**choice, "error": failed}]})
        head = {"id": "gen-1", "object": "chat.completion.chunk", "provider": "SomeHost"}
        begun = [{**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": said}}]}] if said else []
        ended = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        return stream([b": OPENROUTER PROCESSING\n\n" * 3, *begun, {**head, "error": failed, "choices": [ended]}])

    return handle
