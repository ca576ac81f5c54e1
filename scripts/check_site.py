"""The made site, as a browser finds it: every link and anchor leads somewhere, and nothing is loaded from elsewhere.

In: a folder of HTML. Out: one line for each problem. It reads what was written, not what was meant: the pages' own
links are looked at before that, in `tests/docs/test_links.py`.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("object", "data")}
LOADING_RELATIONS = {"stylesheet", "icon", "preconnect", "dns-prefetch", "preload", "modulepreload", "prefetch"}
_IN_STYLE = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"'])(https?:)?//", re.IGNORECASE)


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and LOADING_RELATIONS & set(given.get("rel", "").split()):
            self.loads.append(given.get("href", ""))
        self.loads += [given[name] for of, name in LOADS if of == tag and name in given]


def check_site(site: Path) -> list[str]:
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    problems: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        problems += [
            f"{name}: the link {link} leads nowhere" for link in page.links if not _found(link, path, pages, site)
        ]
        problems += [f"{name}: {load} is loaded from elsewhere" for load in page.loads if _is_elsewhere(load)]
        problems += [
            f"{name}: {load} is not there"
            for load in page.loads
            if not _is_elsewhere(load) and not load.startswith("data:") and not _file(load, path, site).is_file()
        ]
    for style in sorted(site.rglob("*.css")):
        if _IN_STYLE.search(style.read_text(encoding="utf-8")):
            problems.append(f"{style.relative_to(site).as_posix()}: a style is loaded from elsewhere")
    return problems


def _found(link: str, path: Path, pages: dict[Path, Page], site: Path) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    there = _file(link, path, site) if parts.path else path
    if there.is_dir():
        there = there / "index.html"
    if there not in pages:
        return there.is_file()
    # `#__…` are the theme's own: places that its scripts make.
    return not parts.fragment or unquote(parts.fragment) in pages[there].anchors or parts.fragment.startswith("__")


def _file(link: str, path: Path, site: Path) -> Path:
    name = unquote(urlsplit(link).path)
    return (site / name.lstrip("/") if name.startswith("/") else path.parent / name).resolve()


def _is_elsewhere(link: str) -> bool:
    parts = urlsplit(link)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


if __name__ == "__main__":
    found = check_site(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "every link leads somewhere")
    sys.exit(1 if found else 0)
