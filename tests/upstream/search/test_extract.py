"""The words of a page, from HTML and from plain text, in every spelling of its letters."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.config.schema import Checks
from isthmus.upstream.search.extract import PAGE, Extracted, Extraction, can_read, extract, run_encoded
from isthmus.wiring import open_workers

HTML = """<html><head><title>Otters &amp; rivers</title><meta charset="utf-8"></head><body>
<nav><a href="/home">Home</a></nav><main><article><h1>Otters</h1>
<p>Otters live in <a href="/rivers">rivers</a> and the sea, and they are fun to watch when they play for hours.</p>
<p>They hold hands while they sleep, which keeps them from drifting apart from one another in the night. Größe!</p>
<ul><li>one thing</li></ul></article></main><footer>(c)</footer><script>alert("no words")</script></body></html>"""


def words(body: str | bytes, kind: str = "text/html", charset: str = "", most: int = 10_000) -> Extracted:
    data = body if isinstance(body, bytes) else body.encode()
    return extract(Extraction(data, kind, charset, "https://otters.example/page/", most))


def test_the_text_of_a_page_comes_with_its_links_and_without_its_scripts() -> None:
    found = words(HTML)
    assert found.title == "Otters & rivers"
    assert "Otters live in [rivers](https://otters.example/rivers) and the sea" in found.text
    assert "- one thing" in found.text
    assert "alert" not in found.text
    assert not found.cut


@pytest.mark.parametrize(("charset", "codec"), [("", "utf-8"), ("utf-8", "utf-8"), ("iso-8859-1", "latin-1")])
def test_letters_are_read_as_they_are_written(charset: str, codec: str) -> None:
    assert "Größe!" in words(HTML.replace('<meta charset="utf-8">', "").encode(codec), charset=charset).text


@pytest.mark.parametrize("charset", ["", "nonsense", "utf-8"])
def test_plain_text_stays_as_it_is(charset: str) -> None:
    assert words(" a\n  b ü ", "text/plain", charset) == Extracted("", "a\n  b ü")


def test_what_is_too_long_is_cut_and_says_so() -> None:
    assert words("x" * 500, "text/plain", most=100) == Extracted("", "x" * 100, True)


def test_it_travels_to_a_worker_and_back() -> None:
    job = Extraction(HTML.encode(), "text/html", "", "https://otters.example/", 10_000)
    done = msgspec.msgpack.decode(run_encoded(msgspec.msgpack.encode(job)), type=Extracted)
    assert done.title == "Otters & rivers"


def test_only_text_is_read() -> None:
    assert can_read("text/html")
    assert can_read("application/json")
    assert not any(map(can_read, ("application/pdf", "image/png", "application/octet-stream", "text/css", "")))


@settings(max_examples=60)
@given(st.binary(max_size=200), st.sampled_from(["", "utf-8", "x"]))
def test_whatever_bytes_come_nothing_rises(body: bytes, charset: str) -> None:
    assert isinstance(words(b"<html><body><p>" + body, charset=charset), Extracted)
    assert isinstance(words(body, charset=charset), Extracted)


async def test_a_worker_process_reads_a_page_within_the_usual_limits() -> None:
    """With all that the library loads, it fits into the memory that such a process has."""
    workers = open_workers(Checks())
    try:
        job = Extraction(HTML.encode(), "text/html", "", "https://otters.example/", 10_000)
        done = msgspec.msgpack.decode(await workers.run(PAGE, msgspec.msgpack.encode(job)), type=Extracted)
    finally:
        await workers.aclose()
    assert done.title == "Otters & rivers"
    assert "[rivers](https://otters.example/rivers)" in done.text
