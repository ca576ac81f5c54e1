"""The operator's rules hold for every search: domains, location, numbers, time, memory, and no way out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.ports.search import Found, Hit, Location, Query, Scope
from isthmus.upstream.search.search import SearchRules, WebSearch

HITS = tuple(Hit(f"https://{host}/page", host, "w" * 3000) for host in ("a.example", "b.example", "x.b.example"))


class Fake:
    name = "fake"

    def __init__(self, hits: tuple[Hit, ...] = HITS, wait: asyncio.Event | None = None) -> None:
        self.asked: list[Query] = []
        self._hits = hits
        self._wait = wait

    async def ask(self, query: Query, count: int) -> Found:
        self.asked.append(query)
        if self._wait is not None:
            await self._wait.wait()
        return Found(self._hits, ("the location",))

    async def aclose(self) -> None: ...


def hosts(found: Found) -> list[str]:
    return [hit.title for hit in found.hits]


@pytest.mark.parametrize(
    ("house", "asked", "left"),
    [
        ({}, Scope(), ["a.example", "b.example", "x.b.example"]),
        ({}, Scope(("b.example",)), ["b.example", "x.b.example"]),
        ({}, Scope((), ("b.example",)), ["a.example"]),
        ({"allowed": ("a.example",)}, Scope(), ["a.example"]),
        ({"allowed": ("a.example",)}, Scope(("b.example",)), []),
        ({"blocked": ("x.b.example",)}, Scope(("b.example",)), ["b.example"]),
    ],
)
async def test_domains_of_the_house_and_of_the_query_both_hold(house: Any, asked: Scope, left: list[str]) -> None:
    """The engine knows nothing of them: it finds the same for everybody."""
    found = await WebSearch(Fake(), SearchRules(**house)).search(Query("q", asked))
    assert hosts(found) == left
    assert found.lost == ("the location",)


async def test_what_is_sent_has_the_houses_domains_and_location_where_the_client_has_none() -> None:
    engine, house = Fake(), Location("DE")
    search = WebSearch(engine, SearchRules(allowed=("a.example",), blocked=("z.example",), location=house))
    await search.search(Query("q", Scope((), ("y.example",))))
    await search.search(Query("q", Scope(("b.example",)), location=Location("FR")))
    first, second = engine.asked
    assert (first.scope.allowed, first.scope.blocked, first.location) == (
        ("a.example",),
        ("z.example", "y.example"),
        house,
    )
    assert (second.scope.allowed, second.location) == (("b.example",), Location("FR"))


async def test_the_same_question_is_asked_once_and_another_one_again() -> None:
    engine = Fake()
    search = WebSearch(engine, SearchRules())
    for query in (Query("q"), Query("q"), Query("q", recency=3), Query("q", size="high"), Query("r")):
        await search.search(query)
    assert len(engine.asked) == 4


async def test_a_question_that_may_not_leave_is_answered_from_memory_or_not_at_all() -> None:
    engine = Fake()
    search = WebSearch(engine, SearchRules())
    with pytest.raises(UpstreamFailed, match="external_web_access: false"):
        await search.search(Query("q", Scope(access="kept")))
    assert engine.asked == []
    await search.search(Query("q"))
    assert hosts(await search.search(Query("q", Scope(access="kept")))) == hosts(Found(HITS))
    assert len(engine.asked) == 1
    await search.search(Query("other", Scope(access="index")))
    assert len(engine.asked) == 2


@pytest.mark.parametrize(("size", "length"), [("low", 250), ("medium", 500), ("high", 1000)])
async def test_there_are_no_more_hits_and_no_longer_ones_than_allowed(size: Any, length: int) -> None:
    found = await WebSearch(Fake(), SearchRules(max_results=2)).search(Query("q", size=size))
    assert [len(hit.snippet) for hit in found.hits] == [length + 2] * 2


async def test_an_engine_has_its_time_and_no_more() -> None:
    search = WebSearch(Fake(wait=asyncio.Event()), SearchRules(timeout=0.05))
    with pytest.raises(UpstreamFailed, match=r"`fake` did not answer within 0\.05 s"):
        await search.search(Query("q"))


async def test_the_log_tells_of_every_way_out_and_not_of_the_question(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "isthmus.search")
    search = WebSearch(Fake(), SearchRules())
    await search.search(Query("a secret illness"))
    await search.search(Query("a secret illness"))
    with pytest.raises(UpstreamFailed):
        await WebSearch(Fake(wait=asyncio.Event()), SearchRules(timeout=0.05)).search(Query("another"))
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "search.done engine=fake hits=3",
        "search.failed engine=fake reason='the search engine `fake` did not answer within 0.05 s'",
    ]


async def test_a_failure_is_not_remembered() -> None:
    engine = Fake(wait=(gate := asyncio.Event()))
    search = WebSearch(engine, SearchRules(timeout=0.05))
    with pytest.raises(UpstreamFailed):
        await search.search(Query("q"))
    gate.set()
    assert len((await search.search(Query("q"))).hits) == 3
