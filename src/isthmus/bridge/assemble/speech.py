"""The two items that speak: a message and a reasoning item, from `added` to `done`.

A message holds parts (text, refusal), a reasoning item holds raw text and summaries. One part is open at
a time; the next one closes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from isthmus.bridge.assemble.output import Output
from isthmus.protocol.events import ContentPlace, SummaryPlace
from isthmus.protocol.items import (
    Annotation,
    ContentPart,
    Logprob,
    MessageItem,
    MessagePart,
    OutputText,
    Phase,
    ReasoningItem,
    ReasoningText,
    RefusalPart,
    Status,
    SummaryText,
)


class TextPart:
    """An open part of answer text. `append` is the hottest code of the assembler."""

    __slots__ = ("_annotations", "_at", "_index", "_item_id", "_logprobs", "_output", "_output_index", "_pieces")

    def __init__(self, at: ContentPlace, output: Output) -> None:
        self._at = at
        self._item_id, self._output_index, self._index = at["item_id"], at["output_index"], at["content_index"]
        self._output = output
        self._pieces: list[str] = []
        self._annotations: list[Annotation] = []
        self._logprobs: list[Logprob] = []
        # Lists of its own: those of the part grow while this event waits to be read.
        _part_added(output, at, {"type": "output_text", "text": "", "annotations": [], "logprobs": []})

    @property
    def text(self) -> str:
        return "".join(self._pieces)

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
        self._output.events.append(
            {
                "type": "response.output_text.annotation.added",
                "sequence_number": self._output.number(),
                **self._at,
                "annotation_index": len(self._annotations),
                "annotation": annotation,
            }
        )
        self._annotations.append(annotation)

    def close(self) -> OutputText:
        output, text, logprobs = self._output, "".join(self._pieces), self._logprobs
        part: OutputText = {
            "type": "output_text",
            "text": text,
            "annotations": self._annotations,
            "logprobs": logprobs,
        }
        number = output.number()
        output.events.append(
            {
                "type": "response.output_text.done",
                "sequence_number": number,
                **self._at,
                "text": text,
                "logprobs": logprobs,
            }
        )
        _part_done(output, self._at, part)
        return part


class RefusalWords:
    """An open part of refusing words."""

    __slots__ = ("_at", "_output", "_pieces")

    def __init__(self, at: ContentPlace, output: Output) -> None:
        self._at, self._output = at, output
        self._pieces: list[str] = []
        _part_added(output, at, {"type": "refusal", "refusal": ""})

    def append(self, text: str) -> None:
        self._pieces.append(text)
        out, at = self._output, self._at
        out.events.append({"type": "response.refusal.delta", "sequence_number": out.number(), **at, "delta": text})

    def close(self) -> RefusalPart:
        out, at, text = self._output, self._at, "".join(self._pieces)
        out.events.append({"type": "response.refusal.done", "sequence_number": out.number(), **at, "refusal": text})
        part: RefusalPart = {"type": "refusal", "refusal": text}
        _part_done(out, at, part)
        return part


class ThoughtText:
    """An open part of raw reasoning."""

    __slots__ = ("_at", "_output", "_pieces")

    def __init__(self, at: ContentPlace, output: Output) -> None:
        self._at, self._output = at, output
        self._pieces: list[str] = []
        _part_added(output, at, {"type": "reasoning_text", "text": ""})

    def append(self, text: str) -> None:
        self._pieces.append(text)
        out, at = self._output, self._at
        number = out.sequence
        out.sequence = number + 1
        out.events.append({"type": "response.reasoning_text.delta", "sequence_number": number, **at, "delta": text})

    def close(self) -> ReasoningText:
        out, at, text = self._output, self._at, "".join(self._pieces)
        out.events.append({"type": "response.reasoning_text.done", "sequence_number": out.number(), **at, "text": text})
        part: ReasoningText = {"type": "reasoning_text", "text": text}
        _part_done(out, at, part)
        return part


class ThoughtSummary:
    """An open part of a summary."""

    __slots__ = ("_at", "_output", "_pieces")

    def __init__(self, at: SummaryPlace, output: Output) -> None:
        self._at, self._output = at, output
        self._pieces: list[str] = []
        self._tell("response.reasoning_summary_part.added", {"type": "summary_text", "text": ""})

    def append(self, text: str) -> None:
        self._pieces.append(text)
        out, at, number = self._output, self._at, self._output.number()
        out.events.append(
            {"type": "response.reasoning_summary_text.delta", "sequence_number": number, **at, "delta": text}
        )

    def close(self) -> SummaryText:
        out, at, text, number = self._output, self._at, "".join(self._pieces), self._output.number()
        out.events.append(
            {"type": "response.reasoning_summary_text.done", "sequence_number": number, **at, "text": text}
        )
        part: SummaryText = {"type": "summary_text", "text": text}
        self._tell("response.reasoning_summary_part.done", part)
        return part

    def _tell(
        self,
        type: Literal["response.reasoning_summary_part.added", "response.reasoning_summary_part.done"],
        part: SummaryText,
    ) -> None:
        number = self._output.number()
        self._output.events.append({"type": type, "sequence_number": number, **self._at, "part": part})


def _part_added(out: Output, at: ContentPlace, part: ContentPart) -> None:
    out.events.append({"type": "response.content_part.added", "sequence_number": out.number(), **at, "part": part})


def _part_done(out: Output, at: ContentPlace, part: ContentPart) -> None:
    out.events.append({"type": "response.content_part.done", "sequence_number": out.number(), **at, "part": part})


class Message:
    """An open message."""

    __slots__ = ("_content", "_id", "_index", "_output", "part", "phase")

    def __init__(self, output: Output, phase: Phase | None = None, *, wanted: str = "") -> None:
        self._output = output
        self._id, self._index = output.place("msg", wanted)
        self._content: list[MessagePart] = []
        self.phase = phase
        self.part: TextPart | RefusalWords | None = None
        output.added(self._index, self._item("in_progress"))

    @property
    def text(self) -> str:
        """The answer text so far; refusals are none."""
        done = "".join(part["text"] for part in self._content if part["type"] == "output_text")
        return done + self.part.text if isinstance(self.part, TextPart) else done

    def begin_text(self) -> TextPart:
        self.part = part = TextPart(self._next(), self._output)
        return part

    def begin_refusal(self) -> RefusalWords:
        self.part = part = RefusalWords(self._next(), self._output)
        return part

    def close(self, status: Status) -> None:
        self._end_part()
        self._output.done(self._index, self._item(status))

    def _next(self) -> ContentPlace:
        self._end_part()
        return {"item_id": self._id, "output_index": self._index, "content_index": len(self._content)}

    def _end_part(self) -> None:
        part, self.part = self.part, None
        if part is not None:
            self._content.append(part.close())

    def _item(self, status: Status) -> MessageItem:
        content = list(self._content)
        item: MessageItem
        item = {"type": "message", "id": self._id, "status": status, "role": "assistant", "content": content}
        if self.phase is not None:
            item["phase"] = self.phase
        return item


class Thought:
    """An open reasoning item."""

    __slots__ = ("_content", "_id", "_index", "_output", "_summary", "part")

    def __init__(self, output: Output, *, wanted: str = "") -> None:
        self._output = output
        self._id, self._index = output.place("rs", wanted)
        self._content: list[ReasoningText] = []
        self._summary: list[SummaryText] = []
        self.part: ThoughtText | ThoughtSummary | None = None
        output.added(self._index, self._item("in_progress"))

    def begin_text(self) -> ThoughtText:
        self._end_part()
        at: ContentPlace = {"item_id": self._id, "output_index": self._index, "content_index": len(self._content)}
        self.part = part = ThoughtText(at, self._output)
        return part

    def begin_summary(self) -> ThoughtSummary:
        self._end_part()
        at: SummaryPlace = {"item_id": self._id, "output_index": self._index, "summary_index": len(self._summary)}
        self.part = part = ThoughtSummary(at, self._output)
        return part

    def close(self, status: Status, seal: Callable[[str], str | None]) -> None:
        """`seal` makes the envelope of what was thought, if it needs one."""
        self._end_part()
        item = self._item(status)
        sealed = seal("\n\n".join(part["text"] for part in (*self._content, *self._summary)))
        if sealed is not None:
            item["encrypted_content"] = sealed
        self._output.done(self._index, item)

    def _end_part(self) -> None:
        part, self.part = self.part, None
        if isinstance(part, ThoughtText):
            self._content.append(part.close())
        elif part is not None:
            self._summary.append(part.close())

    def _item(self, status: Status) -> ReasoningItem:
        item: ReasoningItem = {"type": "reasoning", "id": self._id, "status": status, "summary": list(self._summary)}
        if self._content:
            item["content"] = list(self._content)
        return item
