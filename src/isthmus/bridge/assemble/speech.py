"""The two items that speak: a message and a reasoning item, from `added` to `done`.

A message holds parts (text, refusal), a reasoning item holds raw text and summaries. One part is open at
a time; the next one closes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from isthmus.bridge.assemble.output import Output
from isthmus.bridge.deltas import ItemKind, PartKind
from isthmus.protocol.items import Annotation, Logprob, MessageItem, Phase, ReasoningItem, Status


class _Spelling(NamedTuple):
    """How a kind of part is told: the field of its words, the name of its place, the events of both."""

    text: str
    place: str
    part: str
    words: str


_PART: Final = "response.content_part"
_SUMMARY: Final = "response.reasoning_summary_part"
_SPELLINGS: Final[dict[PartKind, _Spelling]] = {
    "output_text": _Spelling("text", "content_index", _PART, "response.output_text"),
    "refusal": _Spelling("refusal", "content_index", _PART, "response.refusal"),
    "reasoning_text": _Spelling("text", "content_index", _PART, "response.reasoning_text"),
    "summary_text": _Spelling("text", "summary_index", _SUMMARY, "response.reasoning_summary_text"),
}


class Part:
    """An open part. Its `append`, and that of `TextPart`, are the hottest code of the assembler."""

    __slots__ = ("_at", "_delta", "_output", "_pieces", "_spelling", "kind")

    def __init__(self, kind: PartKind, at: dict[str, Any], output: Output) -> None:
        self.kind: PartKind = kind
        self._at, self._output, self._spelling = at, output, _SPELLINGS[kind]
        self._delta = f"{self._spelling.words}.delta"
        self._pieces: list[str] = []
        output.say(f"{self._spelling.part}.added", **at, part=self._shape())

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def append(self, text: str, logprobs: list[Logprob] | None = None) -> None:
        self._pieces.append(text)
        output = self._output
        event: Any = {"type": self._delta, "sequence_number": output.sequence, **self._at, "delta": text}
        output.events.append(event)
        output.sequence += 1

    def close(self) -> Any:
        part = self._shape()
        self._output.say(f"{self._spelling.words}.done", **self._at, **self._last_words(part))
        self._output.say(f"{self._spelling.part}.done", **self._at, part=part)
        return part

    def _shape(self) -> dict[str, Any]:
        return {"type": self.kind, self._spelling.text: self.text}

    def _last_words(self, part: dict[str, Any]) -> dict[str, Any]:
        return {self._spelling.text: part[self._spelling.text]}


class TextPart(Part):
    __slots__ = ("_annotations", "_index", "_item_id", "_logprobs", "_output_index")

    def __init__(self, kind: PartKind, at: dict[str, Any], output: Output) -> None:
        self._item_id, self._output_index, self._index = at["item_id"], at["output_index"], at["content_index"]
        self._annotations: list[Annotation] = []
        self._logprobs: list[Logprob] = []
        super().__init__(kind, at, output)

    def append(self, text: str, logprobs: list[Logprob] | None = None) -> None:
        self._pieces.append(text)
        output = self._output
        output.events.append(
            {
                "type": "response.output_text.delta",
                "sequence_number": output.sequence,
                "item_id": self._item_id,
                "output_index": self._output_index,
                "content_index": self._index,
                "delta": text,
                "logprobs": logprobs or [],
            }
        )
        output.sequence += 1
        if logprobs:
            self._logprobs += logprobs

    def annotate(self, annotation: Annotation) -> None:
        number = len(self._annotations)
        added = "response.output_text.annotation.added"
        self._output.say(added, **self._at, annotation_index=number, annotation=annotation)
        self._annotations.append(annotation)

    def _shape(self) -> dict[str, Any]:
        # Copies: the part's own lists grow while an event waits to be read.
        said = {"annotations": [*self._annotations], "logprobs": [*self._logprobs]}
        return {"type": self.kind, "text": "".join(self._pieces), **said}

    def _last_words(self, part: dict[str, Any]) -> dict[str, Any]:
        return {"text": part["text"], "logprobs": part["logprobs"]}


class Speech:
    """An open message or reasoning item; `seal` makes the envelope of what was thought, if it needs one."""

    __slots__ = ("_id", "_index", "_output", "_parts", "_seal", "kind", "part", "phase")

    def __init__(
        self,
        kind: ItemKind,
        output: Output,
        *,
        phase: Phase | None = None,
        seal: Callable[[str], str | None] | None = None,
        wanted: str = "",
    ) -> None:
        self.kind, self._output, self.phase, self._seal = kind, output, phase, seal
        self._id, self._index = output.place("msg" if kind == "message" else "rs", wanted)
        self._parts: dict[str, list[Any]] = {"content_index": [], "summary_index": []}
        self.part: Part | None = None
        output.added(self._index, self._item("in_progress"))

    @property
    def text(self) -> str:
        """The answer text so far; refusals are none."""
        done = "".join(part["text"] for part in self._parts["content_index"] if part["type"] == "output_text")
        return done + self.part.text if isinstance(self.part, TextPart) else done

    def begin(self, kind: PartKind) -> Part:
        """The next part, which closes the one before it."""
        self._end_part()
        place = _SPELLINGS[kind].place
        at = {"item_id": self._id, "output_index": self._index, place: len(self._parts[place])}
        self.part = part = (TextPart if kind == "output_text" else Part)(kind, at, self._output)
        return part

    def close(self, status: Status) -> None:
        self._end_part()
        item = self._item(status)
        if item["type"] == "reasoning" and self._seal is not None:
            thoughts = (*item.get("content", ()), *item["summary"])
            sealed = self._seal("\n\n".join(part["text"] for part in thoughts))
            if sealed is not None:
                item["encrypted_content"] = sealed
        self._output.done(self._index, item)

    def _end_part(self) -> None:
        part, self.part = self.part, None
        if part is not None:
            self._parts[_SPELLINGS[part.kind].place].append(part.close())

    def _item(self, status: Status) -> MessageItem | ReasoningItem:
        item: MessageItem | ReasoningItem
        content = [*self._parts["content_index"]]
        if self.kind == "message":
            item = {"type": "message", "id": self._id, "status": status, "role": "assistant", "content": content}
            if self.phase is not None:
                item["phase"] = self.phase
        else:
            item = {"type": "reasoning", "id": self._id, "status": status, "summary": [*self._parts["summary_index"]]}
            if content:
                item["content"] = content
        return item
