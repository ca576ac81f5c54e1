"""Who runs the tools that a client leaves to the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:  # only words here: a store must not load the whole bridge
    from isthmus.bridge.types.managed import Managed, ManagedCall, ManagedKind, Ran
    from isthmus.ports.backend import Behalf
    from isthmus.protocol.json import JsonObject

Tell = Callable[[str, "JsonObject"], None]
"""Hears of progress: the last word of the event's type (`searching`, `partial_image`), and its own fields."""


class ToolRunner(Protocol):
    """Carries out one kind of managed call."""

    async def run(self, call: ManagedCall, tell: Tell) -> Ran:
        """What came of it. Raises nothing but cancellation: a failure is a result. Bounded in time by itself."""


def patience_of(runner: ToolRunner, usual: float) -> float:
    """Seconds for one call: a runner that is known to take longer than others says so."""
    own: float | None = getattr(runner, "patience", None)
    return usual if own is None else own


class HostedTool(Protocol):
    """One kind of tool that runs here, for as long as the gateway does."""

    @property
    def kind(self) -> ManagedKind: ...

    async def offer(
        self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject], owner: str
    ) -> Managed:
        """`managed`, with what runs here of a request's `tools` of this kind. `items` are its conversation. Raises
        nothing: what cannot be had is left out, or told as an error of its own."""

    def foresee(self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject]) -> Managed:
        """The same as far as it can be told without asking anybody: for those who only look at a plan."""

    def runner(self, behalf: Behalf) -> ToolRunner:
        """Whoever carries out the calls of one run."""

    async def aclose(self) -> None: ...


@runtime_checkable
class Reachable(Protocol):
    """A tool with servers of the operator's own, which may be out of reach."""

    @property
    def labels(self) -> frozenset[str]: ...

    async def reach(self, name: str) -> str | None:
        """What keeps us from connecting to one of them, in words; `None`: nothing. Nothing is sent."""
