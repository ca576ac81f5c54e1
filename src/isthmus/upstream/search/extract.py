"""The words of a page. Made in a worker process: who wrote the page decides how long it takes.

In: the bytes, their type and their address. Out: a title and Markdown with its links, or nothing where there are no
words. What finds the text in HTML is trafilatura (`isthmus[pages]`).
"""

from __future__ import annotations

import codecs
from typing import Final

import msgspec

PAGE: Final = "page"
"""What such a job is called (`wiring_workers.open_workers`)."""
HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
PLAIN: Final = frozenset(
    {
        *("text/plain", "text/markdown", "text/csv", "text/xml", "application/json", "application/xml"),
        *("application/rss+xml", "application/atom+xml", "application/yaml", "text/yaml"),
    }
)


class Extraction(msgspec.Struct, frozen=True):
    body: bytes
    kind: str
    """`text/html` …"""
    charset: str
    """As its sender said; empty: it did not."""
    url: str
    most: int
    """Characters of text that are wanted."""


class Extracted(msgspec.Struct, frozen=True):
    title: str = ""
    text: str = ""
    cut: bool = False


def can_read(kind: str) -> bool:
    return kind in HTML or kind in PLAIN


def run_encoded(payload: bytes) -> bytes:
    """What a worker process calls."""
    return msgspec.msgpack.encode(extract(msgspec.msgpack.decode(payload, type=Extraction)))


def extract(page: Extraction) -> Extracted:
    title, text = _read_html(page) if page.kind in HTML else ("", _decode(page))
    return Extracted(title, text[: page.most], len(text) > page.most)


def _read_html(page: Extraction) -> tuple[str, str]:
    import trafilatura

    # Without a word about its letters, the page itself says how they are written.
    source = _decode(page) if page.charset else page.body
    text = trafilatura.extract(
        source,
        url=page.url,
        output_format="markdown",
        include_links=True,
        include_tables=True,
        include_comments=True,
        favor_recall=True,
    )
    return _title(source), (text or "").strip()


def _title(source: str | bytes) -> str:
    import trafilatura

    tree = trafilatura.load_html(source)
    found = None if tree is None else tree.find(".//title")
    return "" if found is None else " ".join("".join(found.itertext()).split())


def _decode(page: Extraction) -> str:
    try:
        codec = codecs.lookup(page.charset or "utf-8").name
    except LookupError:
        codec = "utf-8"
    return page.body.decode(codec, "replace").strip()
