"""A page is opened, followed and read within its limits. What it can never reach: `tests/security/test_ways_out.py`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from isthmus.errors import UpstreamFailed, WorkNotDone
from isthmus.ports.search import Page, Scope
from isthmus.testing import Answer, ScriptedUpstream
from isthmus.testing.script import HANG
from isthmus.upstream.search.extract import run_encoded
from isthmus.upstream.search.pages import ClosedPages, PageRules, Pages

HTML = (
    b"<html><head><title>Otters</title></head><body><article><p>Otters live in rivers and the sea, and they are "
    b"a lot of fun to watch when they play.</p></article></body></html>"
)


class Here:
    """The workers' work, in this process."""

    def __init__(self, trouble: bool = False) -> None:
        self._trouble = trouble

    async def run(self, kind: str, payload: bytes) -> bytes:
        assert kind == "page"
        if self._trouble:
            raise WorkNotDone("it took more than 5 s (`checks.deadline`)")
        return run_encoded(payload)


def html(body: bytes = HTML, kind: str = "text/html; charset=utf-8", **headers: str) -> Answer:
    return Answer((body,), 200, {"content-type": kind, **headers})


def led(to: str, status: int = 302) -> Answer:
    return Answer((), status, {"location": to})


@asynccontextmanager
async def pages(port: int, trouble: bool = False, **rules: Any) -> AsyncIterator[Pages]:
    """Names lead to the test's server, which stands for the internet."""

    async def names(host: str, asked: int) -> list[str]:
        return ["127.0.0.1"]

    made = Pages(Here(trouble), PageRules(ports=(port,), **rules), lookup=names, allows=lambda address: True)
    try:
        yield made
    finally:
        await made.aclose()


async def refusal(*steps: Any, url: str = "/", scope: Scope | None = None, **rules: Any) -> str:
    async with ScriptedUpstream(steps) as server, pages(server.port, **rules) as made:
        with pytest.raises(UpstreamFailed) as failed:
            await made.open(f"http://otters.example:{server.port}{url}", scope or Scope())
    return failed.value.message


async def test_a_page_is_opened_and_nothing_of_ours_goes_along() -> None:
    async with ScriptedUpstream([html()]) as server, pages(server.port) as made:
        page = await made.open(f"http://otters.example:{server.port}/play#part")
    (request,) = server.requests
    assert page.title == "Otters"
    assert page.text.startswith("Otters live in rivers")
    assert page.url == f"http://otters.example:{server.port}/play"
    assert (request.method, request.target) == ("GET", "/play")
    assert not {"authorization", "cookie", "referer"} & set(request.headers)


async def test_the_log_tells_which_host_was_opened_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "isthmus.search")
    async with ScriptedUpstream([html(), Answer(status=404)]) as server, pages(server.port) as made:
        await made.open(f"http://otters.example:{server.port}/a/secret?token=1")
        with pytest.raises(UpstreamFailed):
            await made.open(f"http://rivers.example:{server.port}/")
    assert [record.getMessage() for record in caplog.records] == [
        "page.opened host=otters.example",
        "page.failed host=rivers.example reason='the page cannot be opened: its server answered HTTP 404'",
    ]


async def test_a_redirect_is_followed_and_the_page_is_where_it_ends() -> None:
    async with ScriptedUpstream([led("/two"), led("three", 308), html()]) as server, pages(server.port) as made:
        page = await made.open(f"http://otters.example:{server.port}/one")
    assert page.url.endswith("/three")
    assert [request.target for request in server.requests] == ["/one", "/two", "/three"]


async def test_a_page_that_leads_on_and_on_is_given_up() -> None:
    told = await refusal(*[led(f"/{index}") for index in range(3)], max_redirects=2)
    assert told == "the page cannot be opened: it leads on more than 2 times"


async def test_what_was_opened_is_not_asked_for_again_and_is_there_for_clients_without_access() -> None:
    async with ScriptedUpstream([html()]) as server, pages(server.port) as made:
        url = f"http://otters.example:{server.port}/"
        with pytest.raises(UpstreamFailed, match="was not opened before"):
            await made.open(url, Scope(access="index"))
        assert server.requests == []
        first = await made.open(url)
        assert await made.open(f"{url}#elsewhere") is first
        assert await made.open(url, Scope(access="kept")) is first


async def test_domains_hold_for_the_page_for_every_redirect_and_for_what_was_opened_before() -> None:
    outside = Scope(("rivers.example",))
    assert "its domain is not among those" in await refusal(scope=outside)
    assert "its domain is not among those" in await refusal(allowed=("rivers.example",))
    assert "its domain is not among those" in await refusal(blocked=("otters.example",))
    async with ScriptedUpstream() as server, pages(server.port) as made:
        server._script.extend([led(f"http://evil.example:{server.port}/")])
        with pytest.raises(UpstreamFailed, match="its domain is not among those"):
            await made.open(f"http://otters.example:{server.port}/", Scope(("otters.example",)))
        server._script.extend([led(f"http://evil.example:{server.port}/"), html()])
        await made.open(f"http://otters.example:{server.port}/")
        with pytest.raises(UpstreamFailed, match="its domain is not among those"):
            await made.open(f"http://otters.example:{server.port}/", Scope(("otters.example",)))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer((b"%PDF",), 200, {"content-type": "application/pdf"}), "it is `application/pdf`, which is no text"),
        (Answer((b"no",), 404, {"content-type": "text/html"}), "its server answered HTTP 404"),
        (html(b"<html><body></body></html>"), "it holds no words"),
        (html(b"x" * 200_000), "it is larger than 100000 bytes (`search.max_page`)"),
    ],
)
async def test_what_cannot_be_read_is_told(answer: Answer, words: str) -> None:
    assert words in await refusal(answer, max_bytes=100_000)


async def test_a_page_that_unpacks_without_end_is_cut_off() -> None:
    import gzip

    bomb = gzip.compress(b"<p>" + b"0" * 50_000_000)
    assert len(bomb) < 100_000
    assert "larger than 100000 bytes" in await refusal(html(bomb, **{"content-encoding": "gzip"}), max_bytes=100_000)


async def test_a_page_has_its_time_with_all_of_it() -> None:
    async with asyncio.timeout(30):
        told = await refusal(Answer((b"<p>", HANG), 200, {"content-type": "text/html"}, framing="chunked"), timeout=0.2)
    assert told in (
        "the page cannot be opened: it did not come within 0.2 s",
        "the page was silent for 0.2 s",
    )


async def test_words_that_take_too_long_to_find_are_given_up() -> None:
    assert "within the limits of `[checks]`" in await refusal(html(), trouble=True)


async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedUpstream() as proxy, ScriptedUpstream([html()]) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        async with pages(server.port) as made:
            assert isinstance(await made.open(f"http://otters.example:{server.port}/"), Page)
        assert proxy.requests == []


async def test_where_pages_are_closed_it_says_so() -> None:
    with pytest.raises(UpstreamFailed, match=r"the gateway's operator has not allowed it \(`search.open_pages`\)"):
        await ClosedPages().open("https://otters.example/")
