"""Messages as other libraries spell them → ours: Chat Completions, Anthropic and Gemini objects, or our own as JSON.

In: a mapping with a role. Out: a `Message`. What a message says in a form we do not know is kept as an `OpaquePart`,
and calls come from `reconcile`: one reading for all forms.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from isthmus.client.forms import looks_like_call
from isthmus.client.reconcile import reconcile
from isthmus.errors import RequestRefused
from isthmus.tools.messages import (
    DocumentPart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    RefusalPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    user,
)


def read_message(given: Mapping[str, Any]) -> Message:
    """One message object in any of the known spellings."""
    role = {"model": "assistant", "function": "tool"}.get(str(given.get("role")), given.get("role"))
    if role not in get_args(Role):
        raise RequestRefused(
            f"a message has the role `{role}`; use one of {', '.join(get_args(Role))}",
            code="invalid_value",
            param="messages.role",
        )
    found = reconcile(given)
    content = given.get("content", given.get("parts"))
    if role == "tool":
        parts: tuple[Part, ...] = (_tool_result(given, content),)
    else:
        parts = tuple(_read_content(content))
    if isinstance(given.get("refusal"), str):
        parts = (*parts, RefusalPart(given["refusal"]))
    results = any(isinstance(part, ToolResultPart) for part in parts)
    return Message(
        "tool" if results else cast(Role, role),
        (*parts, *(ToolCallPart(call) for call in found.calls)),
        given.get("metadata") or {},
    )


def own_calls(message: Message) -> Message:
    """Calls that stand only in `metadata` become parts: what a message says is in one place."""
    if message.role != "assistant" or not message.metadata:
        return message
    known = message.tool_calls
    missing = [call for call in reconcile(message).calls if call not in known]
    if not missing:
        return message
    return replace(message, content=(*message.content, *(ToolCallPart(call) for call in missing)))


def _read_content(content: object) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield TextPart(content)
    elif isinstance(content, Mapping):
        yield from _read_content(content.get("parts"))
    elif isinstance(content, list | tuple):
        for block in content:
            if not looks_like_call(block):
                yield _read_block(block)


def _read_block(block: object) -> Part:
    if isinstance(block, str):
        return TextPart(block)
    if not isinstance(block, Mapping):
        return block  # type: ignore[return-value]  # already one of our parts
    kind = block.get("type", "text" if "text" in block else "")
    match kind:
        case "text" | "input_text" | "output_text":
            return TextPart(str(block.get("text", "")))
        case "image_url" | "input_image":
            source = block.get("image_url")
            url = source.get("url", "") if isinstance(source, Mapping) else source
            return ImagePart(str(url or ""), str(block.get("detail") or ""))
        case "image":
            return _anthropic_image(block)
        case "input_file" | "file":
            file = block.get("file") if isinstance(block.get("file"), Mapping) else block
            file = cast(Mapping[str, Any], file)
            return DocumentPart(file.get("filename", ""), file.get("file_url", ""), file.get("file_data", ""))
        case "thinking":
            return ThinkingPart(str(block.get("thinking", "")))
        case "refusal":
            return RefusalPart(str(block.get("refusal", "")))
        case "tool_result":
            return ToolResultPart(str(block.get("tool_use_id", "")), "", tuple(_read_content(block.get("content"))))
        case _:
            return _read_gemini(block)


def _read_gemini(block: Mapping[str, Any]) -> Part:
    answered = block.get("functionResponse")
    if isinstance(answered, Mapping):
        from isthmus.tools.calls import compact_json

        words = TextPart(compact_json(answered.get("response")))
        return ToolResultPart(str(answered.get("id", "")), str(answered.get("name", "")), (words,))
    return OpaquePart(dict(block))


def _anthropic_image(block: Mapping[str, Any]) -> Part:
    source = block.get("source")
    if isinstance(source, Mapping) and source.get("type") == "base64":
        data = base64.b64decode(source.get("data", ""))
        return ImagePart.from_bytes(data, source.get("media_type", "image/png"))
    if isinstance(source, Mapping) and source.get("type") == "url":
        return ImagePart(str(source.get("url", "")))
    return OpaquePart(dict(block))


def _tool_result(given: Mapping[str, Any], content: object) -> ToolResultPart:
    id = given.get("tool_call_id") or given.get("toolCallId") or given.get("call_id") or ""
    return ToolResultPart(str(id), str(given.get("name") or ""), tuple(_read_content(content)))


Conversation = str | Message | Sequence["Message | Mapping[str, Any]"]
"""What `chat` and `run` take: a question, a message, or messages (plain `{"role", "content"}` objects count too)."""


def as_messages(given: Conversation) -> list[Message]:
    """A new list of messages; what was given is never changed."""
    if isinstance(given, str):
        return [user(given)]
    if isinstance(given, Message):
        return [own_calls(given)]
    return [own_calls(one) if isinstance(one, Message) else read_message(one) for one in given]
