"""The two items that speak: a message and a reasoning item, from `added` to `done`.

A message holds parts (text, refusal), a reasoning item holds raw text and summaries. One part is open at a time; the
next one closes it. A reasoning item also carries the vendor state that must come back on the next turn, inside our
envelope: what comes without reasoning, or too late for it, gets an item of its own at the end. Reasoning text is sealed
along when the client asked for `reasoning.encrypted_content`: such clients send nothing else back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from isthmus.bridge.assemble.output import Output
from isthmus.bridge.deltas import ItemKind, PartKind, VendorExtra
from isthmus.bridge.envelope import Kind, Sealed
from isthmus.protocol.items import Annotation, Logprob, MessageItem, Phase, ReasoningItem, Status


class Seal(Protocol):
    def __call__(self, sealed: Sealed, kind: Kind = "reasoning") -> str: ...


_SealText = Callable[[str], str | None]
_GROWING: Final = ("text", "summary", "data")


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
_SPECIFIED: Final[dict[PartKind, _Spelling]] = {
    **_SPELLINGS,
    "reasoning_text": _Spelling("text", "content_index", _PART, "response.reasoning"),
}


class Part:
    """An open part. Its `append` and `extend` are the hottest code of the assembler."""

    __slots__ = ("_at", "_event", "_logprobs", "_output", "_spelling", "_text", "kind")

    def __init__(self, kind: PartKind, at: dict[str, Any], output: Output) -> None:
        self.kind: PartKind = kind
        self._at, self._output = at, output
        self._spelling = (_SPECIFIED if output.specified else _SPELLINGS)[kind]
        self._event: Any = {"type": f"{self._spelling.words}.delta", "sequence_number": 0, **at, "delta": ""}
        """Of a delta all but its number and its words."""
        self._text = bytearray()
        """Not a list of pieces: each would take ten times as much as its letters."""
        self._logprobs: list[Logprob] = []
        output.say(f"{self._spelling.part}.added", **at, part=self._shape())

    @property
    def text(self) -> str:
        return self._text.decode("utf-8", "surrogatepass")

    def append(self, text: str, logprobs: list[Logprob] | None = None) -> None:
        self._text += text.encode("utf-8", "surrogatepass")
        output = self._output
        number = output.sequence
        event: Any = {**self._event, "sequence_number": number, "delta": text}
        if logprobs:
            event["logprobs"] = logprobs
            self._logprobs += logprobs
        output.events.append(event)
        output.sequence = number + 1

    def extend(self, texts: list[str]) -> None:
        """Several pieces, each of which has its event."""
        self._text += "".join(texts).encode("utf-8", "surrogatepass")
        output, event = self._output, self._event
        numbered = enumerate(texts, output.sequence)
        told: Any = [{**event, "sequence_number": number, "delta": text} for number, text in numbered]
        output.events += told
        output.sequence += len(texts)

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
    __slots__ = ("_annotations",)

    def __init__(self, kind: PartKind, at: dict[str, Any], output: Output) -> None:
        self._annotations: list[Annotation] = []
        super().__init__(kind, at, output)
        self._event["logprobs"] = []

    @property
    def annotated(self) -> bool:
        """Whether the provider itself said what it rests on."""
        return bool(self._annotations)

    def annotate(self, annotation: Annotation) -> None:
        number = len(self._annotations)
        added = "response.output_text.annotation.added"
        self._output.say(added, **self._at, annotation_index=number, annotation=annotation)
        self._annotations.append(annotation)

    def _shape(self) -> dict[str, Any]:
        # Copies: the part's own lists grow while an event waits to be read.
        said = {"annotations": [*self._annotations], "logprobs": [*self._logprobs]}
        return {"type": self.kind, "text": self.text, **said}

    def _last_words(self, part: dict[str, Any]) -> dict[str, Any]:
        return {"text": part["text"], "logprobs": part["logprobs"]}


class Speech:
    """An open message or reasoning item; `seal` makes the envelope of what was thought, if it needs one, `cite` finds
    the citations in a text that is over."""

    __slots__ = ("_cite", "_id", "_index", "_output", "_parts", "_seal", "kind", "part", "phase")

    def __init__(
        self,
        kind: ItemKind,
        output: Output,
        *,
        phase: Phase | None = None,
        seal: _SealText | None = None,
        cite: Callable[[str], list[Annotation]] | None = None,
        wanted: str = "",
    ) -> None:
        self.kind, self._output, self.phase, self._seal, self._cite = kind, output, phase, seal, cite
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
        if isinstance(part, TextPart) and self._cite is not None and not part.annotated:
            for citation in self._cite(part.text):
                part.annotate(citation)
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


class VendorState(msgspec.Struct, eq=False):
    _provider: str
    _seal: Seal | None
    _text_too: bool
    """Whether reasoning is sealed that comes without any state."""
    _lists: dict[str, list[list[Any]]] = {}
    """What came in lists, delta by delta: joined when it is sealed."""
    _values: dict[str, Any] = {}
    _calls: dict[str, Any] = {}

    def take(self, delta: VendorExtra, call_id: str | None) -> None:
        if delta.slot is not None:
            if call_id is not None:
                self._calls[call_id] = delta.value
        elif isinstance(delta.value, list):
            self._lists.setdefault(delta.key, []).append(delta.value)
        else:
            self._values[delta.key] = delta.value

    def seal_reasoning(self, text: str) -> str | None:
        return self._envelope(text, {}) if self._text_too or self._lists or self._values else None

    def flush(self, output: Output) -> None:
        """What no reasoning item took along."""
        if self._seal is not None and (self._calls or self._lists or self._values):
            Speech("reasoning", output, seal=lambda text: self._envelope(text, self._calls)).close("completed")

    def _envelope(self, text: str, calls: dict[str, Any]) -> str | None:
        if self._seal is None:
            return None
        state = {**self._values, **{key: join_fragments(deltas) for key, deltas in self._lists.items()}}
        self._values, self._lists = {}, {}
        return self._seal(Sealed(self._provider, text, state, calls))


def join_fragments(deltas: Iterable[list[Any]]) -> list[Any]:
    """State in fragments → the array that a whole reply would have held.

    A streamed `reasoning_details` comes as many small entries that share their index (and id); sent back one by one
    they would not be what the model said. The first entry of a delta may go on with the last one of the delta before;
    entries of one delta are the vendor's own and stay apart.
    """
    groups: list[list[Any]] = []
    id: Any = None
    for entries in deltas:
        for number, entry in enumerate(entries):
            if number == 0 and groups and _continues(groups[-1][-1], id, entry):
                groups[-1].append(entry)
                id = id or entry.get("id")
            else:
                groups.append([entry])
                id = entry.get("id") if isinstance(entry, dict) else None
    return [_join(group) if len(group) > 1 else group[0] for group in groups]


def _continues(last: Any, id: Any, first: Any) -> bool:
    if not isinstance(last, dict) or not isinstance(first, dict) or first.get("index") is None:
        return False
    if any(last.get(name) != first.get(name) for name in ("index", "type")):
        return False
    return not (id and first.get("id") and id != first["id"])


def _join(fragments: list[dict[str, Any]]) -> dict[str, Any]:
    """What grows is put together; of the rest, the last word counts."""
    joined: dict[str, Any] = {}
    for name in dict.fromkeys(name for fragment in fragments for name in fragment):
        values = [fragment[name] for fragment in fragments if fragment.get(name) is not None]
        grows = name in _GROWING and all(isinstance(value, str) for value in values)
        joined[name] = "".join(values) if values and grows else values[-1] if values else None
    return joined
