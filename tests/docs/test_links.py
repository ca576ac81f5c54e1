"""Every link inside the pages leads to a file that is there, and to a heading that is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doc_pages import ROOT, all_pages

_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def links(page: Path) -> list[str]:
    prose = _CODE.sub("", page.read_text())
    return [target for target in _LINK.findall(prose) if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """Headings as GitHub turns them into anchors."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


LINKS = [(page, target) for page in all_pages() for target in dict.fromkeys(links(page))]


@pytest.mark.parametrize(("page", "target"), LINKS, ids=[f"{p.relative_to(ROOT)}→{t}" for p, t in LINKS])
def test_a_link_leads_somewhere(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    assert there.exists(), f"{page.relative_to(ROOT)} links to {target}"
    assert ROOT in there.parents
    if anchor:
        assert anchor in anchors(there)


def test_every_page_can_be_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    reached = {index}
    ahead = [index]
    while ahead:
        page = ahead.pop()
        for target in links(page):
            there = (page.parent / target.partition("#")[0]).resolve()
            if there.suffix == ".md" and there.exists() and there not in reached:
                reached.add(there)
                ahead.append(there)
    assert {page for page in all_pages() if (ROOT / "docs") in page.parents} <= reached
