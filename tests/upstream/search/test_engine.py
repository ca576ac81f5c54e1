"""Every search engine against a server as strict as its own: what it is asked, what it finds, how it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import msgspec
import pytest

from isthmus.errors import UpstreamFailed
from isthmus.ports.search import Hit, Location, Query, Scope
from isthmus.providers.search import load_search, search_names
from isthmus.testing import Answer, ScriptedUpstream, drop, reply
from isthmus.testing.requests import RecordedRequest
from isthmus.testing.script import HANG
from isthmus.upstream.search.engine import Engine
from strict_search import KEY, strict

ENGINES = search_names()
BERLIN = Location("DE", "Berlin", "Berlin", "Europe/Berlin")
EVERYTHING = Query(
    "how otters play", Scope(("otters.example",), ("spam.example",)), recency=7, location=BERLIN, size="high"
)


@asynccontextmanager
async def engine(name: str, url: str, key: str = KEY, **options: Any) -> AsyncIterator[Engine]:
    made = Engine(name, load_search(name), url=url, key=key, today=lambda: date(2026, 11, 17), **options)
    try:
        yield made
    finally:
        await made.aclose()


async def asked(name: str, query: Query, count: int = 10) -> tuple[Any, RecordedRequest]:
    async with ScriptedUpstream(default=strict(name)) as server, engine(name, server.url) as made:
        found = await made.ask(query, count)
    (request,) = server.requests
    return found, request


async def failure(name: str, server: Any, key: str = KEY, query: Query = EVERYTHING, **options: Any) -> str:
    async with server as up, engine(name, up.url, key, **options) as made:
        with pytest.raises(UpstreamFailed) as failed:
            await made.ask(query, 10)
    return failed.value.message


@pytest.mark.parametrize("name", ENGINES)
async def test_it_finds_pages_with_title_address_and_words(name: str) -> None:
    found, _ = await asked(name, Query("how otters play"))
    dates = [hit.date[:10] for hit in found.hits]
    assert [Hit(hit.url, hit.title, hit.snippet) for hit in found.hits] == [
        Hit("https://otters.example/play", "Otters at play", "They slide down banks."),
        Hit("https://rivers.example/otters", "Rivers & otters", "Where they live."),
        Hit("https://docs.otters.example/food", "What they eat", "Fish, mostly."),
    ]
    assert dates == ([""] * 3 if name == "tavily" else ["2026-11-03", "2026-11-05", "2026-11-09"])
    assert found.lost == ()


SENT: dict[str, dict[str, Any]] = {
    "brave": {
        "q": "how otters play site:otters.example -site:spam.example",
        "count": "10",
        "freshness": "pw",
        "result_filter": "web",
        "text_decorations": "false",
    },
    "exa": {
        "query": "how otters play",
        "numResults": 10,
        "includeDomains": ["otters.example"],
        "excludeDomains": ["spam.example"],
        "startPublishedDate": "2026-11-10",
        "userLocation": "DE",
        "contents": {"highlights": True},
    },
    "searxng": {
        "q": "how otters play site:otters.example -site:spam.example",
        "format": "json",
        "time_range": "week",
    },
    "tavily": {
        "query": "how otters play",
        "max_results": 10,
        "include_domains": ["otters.example"],
        "exclude_domains": ["spam.example"],
        "start_date": "2026-11-10",
        "country": "germany",
    },
    "zhipu": {
        "search_query": "how otters play",
        "search_engine": "search_std",
        "search_intent": False,
        "count": 10,
        "search_domain_filter": "otters.example",
        "search_recency_filter": "oneWeek",
        "content_size": "high",
    },
}
LOST = {"searxng": ("the location",), "zhipu": ("the location",)}


@pytest.mark.parametrize("name", ENGINES)
async def test_everything_that_narrows_a_search_travels_or_is_told_as_lost(name: str) -> None:
    found, request = await asked(name, EVERYTHING)
    sent = request.json if request.method == "POST" else {key: values[0] for key, values in request.query.items()}
    assert sent == SENT[name]
    assert found.lost == LOST.get(name, ())


async def test_brave_is_told_the_location_in_headers() -> None:
    _, request = await asked("brave", EVERYTHING)
    told = {name: value for name, value in request.headers.items() if name.startswith("x-loc-")}
    assert told == {
        "x-loc-country": "DE",
        "x-loc-state-name": "Berlin",
        "x-loc-city": "Berlin",
        "x-loc-timezone": "Europe/Berlin",
    }


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("count", [1, 20, 500])
async def test_a_long_question_and_any_count_are_fitted_to_what_it_takes(name: str, count: int) -> None:
    found, _ = await asked(name, Query("why do otters hold hands " * 40), count)
    assert len(found.hits) == 3
    limited = load_search(name).max_query > 0
    assert found.lost == (("the end of the question, which is too long for it",) if limited else ())


REFUSED = {
    "brave": "HTTP 422: The provided subscription token is invalid.",
    "exa": "HTTP 401: Invalid API key; is `search.api_key` right?",
    "tavily": "HTTP 401: Unauthorized: missing or invalid API key.; is `search.api_key` right?",
    "zhipu": "HTTP 401: Authentication Failed; is `search.api_key` right?",
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("key", ["", "wrong-key-of-somebody-else"])
async def test_a_wrong_key_is_refused_in_the_vendors_words_and_ours(name: str, key: str) -> None:
    told = await failure(name, ScriptedUpstream(default=strict(name)), key)
    assert told == f"the search engine `{name}` refused with {REFUSED[name]}"


async def test_a_searxng_without_json_says_what_to_change() -> None:
    closed = Answer((b"<h1>Forbidden</h1>",), 403, {"content-type": "text/html"})
    told = await failure("searxng", ScriptedUpstream([closed]))
    assert "add `json` to `search.formats` in its settings.yml" in told


@pytest.mark.parametrize("name", ENGINES)
async def test_a_vendor_that_repeats_the_key_gives_nothing_away(name: str) -> None:
    facts = load_search(name)
    words: Any = f"bad key {KEY}, or {KEY[:20]}"
    for step in reversed((facts.answer.error or "error").split(".")):
        words = {step: words}
    told = await failure(name, ScriptedUpstream([reply(words, status=403)]))
    assert KEY[:20] not in told
    assert "403" in told


@pytest.mark.parametrize("name", ENGINES)
async def test_an_empty_answer_is_no_hit_and_no_failure(name: str) -> None:
    async with ScriptedUpstream(default=strict(name, ())) as server, engine(name, server.url) as made:
        assert (await made.ask(Query("nothing"), 10)).hits == ()


async def test_what_is_no_answer_is_told() -> None:
    cases = {
        b"<html>": "its answer is no JSON",
        b"[1]": "its answer is no JSON object",
        b'{"results": 3}': "`results` in its answer is no list",
    }
    for said, words in cases.items():
        told = await failure("searxng", ScriptedUpstream([reply(said)]))
        assert told == f"the search engine `searxng` cannot be understood: {words}"


async def test_an_answer_that_is_too_large_is_not_read_to_its_end() -> None:
    flood = msgspec.json.encode({"results": [], "more": "x" * 300_000})
    told = await failure("searxng", ScriptedUpstream([reply(flood)]), max_answer=100_000)
    assert told.endswith("sent more than 100000 bytes (`search.max_answer`)")


async def test_a_server_that_leaves_or_is_silent_is_told_in_words() -> None:
    told = await failure("searxng", ScriptedUpstream(default=drop(reset=True)))
    assert told.startswith("the search engine `searxng` cannot be reached")
    async with asyncio.timeout(30):
        silent = await failure("searxng", ScriptedUpstream([Answer(before=(HANG,))]), timeout=0.2)
    assert silent == "the search engine `searxng` did not answer in time"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    async with ScriptedUpstream() as elsewhere:
        away = Answer(status=status, headers={"Location": f"{elsewhere.url}/search"})
        assert f"HTTP {status}" in await failure("searxng", ScriptedUpstream([away]))
        assert elsewhere.requests == []


async def test_a_vendors_own_name_leads_nowhere_but_to_the_internet() -> None:
    async def names(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    made = Engine("brave", load_search("brave"), key=KEY, lookup=names)
    with pytest.raises(UpstreamFailed, match="none of which may be called"):
        await made.ask(Query("otters"), 3)
    await made.aclose()
