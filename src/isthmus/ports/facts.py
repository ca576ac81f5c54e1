"""What happens to a request, as facts, and who hears of them.

    Received → Planned → Sent → Accepted → FirstToken → Ended → Answered
                          ▲ Retried │ ToolRan, ContractChecked │
                          └─ AttemptFailed ────────────────────┘

`Received` and `Answered` belong to a request (`request`, its `req_…`), those between them to the run that was made for
it (`id`, its `resp_…` or `emb_…`); `Planned` knows both. A request that is refused before it is planned, by its key or
while it is read, has only an `Answered`, perhaps a `Received`. A background run ends after its request was answered,
and one that is made again after a crash has no request at all. Facts hold what they speak of (bodies, plans) by
reference: whoever hears them may look, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from isthmus.ports.usage import Used

if TYPE_CHECKING:  # only words here: a store must not load the whole bridge
    from isthmus.bridge.contract.check import ContractCheck
    from isthmus.bridge.types.managed import ManagedCall, Ran
    from isthmus.errors import IsthmusError
    from isthmus.protocol.json import JsonObject

Asking = Literal["first", "anew", "repair", "search", "tool", "compaction", "pause"]
"""Why an upstream is asked: for the first time, another one or without a field (`anew`), or once more within the same
answer: the format was not kept, tools were searched for, a tool was run, a summary came first, the provider paused."""


class Received(msgspec.Struct, frozen=True):
    """A request is here, whole, from somebody who may ask."""

    request: str
    owner: str
    key: str
    """The id of the key that was shown, never the key."""
    client: str
    """Which program asks, if it is known (`codex`)."""
    method: str
    """`WS`: a frame of a WebSocket."""
    path: str
    size: int
    """Bytes of its body."""
    seconds: float
    """How long it took to come."""
    traceparent: str = ""
    """As its client sent it (W3C Trace Context), checked by nobody."""
    raw: bytes | bytearray | None = None
    """Its body, where all of it is to be kept (see `Tracing`)."""


class Planned(msgspec.Struct, frozen=True):
    """It was read and planned; nothing was sent yet."""

    id: str
    request: str
    owner: str
    plan: Any
    """A `Plan` or an `EmbeddingPlan`: `target`, `body`, `decisions`, `diagnostics`."""
    asked: Mapping[str, Any]
    """The request as a Responses (or Embeddings) request: of other doors, what they made of it."""
    items: Sequence[JsonObject] = ()
    """Its own input as items."""
    history: int = 0
    """Items of earlier turns that stand before these."""
    parse_seconds: float | None = None
    """From the last byte of its body until it was read; `None`: nobody knows."""
    plan_seconds: float = 0.0
    """From then until now: stored turns, the plan, its schema."""
    background: bool = False


class Sent(msgspec.Struct, frozen=True):
    """An upstream is asked."""

    id: str
    provider: str
    model: str
    attempt: int
    why: Asking = "first"
    body: Mapping[str, Any] | None = None
    """The body as it goes out; fields go in this order."""
    key: str = ""
    """Under which name the key stands that it is shown, where callers have keys of their own (`team:search`); never
    the key."""


class Accepted(msgspec.Struct, frozen=True):
    """It took the request: the head of its answer is here, so many seconds after it was sent."""

    id: str
    seconds: float


class Retried(msgspec.Struct, frozen=True):
    """Below an attempt: the same provider was asked again, after a wait or at another place of it."""

    id: str
    provider: str
    failure: IsthmusError
    wait: float = 0.0
    elsewhere: bool = False
    """Whether another key or place was asked."""


class AttemptFailed(msgspec.Struct, frozen=True):
    """It failed, or broke off; another attempt may follow."""

    id: str
    provider: str
    model: str
    attempt: int
    failure: IsthmusError


class FirstToken(msgspec.Struct, frozen=True):
    """The model has begun to say something, so many seconds after it was asked."""

    id: str
    seconds: float


class ToolRan(msgspec.Struct, frozen=True):
    """A tool of the host was run for the model."""

    id: str
    call: ManagedCall
    ran: Ran | None
    """`None`: it was cancelled."""
    seconds: float


class ContractChecked(msgspec.Struct, frozen=True):
    """An answer was held against the format that was asked for."""

    id: str
    check: ContractCheck
    seconds: float


Step = Sent | Accepted | Retried | AttemptFailed | ToolRan | ContractChecked
"""What happens to a run on its way."""


class Mark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A moment of a stream."""

    seconds: float
    """Since the run began."""
    batches: int
    """How many batches of events were told by then."""
    event: str
    """The type of the last of them, without `response.`."""


class Ended(msgspec.Struct, frozen=True):
    """A run is over: its whole life in one fact."""

    id: str
    owner: str
    provider: str
    model: str
    attempts: int
    outcome: str
    """The status of its response; `refused` where it failed before there was one."""
    failure: IsthmusError | None
    usage: Mapping[str, Any] | None
    price: float | None
    """What that costs in US dollars, where the prices are known."""
    seconds: float
    first_token: float | None
    degraded: int
    ignored: int
    background: bool = False
    first_byte: float | None = None
    """Seconds from when it was last sent until the head of the answer was here."""
    settled: float = 0.0
    """Seconds from the upstream's last word to this end: checks, and saving."""
    batches: int = 0
    """Batches of events that were told, one for each read."""
    events: int = 0
    longest_gap: float = 0.0
    """Seconds between two of these batches, the longest."""
    marks: tuple[Mark, ...] = ()
    """Moments of the stream, a bounded number of them, as evenly spread over its batches as they come."""
    response: Mapping[str, Any] | None = None
    """The Response object at its end, if there is one."""
    written: bytes | None = None
    """The same as JSON, where it was written to be kept, and is small."""
    used: Used = (0, 0, 0, 0)
    """The tokens of `usage`."""
    steps: Sequence[tuple[float, Any]] = ()
    """All that was told of it before (each a `Step`), with the seconds since the run began."""


class Answered(msgspec.Struct, frozen=True):
    """A request is over for its client: refused, answered, or left by it. Its run may go on in the background."""

    request: str
    id: str
    """The run that was made for it; empty: none was, it was refused before."""
    owner: str
    """Empty: nobody's, its key was refused or never looked at."""
    key: str
    client: str
    method: str
    path: str
    status: int
    """The HTTP status that was sent; 0: none was."""
    failure: IsthmusError | None
    left: bool
    """Whether its client went away before the end."""
    seconds: float
    """Since its first byte, the end of its answer included."""
    size: int = 0
    client_id: str = ""
    """What its client calls it (`X-Client-Request-Id`)."""
    received: Received | None = None
    """What was told of it when it came, if it was taken."""

    @property
    def refused(self) -> bool:
        """Whether nothing was made of it."""
        return not self.id and self.failure is not None


Fact = (
    Received
    | Planned
    | Sent
    | Accepted
    | Retried
    | AttemptFailed
    | FirstToken
    | ToolRan
    | ContractChecked
    | Ended
    | Answered
)


class Observer(Protocol):
    """Hears the facts of a request's life: a few for each request, none for each token."""

    def tell(self, fact: Fact) -> None:
        """Must neither wait nor raise."""
