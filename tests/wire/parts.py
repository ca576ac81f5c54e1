"""One item of a stream and the parts in it: what was opened, what the deltas have said, what is closed.

In: the item's own events, by way of `stream`. Out: `AssertionError` in plain words at the first broken rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]

_PARTS: Final = {
    ("message", "content"): ("output_text", "refusal"),
    ("reasoning", "content"): ("reasoning_text",),
    ("reasoning", "summary"): ("summary_text",),
}

CALL_TEXTS: Final = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
}

_STAGES: Final = ("in_progress", "searching", "interpreting", "generating", "completed", "failed")

_FIXED: Final = ("id", "type", "role", "call_id", "name", "namespace", "execution")
"""What an item has said when it was added, and keeps."""

_STREAMED: Final = {
    "message": ("content",),
    "reasoning": ("content", "summary"),
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
}
"""Fields that start empty: what is in them comes by events."""


@dataclass(slots=True)
class Text:
    value: str = ""
    done: bool = False

    def add(self, delta: str) -> None:
        expect(not self.done, "a delta after the text was done")
        self.value += delta

    def finish(self, value: str) -> None:
        expect(not self.done, "the text was done before")
        expect(value == self.value, f"the deltas make {self.value!r}, the done text says {value!r}")
        self.done = True


@dataclass(slots=True)
class Part:
    kind: str
    text: Text = field(default_factory=Text)
    annotations: list[Json] = field(default_factory=list)
    logprobs: list[Json] = field(default_factory=list)
    done: Json | None = None


@dataclass(slots=True)
class Item:
    added: Json
    parts: dict[str, list[Part]] = field(default_factory=lambda: {"content": [], "summary": []})
    text: Text = field(default_factory=Text)
    commands: list[Text] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    done: Json | None = None

    @property
    def type(self) -> str:
        return str(self.added["type"])


def add_item(item: Json) -> Item:
    expect(item["status"] == "in_progress", f"an item begins as `{item['status']}`")
    for name in _STREAMED.get(item["type"], ()):
        expect(not item.get(name), f"`{name}` is not empty before its first event")
    expect(not item.get("action", {}).get("commands"), "`commands` is not empty before its first command")
    return Item(item)


def finish_item(item: Item, done: Json) -> None:
    changed = [name for name in _FIXED if item.added.get(name) != done.get(name)]
    expect(not changed, f"changed since the item was added: {', '.join(changed)}")
    expect(done["status"] not in ("in_progress", "searching"), f"an item ends as `{done['status']}`")
    for place, parts in item.parts.items():
        expect(all(part.done is not None for part in parts), f"a {place} part is left open")
        if (item.type, place) in _PARTS:
            expect(done.get(place, []) == [part.done for part in parts], f"`{place}` is not what its parts said")
    for owner, name in CALL_TEXTS.values():
        if item.type == owner:
            expect(item.text.done, f"`{name}` was never done")
            expect(done[name] == item.text.value, f"`{name}` is not what the deltas said")
    if item.commands:
        expect(all(command.done for command in item.commands), "a command is left open")
        said = [command.value for command in item.commands]
        expect(done["action"]["commands"] == said, "`commands` is not what its events said")
    if item.type == "web_search_call" and item.stages and done["status"] == "completed":
        expect(item.stages[-1] == "completed", "the search is done but was never completed")
    item.done = done


def add_part(item: Item, event: Json) -> None:
    place, index, part = _place(event), _index(event), event["part"]
    parts = item.parts[place]
    expect(part["type"] in _PARTS.get((item.type, place), ()), f"a {item.type} has no {part['type']} in its {place}")
    expect(index == len(parts), f"{place}_index is not the next one, {len(parts)}")
    expect(not parts or parts[-1].done is not None, "a part opens while another one is open")
    expect(not part.get("text") and not part.get("refusal"), "a part is not empty before its first delta")
    expect(not part.get("annotations"), "a part has annotations before they were added")
    parts.append(Part(part["type"]))


def open_part(item: Item, event: Json, place: str, kind: str) -> Part:
    index = _index(event)
    expect(index < len(item.parts[place]), f"no {place} part was added at index {index}")
    part = item.parts[place][index]
    expect(part.done is None, f"the {place} part at index {index} is done")
    expect(part.kind == kind, f"the {place} part at index {index} is {part.kind}")
    return part


def part_text(part: Part, verb: str, event: Json) -> None:
    if verb == "delta":
        part.text.add(event["delta"])
        part.logprobs.extend(event.get("logprobs", []))
    else:
        part.text.finish(event["refusal"] if part.kind == "refusal" else event["text"])
        expect(event.get("logprobs", []) == part.logprobs, "logprobs are not those of the deltas")


def finish_part(item: Item, event: Json) -> None:
    said = event["part"]
    part = open_part(item, event, _place(event), said["type"])
    expect(part.text.done, "the part is done before its text")
    text = said["refusal"] if part.kind == "refusal" else said["text"]
    expect(text == part.text.value, f"the part says {text!r}, its deltas {part.text.value!r}")
    expect(said.get("annotations", []) == part.annotations, "annotations are not those that were added")
    expect(said.get("logprobs", part.logprobs) == part.logprobs, "logprobs are not those of the deltas")
    part.done = said


def command(item: Item, verb: str, event: Json) -> None:
    expect(item.type == "shell_call", f"the item at this index is a {item.type}")
    index, commands = event["command_index"], item.commands
    if verb == "added":
        expect(index == len(commands), f"command_index is not the next one, {len(commands)}")
        expect(not commands or commands[-1].done, "a command opens while another one is open")
        commands.append(Text(event["command"]))
        return
    expect(index < len(commands), f"no command was added at command_index {index}")
    commands[index].add(event["delta"]) if verb == "delta" else commands[index].finish(event["command"])


def stage(item: Item, family: str, verb: str) -> None:
    """How far a hosted tool is: each step once and in order, but for the pieces that some of them send."""
    owner = family.removeprefix("response.").removesuffix("_code").removesuffix("_arguments")
    expect(item.type == owner, f"the item at this index is a {item.type}")
    if verb not in _STAGES:
        return
    expect(verb not in item.stages, f"`{verb}` was said before")
    behind = [stage for stage in item.stages if _STAGES.index(stage) > _STAGES.index(verb)]
    expect(not behind, f"`{verb}` after {behind}")
    item.stages.append(verb)


def _place(event: Json) -> str:
    return "summary" if "summary_index" in event else "content"


def _index(event: Json) -> int:
    return int(event["summary_index"] if "summary_index" in event else event["content_index"])


def expect(kept: bool, complaint: str) -> None:
    if not kept:
        raise AssertionError(complaint)
