"""New requests reach open pages as they end; nobody looks while none is open."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

from isthmus.ports.traces import TraceStats
from isthmus.server.ui.live import MOST_OPEN
from server.ui.conftest import Browser
from waiting import until


def follow(browser: Browser, asked: str = "") -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(urlsplit(browser.gateway.url).netloc, timeout=60)
    connection.request("GET", f"/ui/live{asked}", headers={"cookie": browser.cookie})
    return connection, connection.getresponse()


def rows(answer: http.client.HTTPResponse) -> str:
    """The next rows that are told."""
    told: list[str] = []
    while (line := answer.readline().decode()) != "\n" or not told:
        if line.startswith("data: "):
            told.append(line.removeprefix("data: "))
    return "".join(told)


def test_a_request_is_told_when_it_is_over(browser: Browser) -> None:
    before = browser.made({"input": "before"})
    connection, answer = follow(browser)
    assert answer.getheader("content-type") == "text/event-stream"
    id = browser.made({"input": "<script>"})
    told = rows(answer)
    assert f"/ui/requests/{id}" in told
    assert before not in told
    connection.close()


def test_a_filter_holds_there_too(browser: Browser) -> None:
    connection, answer = follow(browser, "?door=chat")
    browser.made({"input": "not this"})
    chat = browser.made({"model": "main/m", "messages": [{"role": "user", "content": "x"}]}, "/v1/chat/completions")
    told = rows(answer)
    assert told.count("<tr") == 1
    assert chat in told
    connection.close()


def test_so_many_pages_and_no_more(browser: Browser) -> None:
    browser.made({"input": "load the page"})
    browser.look("/ui")
    pages = [follow(browser) for _ in range(MOST_OPEN)]
    connection, refused = follow(browser)
    assert refused.status == 503
    connection.close()
    for connection, _ in pages:
        connection.close()

    def room() -> bool:
        connection, answer = follow(browser)
        connection.close()
        return answer.status == 200

    until(room, "places of pages that were closed come back")


def test_however_many_pages_are_open_one_look_a_second_is_enough(browser: Browser) -> None:
    browser.made({"input": "load the page"})
    browser.look("/ui")
    tracing = browser.gateway.gateway.tracing
    assert tracing is not None
    looks, ask = [0], tracing.store.stats

    async def counted(owner: str | None = None) -> TraceStats:
        looks[0] += 1
        return await ask(owner)

    pages = [follow(browser) for _ in range(10)]
    tracing.store.stats = counted  # type: ignore[method-assign]
    for second in range(1, 4):
        browser.gateway.skip(1.0)
        until(lambda: looks[0] >= second, "it is looked at again")  # noqa: B023  # asked at once
    assert looks[0] <= 6, "for all of them together"
    for connection, _ in pages:
        connection.close()
