"""What is fetched where somebody else has named the address; where nothing is fetched from, see `tests/security`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.upstream.visit import MAX_HOPS, Visitor
from security.internet import PUBLIC, Internet, an_internet, redirect


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Internet]:
    with an_internet(monkeypatch) as made:
        made.leads("cdn.example", PUBLIC)
        yield made


def picture(data: bytes, head: bytes = b"") -> bytes:
    start = b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\nconnection: close\r\n"
    return start + b"content-length: %d\r\n" % len(data) + head + b"\r\n" + data


async def fetch(internet: Internet, url: str = "https://cdn.example/a.png?sig=1", most: int = 100) -> bytes:
    visitor = Visitor("the image", timeout=20.0, at_once=1)
    async with await internet.serve():
        try:
            return await visitor.fetch(url, most=most)
        finally:
            await visitor.aclose()


async def test_what_is_there_comes_whole_and_nothing_of_ours_goes_along(
    internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    internet.answer = picture(b"\x89PNG", b"set-cookie: a=b\r\n")
    assert await fetch(internet) == b"\x89PNG"
    (head,) = internet.requests
    assert head.startswith(b"GET /a.png?sig=1 HTTP/1.1\r\n")
    assert b"user-agent: isthmus (visits)" in head.lower()
    assert b"authorization" not in head.lower()
    assert b"cookie" not in head.lower()


async def test_what_is_too_long_is_not_read_on(internet: Internet) -> None:
    internet.answer = picture(b"x" * 101)
    with pytest.raises(UpstreamFailed, match="the image is longer than 100 bytes"):
        await fetch(internet)
    internet.answer = picture(b"x" * 100)
    assert await fetch(internet) == b"x" * 100


async def test_a_refusal_is_told_by_its_status(internet: Internet) -> None:
    internet.answer = b"HTTP/1.1 403 No\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret"
    with pytest.raises(UpstreamFailed, match=r"the image cannot be fetched: HTTP 403$") as failed:
        await fetch(internet)
    assert failed.value.code == "upstream_unreachable"


async def test_it_is_sent_on_only_so_often(internet: Internet) -> None:
    internet.answer = redirect("/a.png")
    with pytest.raises(UpstreamFailed, match=f"sends us on more than {MAX_HOPS} times"):
        await fetch(internet)
    assert len(internet.requests) == MAX_HOPS + 1
