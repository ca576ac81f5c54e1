"""Vendors that refuse what others forgive, as checks of a message list and as scripted servers that answer 400."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
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


MISTRAL_FIELDS = {
    *("model", "messages", "stream", "tools", "tool_choice", "response_format", "max_tokens", "temperature", "top_p"),
    *("stop", "presence_penalty", "frequency_penalty", "random_seed", "parallel_tool_calls", "reasoning_effort", "n"),
    *("prediction", "safe_prompt", "prompt_mode", "metadata"),
}
MISTRAL_MESSAGE = {"role", "content", "tool_calls", "tool_call_id", "name", "prefix"}


def refused_fields_of_mistral(body: Json) -> str | None:
    """It takes what it knows and nothing else, in the body (eca#231, 2025-12-12) and in messages (crush#1590,
    2025-12-10; mistral-go#2); both read on 2026-11-17."""
    unknown = [name for name in body if name not in MISTRAL_FIELDS]
    for index, message in enumerate(body["messages"]):
        allowed = MISTRAL_MESSAGE - ({"name"} if message["role"] != "tool" else set())
        unknown += [f"messages.{index}.{name}" for name in message if name not in allowed]
    if body.get("tools") == []:  # php-mistral#76, 2025-11-13
        unknown.append("tools")
    return f"extra_forbidden: body.{unknown[0]}: Extra inputs are not permitted" if unknown else None


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


GEMINI_FIELDS = {
    *("model", "messages", "stream", "stream_options", "tools", "tool_choice", "response_format", "max_tokens", "n"),
    *("max_completion_tokens", "temperature", "top_p", "stop", "reasoning_effort", "extra_body"),
}
GEMINI_KEYWORDS = {"$schema", "additionalProperties", "propertyNames", "exclusiveMinimum", "patternProperties", "not"}


def refused_fields_of_gemini(body: Json) -> str | None:
    """ "Unknown name …: Cannot find field", for fields (ChatterUI#227, 2025-02-14) and for keywords of tools' schemas
    (openswarm#24, 2026-05-06); both read on 2026-11-17."""
    unknown = [name for name in body if name not in GEMINI_FIELDS]
    for tool in body.get("tools", ()):
        unknown += [name for name in _keywords(tool["function"].get("parameters", {})) if name in GEMINI_KEYWORDS]
    return f'Invalid JSON payload received. Unknown name "{unknown[0]}": Cannot find field.' if unknown else None


def _keywords(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema
        for name, inner in schema.items():
            for one in inner.values() if name == "properties" else [inner]:
                yield from _keywords(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from _keywords(one)


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
    """A step that answers like the vendor: 400 where it refuses the messages, or a field; `answer` otherwise."""
    status, fields = FIELDS.get(refuses, (400, lambda _: None))

    def handle(request: RecordedRequest) -> Step:
        if (unknown := fields(request.json)) is not None:
            return error(status, unknown)
        why = refuses(request.json["messages"])
        return answer if why is None else error(400, why)

    return handle


FIELDS: Mapping[Refusal, tuple[int, Callable[[Json], str | None]]] = {
    refused_by_mistral: (422, refused_fields_of_mistral),
    refused_by_gemini: (400, refused_fields_of_gemini),
}


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
