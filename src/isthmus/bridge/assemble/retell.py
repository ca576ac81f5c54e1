"""A finished response told again as a stream, for a client that comes back after its events are gone.

Every item is whole by now, so each part comes as one delta. Same order, same ids, same terminal event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isthmus.bridge.assemble.emitter import Emitter, Event
from isthmus.protocol.json import JsonObject

_EMPTY: Final = {
    "function_call": ("arguments", "function_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
}


def replay_events(response: JsonObject) -> list[Event]:
    emitter = Emitter()
    begun = {name: value for name, value in response.items() if name not in ("output_text", "isthmus")}
    begun |= {"status": "in_progress", "output": [], "completed_at": None, "error": None, "usage": None}
    begun["incomplete_details"] = None
    emitter.emit("response.created", response=begun)
    emitter.emit("response.in_progress", response=begun)
    for index, item in enumerate(response["output"]):
        _tell_item(emitter, index, item)
    status = response["status"]
    emitter.emit(f"response.{'failed' if status == 'cancelled' else status}", response=response)
    return emitter.take()


def _tell_item(emitter: Emitter, index: int, item: JsonObject) -> None:
    opened: JsonObject = {**item, "status": "in_progress"}
    if item["type"] in ("message", "reasoning"):
        opened |= {name: [] for name in ("content", "summary") if name in item}
        opened.pop("encrypted_content", None)
    call = _EMPTY.get(item["type"])
    if call is not None:
        opened[call[0]] = ""
    commands = item["action"].get("commands") or () if item["type"] == "shell_call" else ()
    if commands:
        opened["action"] = {**item["action"], "commands": []}
    emitter.emit("response.output_item.added", output_index=index, item=opened)
    tell_commands(emitter, index, commands)
    where = {"item_id": item["id"], "output_index": index}
    if call is not None:
        emitter.emit(f"response.{call[1]}.delta", **where, delta=item[call[0]])
        emitter.emit(f"response.{call[1]}.done", **where, **{call[0]: item[call[0]]})
    for number, part in enumerate(item.get("summary") or ()):
        at = {**where, "summary_index": number}
        emitter.emit("response.reasoning_summary_part.added", **at, part={**part, "text": ""})
        emitter.emit("response.reasoning_summary_text.delta", **at, delta=part["text"])
        emitter.emit("response.reasoning_summary_text.done", **at, text=part["text"])
        emitter.emit("response.reasoning_summary_part.done", **at, part=part)
    if item["type"] in ("message", "reasoning"):
        for number, part in enumerate(item.get("content") or ()):
            _tell_part(emitter, {**where, "content_index": number}, part)
    emitter.emit("response.output_item.done", output_index=index, item=item)


def tell_commands(emitter: Emitter, output_index: int, commands: Sequence[str]) -> None:
    """A shell call's commands have events of their own."""
    for index, command in enumerate(commands):
        where = {"output_index": output_index, "command_index": index}
        emitter.emit("response.shell_call_command.added", **where, command="")
        emitter.emit("response.shell_call_command.delta", **where, delta=command)
        emitter.emit("response.shell_call_command.done", **where, command=command)


def _tell_part(emitter: Emitter, at: JsonObject, part: JsonObject) -> None:
    kind = part["type"]
    field = "refusal" if kind == "refusal" else "text"
    extra: JsonObject = {"logprobs": part["logprobs"]} if kind == "output_text" else {}
    empty: JsonObject = {**part, field: ""}
    if kind == "output_text":
        empty["annotations"] = []
    emitter.emit("response.content_part.added", **at, part=empty)
    emitter.emit(f"response.{kind}.delta", **at, delta=part[field], **extra)
    for number, annotation in enumerate(part.get("annotations") or ()):
        emitter.emit("response.output_text.annotation.added", **at, annotation_index=number, annotation=annotation)
    emitter.emit(f"response.{kind}.done", **at, **{field: part[field]}, **extra)
    emitter.emit("response.content_part.done", **at, part=part)
