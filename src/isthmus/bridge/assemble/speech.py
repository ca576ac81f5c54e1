"""The two items that speak: a message and a reasoning item, from `added` to `done`.

A message holds parts (text, refusal), a reasoning item holds raw text and summaries. One part is open at
a time; a delta of another kind closes it and opens the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from isthmus.bridge.assemble.emitter import Emitter
from isthmus.protocol.json import JsonObject

PartKind = Literal["output_text", "refusal", "reasoning_text", "summary_text"]

# kind → (its text field, the stem of its delta and done events)
_STEMS: Final[dict[PartKind, tuple[str, str]]] = {
    "output_text": ("text", "response.output_text"),
    "refusal": ("refusal", "response.refusal"),
    "reasoning_text": ("text", "response.reasoning_text"),
    "summary_text": ("text", "response.reasoning_summary_text"),
}


class _Part:
    """One open content part. `append` is the hottest code of the assembler."""

    __slots__ = (
        "_delta_type",
        "_emitter",
        "_item_id",
        "_kind",
        "_output_index",
        "_pieces",
        "annotations",
        "index",
        "logprobs",
    )

    def __init__(self, kind: PartKind, index: int, item_id: str, output_index: int, emitter: Emitter) -> None:
        self._kind: PartKind = kind
        self._emitter = emitter
        self._item_id = item_id
        self._output_index = output_index
        self._pieces: list[str] = []
        self._delta_type = _STEMS[kind][1] + ".delta"
        self.index = index
        self.annotations: list[JsonObject] = []
        self.logprobs: list[JsonObject] = []

    @property
    def kind(self) -> PartKind:
        return self._kind

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def open(self) -> None:
        where = {"item_id": self._item_id, "output_index": self._output_index}
        if self._kind == "summary_text":
            self._emitter.emit(
                "response.reasoning_summary_part.added", **where, summary_index=self.index, part=self.shape("")
            )
        else:
            self._emitter.emit("response.content_part.added", **where, content_index=self.index, part=self.shape(""))

    def append(self, text: str, logprobs: list[dict[str, Any]] | None = None) -> None:
        self._pieces.append(text)
        emitter = self._emitter
        event = {
            "type": self._delta_type,
            "sequence_number": emitter.sequence,
            "item_id": self._item_id,
            "output_index": self._output_index,
            "content_index": self.index,
            "delta": text,
        }
        if self._kind == "output_text":
            event["logprobs"] = logprobs or []
            if logprobs:
                self.logprobs.extend(logprobs)
        elif self._kind == "summary_text":
            event["summary_index"] = event.pop("content_index")
        emitter.events.append(event)
        emitter.sequence += 1

    def annotate(self, annotation: JsonObject) -> None:
        self._emitter.emit(
            "response.output_text.annotation.added",
            item_id=self._item_id,
            output_index=self._output_index,
            content_index=self.index,
            annotation_index=len(self.annotations),
            annotation=annotation,
        )
        self.annotations.append(annotation)

    def close(self) -> JsonObject:
        text = self.text
        field, stem = _STEMS[self._kind]
        where: JsonObject = {"item_id": self._item_id, "output_index": self._output_index}
        where["summary_index" if self._kind == "summary_text" else "content_index"] = self.index
        done: JsonObject = {**where, field: text}
        if self._kind == "output_text":
            done["logprobs"] = self.logprobs
        self._emitter.emit(stem + ".done", **done)
        part = self.shape(text)
        family = "response.reasoning_summary_part" if self._kind == "summary_text" else "response.content_part"
        self._emitter.emit(family + ".done", **where, part=part)
        return part

    def shape(self, text: str) -> JsonObject:
        if self._kind == "output_text":
            return {
                "type": "output_text",
                "text": text,
                "annotations": list(self.annotations),
                "logprobs": self.logprobs,
            }
        return {"type": self._kind, _STEMS[self._kind][0]: text}


class Speech:
    """An open message or reasoning item."""

    __slots__ = ("_closed", "_emitter", "_summaries", "id", "kind", "output_index", "part")

    def __init__(self, kind: Literal["message", "reasoning"], id: str, output_index: int, emitter: Emitter) -> None:
        self.kind = kind
        self.id = id
        self.output_index = output_index
        self._emitter = emitter
        self._closed: list[JsonObject] = []
        self._summaries: list[JsonObject] = []
        self.part: _Part | None = None

    def open(self) -> None:
        self._emitter.emit(
            "response.output_item.added", output_index=self.output_index, item=self._shape("in_progress")
        )

    def speak(self, kind: PartKind, text: str, logprobs: list[dict[str, Any]] | None = None) -> None:
        part = self.part
        if part is None or part.kind != kind:
            part = self.begin(kind)
        part.append(text, logprobs)

    def begin(self, kind: PartKind) -> _Part:
        """Open a part of this kind, closing the one before."""
        self._end_part()
        index = len(self._summaries) if kind == "summary_text" else len(self._closed)
        self.part = _Part(kind, index, self.id, self.output_index, self._emitter)
        self.part.open()
        return self.part

    def close(self, status: str, seal: Callable[[str], str | None] | None = None) -> JsonObject:
        self._end_part()
        item = self._shape(status)
        if seal is not None:
            sealed = seal("".join(part["text"] for part in (*self._closed, *self._summaries)))
            if sealed is not None:
                item["encrypted_content"] = sealed
        self._emitter.emit("response.output_item.done", output_index=self.output_index, item=item)
        return item

    def _end_part(self) -> None:
        part, self.part = self.part, None
        if part is not None:
            (self._summaries if part.kind == "summary_text" else self._closed).append(part.close())

    def _shape(self, status: str) -> JsonObject:
        if self.kind == "message":
            return {
                "type": "message",
                "id": self.id,
                "status": status,
                "role": "assistant",
                "content": list(self._closed),
            }
        item: JsonObject = {"type": "reasoning", "id": self.id, "status": status, "summary": list(self._summaries)}
        if self._closed:
            item["content"] = list(self._closed)
        return item
