"""The tools that run here, together: who is asked for what, and who carries out a call."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from isthmus.bridge.types.managed import NOTHING_MANAGED, Listing, Managed, ManagedCall, ManagedKind, Ran
from isthmus.conduct.hosted import NO_TOOLS, Hosted
from isthmus.ports import Behalf
from isthmus.ports.tools import Tell
from isthmus.protocol.json import JsonObject


class Noting:
    """Offers what it is told to, and notes what it was asked."""

    def __init__(self, kind: ManagedKind, **offer: object) -> None:
        self._kind, self._offer = kind, offer
        self.asked: list[tuple[list[JsonObject], int, str]] = []
        self.owners: list[str] = []
        self.closed = False

    @property
    def kind(self) -> ManagedKind:
        return self._kind

    async def offer(
        self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject], owner: str
    ) -> Managed:
        self.asked.append((list(tools), len(items), owner))
        return replace(managed, **self._offer)

    def foresee(self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject]) -> Managed:
        return replace(managed, **self._offer)

    def runner(self, behalf: Behalf) -> Noting:
        self.owners.append(behalf.owner)
        return self

    async def run(self, call: ManagedCall, tell: Tell) -> Ran:
        return Ran(f"{self._kind} for {self.owners[-1]}")

    async def aclose(self) -> None:
        self.closed = True


SEARCH: JsonObject = {"type": "web_search_preview"}
DOCS: JsonObject = {"type": "mcp", "server_label": "docs"}
MINE: JsonObject = {"type": "function", "name": "mine"}


async def test_each_is_asked_for_its_own_tools_and_all_offer_together() -> None:
    search, servers = Noting("web_search", search="x"), Noting("mcp", mcp={"docs": Listing()})
    hosted = Hosted([search, servers])
    carrier: JsonObject = {"type": "additional_tools", "tools": [DOCS]}
    managed = await hosted.managed_for([SEARCH, MINE], [carrier], "ann")
    assert managed == Managed("x", mcp={"docs": Listing()})
    assert (search.asked, servers.asked) == ([([SEARCH], 1, "ann")], [([DOCS], 1, "ann")])


@pytest.mark.parametrize("tools", [None, [], [MINE], [{"type": "image_generation"}]])
async def test_a_request_that_needs_none_of_them_asks_nobody(tools: list[JsonObject] | None) -> None:
    search = Noting("web_search", search="x")
    assert await Hosted([search]).managed_for(tools, [], "ann") is NOTHING_MANAGED
    assert search.asked == []


def test_what_is_only_looked_at_asks_nobody() -> None:
    search, servers = Noting("web_search", search="x"), Noting("mcp", mcp={"docs": Listing(later=True)})
    managed = Hosted([search, servers]).foresee([SEARCH], [{"type": "additional_tools", "tools": [DOCS]}])
    assert managed == Managed("x", mcp={"docs": Listing(later=True)})
    assert (search.asked, servers.asked) == ([], [])


async def test_nothing_runs_where_nothing_is_configured() -> None:
    assert await NO_TOOLS.managed_for([SEARCH, DOCS], [], "ann") is NOTHING_MANAGED


async def test_a_runner_knows_who_asks() -> None:
    hosted = Hosted([Noting("web_search"), Noting("mcp")])
    call = ManagedCall("ws_1", "web_search", "web_search", {"query": "a"}, SEARCH)
    assert await hosted.runner("web_search", Behalf("ann")).run(call, lambda word, fields: None) == Ran(
        "web_search for ann"
    )


async def test_all_are_closed() -> None:
    tools = [Noting("web_search"), Noting("mcp")]
    await Hosted(tools).aclose()
    assert all(tool.closed for tool in tools)
