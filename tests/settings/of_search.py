"""Proofs for `[search]`: who is asked, with what, for whom, and how much of the answer is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from isthmus.errors import UpstreamFailed
from isthmus.gateway.gateway import Gateway
from isthmus.ports.search import Scope
from isthmus.testing import ScriptedUpstream, reply
from isthmus.testing.requests import RecordedRequest
from isthmus.testing.script import HANG, Answer
from isthmus.upstream.search.engine import Engine
from isthmus.upstream.search.pages import Pages
from isthmus.upstream.search.search import WebSearch
from settings.proving import Scene, proves
from strict_search import PAGES, answer_of

BRAVE = {
    "providers.main.base_url": '"http://127.0.0.1:1/v1"',
    "search.backend": '"brave"',
    "search.url": '"@ENGINE@"',
    "search.api_key": '"the-key-of-the-engine"',
}
OPEN = {"search.open_pages": "true"}


async def _ask(gateway: Gateway, *questions: str, **settings: Any) -> dict[str, Any]:
    commands = {"search_query": [{"q": question} for question in questions or ("otters",)]}
    return await gateway.search.answer("ann", {"id": "s", "commands": commands, "settings": settings})


async def _asked(
    scene: Scene, *steps: Any, beside: dict[str, str] | None = None, settings: dict[str, Any] | None = None
) -> tuple[dict[str, Any], list[RecordedRequest]]:
    """What one search answers, and what the engine was sent."""
    script = {"script": steps} if steps else {"default": reply(answer_of("brave"))}
    with ScriptedUpstream.running(**script, strict=False) as engine:  # type: ignore[arg-type]
        async with scene.gateway({**BRAVE, **(beside or {})}, ENGINE=engine.url) as gateway:
            answer = await _ask(gateway, **(settings or {}))
        return answer, engine.requests


@proves("search.backend", '"demo"')
async def it_is_who_is_asked(scene: Scene) -> None:
    async with scene.gateway({"providers.main.base_url": '"http://127.0.0.1:1/v1"'}) as gateway:
        assert "https://demo.example/" in (await _ask(gateway))["output"]


@proves("search.url", '"@ENGINE@/below"', instead='"http://127.0.0.1:1"')
async def it_is_where_the_engine_is_asked(scene: Scene) -> None:
    _, requests = await _asked(scene)
    assert [request.path for request in requests] == ["/below/res/v1/web/search"]


@proves("search.api_key", '"another-key-of-the-engine"', instead='"the-key-of-the-engine"')
async def it_is_shown_to_the_engine(scene: Scene) -> None:
    _, (request,) = await _asked(scene)
    assert request.headers["x-subscription-token"] == "another-key-of-the-engine"


@proves("search.api_key_file", '"key.txt"')
async def it_is_read_from_its_file(scene: Scene) -> None:
    (scene.folder / "key.txt").write_text("the-key-in-the-file\n")
    _, (request,) = await _asked(scene, beside={"search.api_key": '""'})
    assert request.headers.get("x-subscription-token") == "the-key-in-the-file"


@proves("search.prefer", '"here"')
async def it_searches_where_the_provider_could(scene: Scene) -> None:
    async with scene.gateway(BRAVE, ENGINE="http://127.0.0.1:1") as gateway:
        managed = await gateway.hosted.managed_for([{"type": "web_search"}], [], "ann")
        assert managed.prefers == {"web_search"}


@proves("search.offline", '"index"')
async def a_client_without_access_gets_what_is_in_the_index(scene: Scene) -> None:
    _, requests = await _asked(scene, settings={"external_web_access": False})
    assert len(requests) == 1


@proves("search.allowed_domains", '["rivers.example"]')
async def nothing_else_is_found(scene: Scene) -> None:
    answer, (request,) = await _asked(scene)
    assert [each["url"] for each in answer["results"]] == ["https://rivers.example/otters"]
    assert "site:rivers.example" in request.query["q"][0]


@proves("search.blocked_domains", '["otters.example"]')
async def nothing_of_them_is_found(scene: Scene) -> None:
    answer, _ = await _asked(scene)
    assert [each["url"] for each in answer["results"]] == ["https://rivers.example/otters"]


def _place(key: str, value: str, header: str) -> None:
    @proves(f"search.location.{key}", f'"{value}"')
    async def it_is_told_to_the_engine(scene: Scene) -> None:
        _, (request,) = await _asked(scene)
        assert request.headers.get(header) == value


_place("country", "DE", "x-loc-country")
_place("region", "Bavaria", "x-loc-state-name")
_place("city", "Munich", "x-loc-city")
_place("timezone", "Europe/Berlin", "x-loc-timezone")


@proves("search.timeout", '"200ms"')
async def an_engine_has_so_long(scene: Scene) -> None:
    try:
        async with asyncio.timeout(60 if not scene.forgotten else 2.0):
            answer, _ = await _asked(scene, Answer(before=(HANG,)))
    except TimeoutError as late:
        raise AssertionError("it is still waited for") from late
    assert "in time" in answer["output"] or "within 0.2 s" in answer["output"]


@proves("search.max_results", "2")
async def so_many_are_told(scene: Scene) -> None:
    answer, (request,) = await _asked(scene)
    assert (len(answer["results"]), request.query["count"]) == (2, ["2"])


@proves("search.max_snippet", "40")
async def their_words_are_so_short(scene: Scene) -> None:
    long = [{**PAGES[0], "words": "w" * 400}]
    answer, _ = await _asked(scene, reply(answer_of("brave", long)))
    assert answer["results"][0]["snippet"] == "w" * 20 + " …"


@proves("search.max_answer", "50")
async def a_longer_answer_is_not_read(scene: Scene) -> None:
    answer, _ = await _asked(scene)
    assert "sent more than 50 bytes (`search.max_answer`)" in answer["output"]


@proves("search.at_once", "3")
async def so_many_are_asked_at_once(scene: Scene) -> None:
    async with scene.gateway({**BRAVE, **OPEN}, ENGINE="http://127.0.0.1:1") as gateway:
        searcher, opener = gateway.search.searcher, gateway.search.opener
        assert isinstance(searcher, WebSearch)
        assert isinstance(searcher._engine, Engine)
        assert isinstance(opener, Pages)
        assert [each._wire.endpoint.max_connections for each in (searcher._engine, opener)] == [3, 3]


async def _twice(scene: Scene) -> int:
    with ScriptedUpstream.running(default=reply(answer_of("brave"))) as engine:
        async with scene.gateway(BRAVE, ENGINE=engine.url) as gateway:
            await _ask(gateway)
            await _ask(gateway)
        return len(engine.requests)


@proves("search.cache", "0")
async def nothing_is_kept(scene: Scene) -> None:
    assert await _twice(scene) == 2


@proves("search.keep", "0")
async def it_is_kept_for_no_time(scene: Scene) -> None:
    assert await _twice(scene) == 2


@proves("search.open_pages", "true")
async def a_page_may_be_opened(scene: Scene) -> None:
    beside = {"providers.main.base_url": '"http://127.0.0.1:1/v1"', "search.backend": '"demo"'}
    async with scene.gateway(beside) as gateway:
        commands = {"open": [{"ref_id": "https://demo.example/wiki/otters"}]}
        answer = await gateway.search.answer("ann", {"id": "s", "commands": commands})
        assert "L1: # otters: wiki" in answer["output"]


async def _pages(scene: Scene, look: Callable[[Pages], Any]) -> None:
    async with scene.gateway({**BRAVE, **OPEN}, ENGINE="http://127.0.0.1:1") as gateway:
        opener = gateway.search.opener
        assert isinstance(opener, Pages)
        found = look(opener)
        if asyncio.iscoroutine(found):
            await found


@proves("search.page_ports", "[8443]")
async def a_page_may_name_this_port(scene: Scene) -> None:
    async def look(pages: Pages) -> None:
        try:
            pages._check("https://pages.example:8443/", Scope())
        except UpstreamFailed as refused:
            raise AssertionError("it may not") from refused

    await _pages(scene, look)


@proves("search.page_timeout", "7")
async def a_page_has_so_long(scene: Scene) -> None:
    def look(pages: Pages) -> None:
        assert (pages._rules.timeout, pages._wire.endpoint.patience.connect) == (7.0, 7.0)

    await _pages(scene, look)


@proves("search.max_page", "1234")
async def a_page_may_be_so_large(scene: Scene) -> None:
    def look(pages: Pages) -> None:
        assert pages._rules.max_bytes == 1234

    await _pages(scene, look)


@proves("search.max_page_text", "1234")
async def so_much_of_its_text_is_told(scene: Scene) -> None:
    def look(pages: Pages) -> None:
        assert pages._rules.max_text == 1234

    await _pages(scene, look)


@proves("search.max_redirects", "1")
async def it_may_lead_on_so_often(scene: Scene) -> None:
    def look(pages: Pages) -> None:
        assert pages._rules.max_redirects == 1

    await _pages(scene, look)


@proves("search.max_refs", "600")
async def so_many_names_are_kept(scene: Scene) -> None:
    async with scene.gateway({**BRAVE, "search.backend": '"demo"'}, ENGINE="http://127.0.0.1:1") as gateway:
        await _ask(gateway)
        refs = gateway.search.refs
        assert (refs.find("ann", "s", "turn0search0"), bool(refs.find("ann", "s", "turn0search4"))) == (None, True)
