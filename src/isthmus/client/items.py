"""Our messages ⇄ Responses items: the one wire that the client speaks, in-process and to a remote gateway alike.

In: messages, or the output of a finished response. Out: input items, or one assistant message. Reasoning and
items that we do not know go back exactly as they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from isthmus.protocol.json import JsonObject
from isthmus.tools.calls import CallError, ToolCall, make_call, spelled_arguments
from isthmus.tools.messages import (
    CodePart,
    DocumentPart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    RefusalPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)


def write_items(messages: Iterable[Message]) -> list[JsonObject]:
    """Input items for a request."""
    return [item for message in messages for item in _write_message(message)]


def read_output(output: Sequence[JsonObject], provider: str | None = None) -> Message:
    """The assistant message that a response's output items make.

    What is said stands before what is called: a whole reply does not tell in which order they came, and the streamed
    transcript must be the same one.
    """
    parts = [part for item in output for part in _read_item(item, provider)]
    first = next((at for at, part in enumerate(parts) if isinstance(part, ToolCallPart)), len(parts))
    said = [part for part in parts[first:] if isinstance(part, TextPart | RefusalPart)]
    rest = [part for part in parts[first:] if not isinstance(part, TextPart | RefusalPart)]
    return Message("assistant", (*parts[:first], *said, *rest))


def read_call_item(item: Mapping[str, Any], provider: str | None = None) -> ToolCall:
    """One `function_call` item; a call that was cut off is never taken for a whole one."""
    extra = {key: item[key] for key in ("original_id", "namespace") if key in item}
    call = make_call(item["call_id"], item.get("name") or "", item.get("arguments"), provider=provider, extra=extra)
    if item.get("status") == "incomplete":
        cut = CallError("incomplete", "the call was cut off before its arguments were whole")
        return ToolCall(call.id, call.name, None, call.raw_arguments, cut, provider, extra)
    return call


def _write_message(message: Message) -> Iterator[JsonObject]:
    """Runs of content become one message item; calls, results, thoughts and unknown items stand by themselves."""
    run: list[JsonObject] = []
    speaker = "user" if message.role == "tool" else message.role
    for part in message.content:
        item = _write_alone(part)
        if item is None:
            run.append(write_content(part, speaker))
            continue
        if run:
            yield {"type": "message", "role": speaker, "content": run}
            run = []
        yield item
    if run:
        yield {"type": "message", "role": speaker, "content": run}


def _write_alone(part: Part) -> JsonObject | None:
    match part:
        case ToolCallPart(call):
            item: JsonObject = {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": spelled_arguments(call),
            }
            if "namespace" in call.extra:
                item["namespace"] = call.extra["namespace"]
            return item
        case ToolResultPart(call_id, _, content):
            return {"type": "function_call_output", "call_id": call_id, "output": _write_output(content)}
        case ThinkingPart(text, known):
            summary = [{"type": "summary_text", "text": text}] if text else []
            return dict(known) if known else {"type": "reasoning", "summary": summary}
        case OpaquePart(known):
            return dict(known)
        case _:
            return None


def write_content(part: Part, role: str) -> JsonObject:
    """A content part, as a message of this role carries it."""
    kind = "output_text" if role == "assistant" else "input_text"
    match part:
        case TextPart(text):
            return {"type": kind, "text": text}
        case CodePart(code, language):
            return {"type": kind, "text": f"```{language}\n{code}\n```"}
        case ImagePart(url, detail):
            return {"type": "input_image", "image_url": url, **({"detail": detail} if detail else {})}
        case DocumentPart(name, url, data):
            fields = {"filename": name, "file_url": url, "file_data": data}
            return {"type": "input_file", **{key: value for key, value in fields.items() if value}}
        case RefusalPart(text):
            return {"type": "refusal", "refusal": text}
        case _:
            raise AssertionError(f"{part!r} is an item of its own")


def _write_output(content: Sequence[Part]) -> str | list[JsonObject]:
    if all(isinstance(part, TextPart) for part in content):
        return "".join(part.text for part in content if isinstance(part, TextPart))
    return [write_content(part, "user") for part in content]


def _read_item(item: JsonObject, provider: str | None) -> Iterator[Part]:
    match item["type"]:
        case "message":
            for part in item["content"]:
                if part["type"] == "refusal":
                    yield RefusalPart(part["refusal"])
                elif part["type"] == "output_text":
                    if part["text"]:
                        yield TextPart(part["text"], tuple(part.get("annotations") or ()))
                else:
                    yield OpaquePart(part)
        case "reasoning":
            texts = [*(item.get("content") or ()), *(item.get("summary") or ())]
            kept = {key: value for key, value in item.items() if key != "status"}
            yield ThinkingPart("".join(text.get("text", "") for text in texts), kept)
        case "function_call":
            yield ToolCallPart(read_call_item(item, provider))
        case _:
            yield OpaquePart(item)
