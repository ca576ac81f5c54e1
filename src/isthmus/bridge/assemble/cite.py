"""Where an answer names the pages that were found for it: its citations, once a text is over.

In: a text, and addresses with their titles. Out: `url_citation` annotations with their places, in order. A page is
cited by a Markdown link, or by its bare address; an address that no search found is no citation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from isthmus.protocol.items import Annotation

_MAX_CITATIONS: Final = 200
"""Of one text."""
_ADDRESS: Final = r"https?://(?:[^\s<>()\[\]]|\([^\s<>()\[\]]{0,200}\)){1,2000}"
_LINK: Final = re.compile(rf"\[([^\[\]\n]{{0,300}})\]\(\s{{0,3}}<?({_ADDRESS})>?\s{{0,3}}\)|({_ADDRESS})")
_BEHIND: Final = ".,;:!?'\"*_`"
"""What stands behind a bare address more often than it belongs to it."""


def find_citations(text: str, sources: Mapping[str, str]) -> list[Annotation]:
    if not sources or "://" not in text:
        return []
    known = {_plain(url): (url, title) for url, title in sources.items()}
    found: list[Annotation] = []
    for match in _LINK.finditer(text):
        named, linked, bare = match.groups()
        start, end = match.span()
        url = linked
        if bare is not None:
            url = bare if _plain(bare) in known else bare.rstrip(_BEHIND)  # some addresses do end so
            end = start + len(url)
        if (source := known.get(_plain(url))) is None:
            continue
        address, title = source
        told = {"title": title or (named or "").strip() or address, "url": address}
        found.append({"type": "url_citation", "start_index": start, "end_index": end, **told})
        if len(found) == _MAX_CITATIONS:
            break
    return found


def _plain(url: str) -> str:
    """Addresses of one page that differ only in how they are written."""
    return url.partition("#")[0].rstrip("/")
