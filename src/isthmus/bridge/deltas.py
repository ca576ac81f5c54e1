"""The neck of the hourglass: what any upstream can tell us, in small facts with boundaries.

Decoders (one per dialect) turn chunks or whole replies into these; below this line nobody knows a
provider. They are `msgspec` structs because one is made for every streamed token: a frozen dataclass
costs four times as much to create.

Words (`Text`, `Reasoning`, `Refusal`) need no boundary: the assembler opens an item when they come and closes it
when another kind of item begins. A dialect that does tell its items apart says so with `ItemBegan`, `PartBegan` and
`ItemEnded`; then two messages stay two, each with its own phase, parts and citations, and vendor state that comes
between the bounds of a reasoning item is sealed into that very item (signed, interleaved thinking blocks).
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from isthmus.protocol.events import HostedStepType
from isthmus.protocol.items import Annotation as Citation
from isthmus.protocol.items import Logprob, Phase

ItemKind = Literal["message", "reasoning"]
SOME_STOP: Final = "stop_sequence"
PartKind = Literal["output_text", "refusal", "reasoning_text", "summary_text"]


class Text(msgspec.Struct, frozen=True, gc=False):
    text: str
    logprobs: list[Logprob] | None = None


class Reasoning(msgspec.Struct, frozen=True, gc=False):
    """A piece of thinking: the raw text, or a summary meant for the reader."""

    text: str
    kind: Literal["text", "summary"] = "text"


class Refusal(msgspec.Struct, frozen=True, gc=False):
    text: str


class Annotation(msgspec.Struct, frozen=True, gc=False):
    """A citation that belongs to the text part that is open, or to the next one."""

    annotation: Citation


class ItemBegan(msgspec.Struct, frozen=True, gc=False):
    """An item that the vendor tells apart from the one before it. `id` is the vendor's own."""

    kind: ItemKind
    phase: Phase | None = None
    id: str = ""


class PartBegan(msgspec.Struct, frozen=True, gc=False):
    """Another part of the item that is open: needed where its kind is that of the part before, or it stays empty."""

    kind: PartKind


class ItemEnded(msgspec.Struct, frozen=True, gc=False):
    """The item that speaks is over; `phase` where it became known only now."""

    status: Literal["completed", "incomplete"] = "completed"
    phase: Phase | None = None


class CallOpened(msgspec.Struct, frozen=True, gc=False):
    """A tool call begins. `slot` is the decoder's own key: vendors repeat, skip or null their indexes."""

    slot: int
    id: str | None
    name: str


class CallArguments(msgspec.Struct, frozen=True, gc=False):
    """More of a call's argument text; with `replace`, all of it anew (some vendors restart)."""

    slot: int
    text: str
    replace: bool = False
    whole: bool = False
    """Nothing of it was told before and nothing will follow: it need not be shown piece by piece."""


class HostedCall(msgspec.Struct, frozen=True, gc=False):
    """A tool that the provider ran itself, as a Responses item with the vendor's id and status where it gave them.
    With a `slot` it is the end of one that was opened; without, the whole of it."""

    item: Any
    slot: int | None = None


class HostedOpened(msgspec.Struct, frozen=True, gc=False):
    slot: int
    item: Any


class HostedProgress(msgspec.Struct, frozen=True, gc=False):
    """How far it is: an event of the tool's own, with the fields that come with it."""

    slot: int
    type: HostedStepType
    fields: dict[str, Any]


class VendorExtra(msgspec.Struct, frozen=True, gc=False):
    """Opaque vendor state that must go back on the next turn (`reasoning_details`, thought signatures)."""

    key: str
    value: Any
    slot: int | None = None


class Usage(msgspec.Struct, frozen=True, gc=False):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        sums = {name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__[:-1]}
        return msgspec.structs.replace(other, **sums, estimated=self.estimated or other.estimated)


class Used(msgspec.Struct, frozen=True, gc=False):
    """Token usage so far; a later one replaces an earlier one."""

    usage: Usage


class Finished(msgspec.Struct, frozen=True, gc=False):
    """The provider's own finish reason, unmapped; `None` where it gave none."""

    reason: str | None
    stop: str | None = None
    """The stop sequence that was met, where the provider names it; `SOME_STOP` where it only says that one was."""


class TurnPaused(msgspec.Struct, frozen=True, gc=False):
    """The provider's own tools ran long and its turn is not over: sent back as it is, the turn goes on."""

    content: list[Any]


class Failed(msgspec.Struct, frozen=True, gc=False):
    """The upstream reported an error inside its reply, or the reply could not be read."""

    message: str
    code: str = "server_error"


class Markup(msgspec.Struct, frozen=True, gc=False):
    """Something to be reported: what the decoder parsed out of plain text, or had to leave out."""

    what: str
    code: str = "bridge.response.markup_parsed"


Spoken = Text | Reasoning | Refusal | Annotation | ItemBegan | PartBegan | ItemEnded
Called = CallOpened | CallArguments | HostedCall | HostedOpened | HostedProgress
Delta = Spoken | Called | VendorExtra | Used | Finished | TurnPaused | Failed | Markup
