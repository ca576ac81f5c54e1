"""The neck of the hourglass: what any upstream can tell us, in eight small facts.

Decoders (one per dialect) turn chunks or whole replies into these; below this line nobody knows a
provider. They are `msgspec` structs because one is made for every streamed token: a frozen dataclass
costs four times as much to create.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class _Delta(msgspec.Struct, frozen=True, gc=False):
    pass


class Text(_Delta, frozen=True, gc=False):
    """A piece of the answer."""

    text: str
    logprobs: list[dict[str, Any]] | None = None


class Reasoning(_Delta, frozen=True, gc=False):
    """A piece of thinking: the raw text, or a summary meant for the reader."""

    text: str
    kind: Literal["text", "summary"] = "text"


class Refusal(_Delta, frozen=True, gc=False):
    """A piece of the model's words for why it will not answer."""

    text: str


class CallOpened(_Delta, frozen=True, gc=False):
    """A tool call begins. `slot` is the decoder's own key: vendors repeat, skip or null their indexes."""

    slot: int
    id: str | None
    name: str


class CallArguments(_Delta, frozen=True, gc=False):
    """More of a call's argument text; with `replace`, all of it anew (some vendors restart)."""

    slot: int
    text: str
    replace: bool = False


class Annotation(_Delta, frozen=True, gc=False):
    """A citation that belongs to the answer's text."""

    annotation: dict[str, Any]


class VendorExtra(_Delta, frozen=True, gc=False):
    """Opaque vendor state that must go back on the next turn (`reasoning_details`, thought signatures)."""

    key: str
    value: Any
    slot: int | None = None


class HostedCall(_Delta, frozen=True, gc=False):
    """A tool that the provider ran itself, as a finished Responses item (`web_search_call` …)."""

    item: dict[str, Any]


class Usage(_Delta, frozen=True, gc=False):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0
    estimated: bool = False


class Used(_Delta, frozen=True, gc=False):
    """Token usage so far; a later one replaces an earlier one."""

    usage: Usage


class Finished(_Delta, frozen=True, gc=False):
    """The provider's own finish reason, unmapped; `None` where it gave none."""

    reason: str | None


class Failed(_Delta, frozen=True, gc=False):
    """The upstream reported an error inside its reply, or the reply could not be read."""

    message: str
    code: str = "server_error"


class Markup(_Delta, frozen=True, gc=False):
    """Something the decoder parsed out of plain text (think tags, leaked tool markup), to be reported."""

    what: str


Delta = (
    Text
    | Reasoning
    | Refusal
    | CallOpened
    | CallArguments
    | Annotation
    | VendorExtra
    | HostedCall
    | Used
    | Finished
    | Failed
    | Markup
)
