"""A finished response told again as a stream, for a client that comes back after its events are gone.

Every item is whole by now, so each part comes as one delta. Same order, same ids, same terminal event.
"""

from __future__ import annotations

from typing import Any

from isthmus.bridge.assemble.calls import announce, close_call, tell_call_text
from isthmus.bridge.assemble.output import Output
from isthmus.bridge.assemble.speech import Message, Thought
from isthmus.protocol.events import Event
from isthmus.protocol.items import CallItem, CustomToolCall, FunctionCall, MessageItem, OutputItem, ReasoningItem
from isthmus.protocol.response import FinishedResponse


def replay_events(response: FinishedResponse) -> list[Event]:
    output = Output(response["id"])
    begun: Any = {name: value for name, value in response.items() if name not in ("output_text", "isthmus")}
    begun |= {"status": "in_progress", "output": [], "completed_at": None, "error": None, "usage": None}
    begun["incomplete_details"] = None
    output.tell("response.created", begun)
    output.tell("response.in_progress", begun)
    for item in response["output"]:
        _tell_item(output, item)
    output.end(response["status"], response)
    return output.take()


def _tell_item(output: Output, item: OutputItem) -> None:
    if item["type"] == "message":
        _tell_message(output, item)
    elif item["type"] == "reasoning":
        _tell_reasoning(output, item)
    elif item["type"] == "function_call" or item["type"] == "custom_tool_call":
        _tell_text_call(output, item)
    elif item["type"] == "tool_search_output":
        _, index = output.place("", item["id"])
        output.added(index, {**item, "status": "in_progress", "tools": []})
        output.done(index, item)
    elif (
        item["type"] == "shell_call"
        or item["type"] == "local_shell_call"
        or item["type"] == "apply_patch_call"
        or item["type"] == "tool_search_call"
    ):
        close_call(output, _announce(output, item), item)
    else:
        _, index = output.place("", item["id"])
        output.added(index, {**item, "status": "in_progress"})
        output.done(index, item)


def _tell_message(output: Output, item: MessageItem) -> None:
    message = Message(output, item.get("phase"), wanted=item["id"])
    for part in item["content"]:
        if part["type"] == "refusal":
            message.begin_refusal().append(part["refusal"])
        else:
            text = message.begin_text()
            text.append(part["text"], part["logprobs"])
            for annotation in part["annotations"]:
                text.annotate(annotation)
    message.close(item["status"])


def _tell_reasoning(output: Output, item: ReasoningItem) -> None:
    thought = Thought(output, wanted=item["id"])
    for summary in item["summary"]:
        thought.begin_summary().append(summary["text"])
    for part in item.get("content", ()):
        thought.begin_text().append(part["text"])
    sealed = item.get("encrypted_content")
    thought.close(item["status"], lambda text: sealed)


def _tell_text_call(output: Output, item: FunctionCall | CustomToolCall) -> None:
    index = _announce(output, item)
    if item["type"] == "function_call":
        tell_call_text(output, "response.function_call_arguments.delta", item["id"], index, item["arguments"])
    else:
        tell_call_text(output, "response.custom_tool_call_input.delta", item["id"], index, item["input"])
    close_call(output, index, item)


def _announce(output: Output, item: CallItem) -> int:
    _, index = output.place("", item["id"])
    output.added(index, announce(item))
    return index
