"""The data of a normalised conversation: turns that any dialect can write down in order.

A turn is something said by the user, system or developer, or something the assistant did: its steps (what it
thought, said and called) in their own order, with the result of each call. Paths point back into the request, so
that later decisions can name their source. All are `msgspec` structs: a history is made anew for every request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision

THINKING: Final = "thinking_blocks"
MODEL: Final = "thinking_model"
"""The vendor state of a `Thought` in Messages: its blocks as they came, and the model that they belong to."""


class _Fact(msgspec.Struct, frozen=True):
    pass


class Words(_Fact, frozen=True):
    """A piece of text; of an assistant also the words of a refusal, and what its citations point to."""

    text: str
    annotations: tuple[Mapping[str, Any], ...] = ()
    refusal: bool = False
    breakpoint: Mapping[str, Any] | None = None
    """`prompt_cache_breakpoint`, as it came: a prefix worth caching ends here."""


class Image(_Fact, frozen=True):
    """A picture: a web address or a data URL, or a file id that nobody has resolved."""

    path: str
    url: str = ""
    detail: str = ""
    file_id: str = ""
    breakpoint: Mapping[str, Any] | None = None


class File(_Fact, frozen=True):
    """A document or a video. `data` is a data URL (or bare base64, as some clients send it)."""

    path: str
    name: str = ""
    data: str = ""
    url: str = ""
    file_id: str = ""
    detail: str = ""
    video: bool = False
    """Whether the client itself called it a video."""
    breakpoint: Mapping[str, Any] | None = None


class Audio(_Fact, frozen=True):
    """A sound: base64 `data` in a `format`, or a web address."""

    path: str
    data: str = ""
    format: str = ""
    url: str = ""


class FoundTool(_Fact, frozen=True):
    name: str
    namespace: str | None = None
    description: str = ""


class FoundTools(_Fact, frozen=True):
    tools: tuple[FoundTool, ...]


Media = Image | File | Audio
Part = Words | Media | FoundTools
Speaker = Literal["user", "system", "developer"]


class Said(_Fact, frozen=True):
    """A message from outside the model, or a note that stands for an item which has no other form."""

    role: Speaker
    parts: tuple[Part, ...]
    path: str
    name: str = ""


class Thought(_Fact, frozen=True):
    """One reasoning item. `extras` is the provider's own message-level state, by upstream field."""

    path: str
    text: str = ""
    extras: Mapping[str, Any] = {}
    summarised: bool = False
    """Whether the text is only the summary: the reasoning itself did not come back."""


class Spoken(_Fact, frozen=True):
    """One message of the assistant, or the note that stands for an item which has no other form."""

    path: str
    text: str
    parts: tuple[Words, ...] = ()
    """The message's own parts; a note has none."""
    phase: str = ""
    """`commentary`, `final_answer`: what the message is within its turn, as the vendor marked it."""


class Kept(_Fact, frozen=True):
    """An item that goes back as it came, to the provider whose own it is (hosted calls, approvals)."""

    path: str
    item: Mapping[str, Any]


class PastCall(_Fact, frozen=True):
    """A call the model made. `arguments` is always the JSON text of an object; `id` is unique in the history."""

    id: str
    name: str
    arguments: str
    path: str
    namespace: str | None = None
    extra: Any = None
    """The provider's own state of this call, as it came; the model's rule names the field it goes back in."""
    free_text: str | None = None
    """The input of a custom call, bare: `arguments` holds the same inside an object."""


class PastResult(_Fact, frozen=True):
    """What came back for a call, or words that say that nothing did."""

    parts: tuple[Part, ...]
    path: str
    failed: bool = False
    """Whether the tool itself failed, and these are the words for it."""


Step = Thought | Spoken | Kept | PastCall


class Acted(_Fact, frozen=True):
    """One assistant turn: its steps in their order, and the same sorted by kind for dialects that fold them."""

    path: str
    steps: tuple[Step, ...] = ()
    thoughts: tuple[Thought, ...] = ()
    texts: tuple[str, ...] = ()
    """One entry per message or note."""
    calls: tuple[PastCall, ...] = ()
    results: tuple[PastResult, ...] = ()
    """`results[i]` answers `calls[i]`."""


PastTurn = Said | Acted | Kept
"""A `Kept` of its own is what the user answered to one (an approval)."""


class History(_Fact, frozen=True):
    turns: tuple[PastTurn, ...] = ()
    decisions: tuple[CompatibilityDecision, ...] = ()
    phased: str = ""
    """The path of the first message that carries a phase, if one does."""


def item_path(index: int, stored: int = 0) -> str:
    """Where an item stands, counted as the client counts: `input[0]` is its own first, stored ones are `history[…]`."""
    return f"history[{index}]" if index < stored else f"input[{index - stored}]"


_OWN: Final = tuple(f"input[{index}]" for index in range(256))


def item_paths(count: int, stored: int = 0) -> Sequence[str]:
    """The same of so many items."""
    own = count - stored
    paths = _OWN if own <= len(_OWN) else tuple([f"input[{index}]" for index in range(own)])
    return (*[f"history[{index}]" for index in range(stored)], *paths) if stored else paths


def opening(turns: Sequence[PastTurn]) -> list[Said]:
    """The system and developer messages before anything else: they never move while a conversation grows."""
    leading: list[Said] = []
    for turn in turns:
        if not isinstance(turn, Said) or turn.role == "user":
            break
        leading.append(turn)
    return leading


def join_texts(texts: Iterable[str]) -> str:
    """Parts of one message as one text, with a line break where nothing else keeps two apart: clients cut messages at
    line or block boundaries, and `Output:` and `ok` joined to `Output:ok` would be read as something else."""
    pieces: list[str] = []
    for text in texts:
        if text:
            if pieces and not pieces[-1][-1].isspace() and not text[0].isspace():
                pieces.append("\n")
            pieces.append(text)
    return "".join(pieces)
