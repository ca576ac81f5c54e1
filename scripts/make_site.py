"""The documentation as a site: the pages of this checkout in, a folder of HTML that needs no network out.

`docs/README.md` is the one list of pages: its headings and lines become the navigation, `llms.txt` and the order of
`llms-full.txt`. Pages are staged below `build/docs`, their links bent to where things are in the site; zensical, in the
environment that `make docs` builds, makes the HTML. A link that leaves `docs/` leads to a page, too: a file of the
checkout that some page points to is shown as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INDEX = "docs/README.md"
LOOKS = "scripts/site"
PAGES = {
    "README.md": "index.md",
    INDEX: "contents.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/reporting.md",
    "examples/README.md": "project/examples.md",
}
"""Pages of the checkout whose place in the site is another than below `docs/`."""

UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
"""Before a page that only repeats what others say better."""

_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:")
_ENTRY = re.compile(r"^(?:- |\| \d+ \| )\[(.+?)\]\((\S+?)\)[:,]?(.*?)\|?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    title: str
    source: str
    """Below the checkout."""
    about: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of the index: `## Guides: do something`, or a `### group` below it."""

    title: str
    about: str
    entries: tuple[Entry, ...]
    groups: tuple[Section, ...] = ()

    def all_entries(self) -> Iterator[Entry]:
        yield from self.entries
        for group in self.groups:
            yield from group.all_entries()


# ── the list of pages ──────────────────────────────────────────────────────────────────────────────


def read_index(text: str, at: str = INDEX) -> list[Section]:
    _, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return [_section(part, at) for part in parts]


def _section(text: str, at: str) -> Section:
    own, *groups = re.split(r"^### ", text, flags=re.MULTILINE)
    heading, _, body = own.partition("\n")
    title, _, about = heading.partition(": ")
    # A line may go on below itself.
    lines = re.sub(r"\n  +(?=\S)", " ", body)
    entries = [
        Entry(said.replace("`", ""), _beside(at, target), " ".join(more.split()))
        for said, target, more in _ENTRY.findall(lines)
    ]
    return Section(title, about, tuple(entries), tuple(_section(group, at) for group in groups))


def missing_pages(sections: list[Section], root: Path = ROOT) -> set[str]:
    """Pages below `docs/` that the index does not list."""
    listed = {entry.source for section in sections for entry in section.all_entries()}
    there = {page.relative_to(root).as_posix() for page in (root / "docs").rglob("*.md")}
    return there - listed - {INDEX}


def _beside(page: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


# ── staging ────────────────────────────────────────────────────────────────────────────────────────


def place(source: str, root: Path = ROOT) -> str:
    """Where something of the checkout is in the site."""
    if source in PAGES:
        return PAGES[source]
    if source.startswith("docs/") and (root / source).is_file():
        return source.removeprefix("docs/")
    return f"files/{source}/index.md" if (root / source).is_dir() else f"files/{source}.md"


def stage(root: Path, into: Path) -> None:
    """Every page and every file that a page points to, with links as the site has them."""
    ahead = ["README.md", *(page.relative_to(root).as_posix() for page in sorted((root / "docs").rglob("*.md")))]
    seen = set(ahead)
    while ahead:
        source = ahead.pop()
        target = into / place(source, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        text, pointed_to = _page(source, root)
        target.write_text(text, encoding="utf-8")
        ahead += pointed_to - seen
        seen |= pointed_to
    shutil.copytree(root / "docs" / "images", into / "images", dirs_exist_ok=True)
    (into / "assets").mkdir()
    for part in (root / LOOKS).glob("*.[cj]s*"):
        shutil.copy(part, into / "assets")


def _page(source: str, root: Path) -> tuple[str, set[str]]:
    """A page as the site has it, and what it points to that needs a place."""
    path = root / source
    if path.is_dir():
        return _folder(source, root)
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        return _shown(source, text), set()
    pointed_to: set[str] = set()

    def bend(found: re.Match[str]) -> str:
        opening, target, closing = found.groups()
        if _ELSEWHERE.match(target) or target.startswith("#"):
            return found[0]
        name, _, anchor = target.partition("#")
        there = _beside(source, name)
        if not (root / there).exists():
            raise SystemExit(f"{source}: the link to {target} leads nowhere")
        if not there.startswith("docs/images/"):
            pointed_to.add(there)
        bent = posixpath.relpath(place(there, root), posixpath.dirname(place(source, root)) or ".")
        return f"{opening}{bent}{'#' + anchor if anchor else ''}{closing}"

    pieces = _CODE.split(text)
    pieces[::2] = [_LINK.sub(bend, prose) for prose in pieces[::2]]
    return (UNSEARCHED if source == INDEX else "") + "".join(pieces), pointed_to


def _folder(source: str, root: Path) -> tuple[str, set[str]]:
    here = posixpath.dirname(place(source, root))
    files = [
        path.relative_to(root).as_posix()
        for path in sorted((root / source).rglob("*"))
        if path.is_file() and not re.search(r"__pycache__|/node/|\.(db|gz|json\.zst|pyc)$", path.as_posix())
    ]
    lines = [f"- [{name.removeprefix(source + '/')}]({posixpath.relpath(place(name, root), here)})" for name in files]
    return "\n".join([f"# {source}", "", "What is in this folder:", "", *lines, ""]), set(files)


def _shown(source: str, text: str) -> str:
    """A file that is no page: its text, left out of the search, which is for pages."""
    language = {".py": "python", ".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}.get(
        posixpath.splitext(source)[1], "text"
    )
    head = f"# {posixpath.basename(source)}\n\n`{source}`"
    return f"{UNSEARCHED}{head}\n\n````{language}\n{text}````\n"


# ── settings ───────────────────────────────────────────────────────────────────────────────────────


def navigation(sections: list[Section], root: Path = ROOT) -> str:
    """The index, as zensical wants it. The front page stands before the first section's pages."""
    first, *others = sections
    home = [_entry("Isthmus", PAGES["README.md"])]
    pages = [home + _entries(first, root), *(_entries(section, root) for section in others)]
    named = [_entry(section.title, f"[{', '.join(lines)}]") for section, lines in zip(sections, pages, strict=True)]
    return f"nav = [\n  {f',{chr(10)}  '.join(named)}\n]\n"


def _entries(section: Section, root: Path) -> list[str]:
    own = [_entry(entry.title, place(entry.source, root)) for entry in section.entries]
    return own + [_entry(group.title, f"[{', '.join(_entries(group, root))}]") for group in section.groups]


def _entry(title: str, value: str) -> str:
    written = value if value.startswith("[") else json.dumps(value)
    return f"{{ {json.dumps(title, ensure_ascii=False)} = {written} }}"


# ── llms.txt ───────────────────────────────────────────────────────────────────────────────────────


def llms(sections: list[Section], summary: str, base: str = "", root: Path = ROOT) -> str:
    """The index for language models (llmstxt.org): each page by its Markdown, which lies beside its HTML."""
    lines = ["# Isthmus", "", f"> {summary}", "", f"Everything in one file: [llms-full.txt]({base}llms-full.txt)"]
    for section in sections:
        lines += ["", f"## {section.title}", ""]
        for entry in section.all_entries():
            about = f": {entry.about}" if entry.about else ""
            lines.append(f"- [{entry.title}]({base}{place(entry.source, root)}){about}")
    return "\n".join(lines) + "\n"


def llms_full(sections: list[Section], staged: Path, root: Path = ROOT) -> str:
    """Every page of the index, one behind the other, each under the name of its file."""
    places = [PAGES["README.md"], *(place(entry.source, root) for each in sections for entry in each.all_entries())]
    return "\n".join(f"<!-- {name} -->\n\n{(staged / name).read_text(encoding='utf-8').strip()}\n" for name in places)


def first_paragraph(page: str) -> str:
    return " ".join(re.split(r"\n\s*\n", page.strip())[1].replace("**", "").split())


# ── the site ───────────────────────────────────────────────────────────────────────────────────────


def make_site(root: Path, build: Path, generator: str, base: str = "") -> Path:
    sections = read_index((root / INDEX).read_text(encoding="utf-8"))
    if missing := missing_pages(sections, root):
        raise SystemExit(f"{INDEX} does not list {', '.join(sorted(missing))}; give each a line where readers look")
    staged, site = build / "pages", build / "site"
    for folder in (staged, site):
        shutil.rmtree(folder, ignore_errors=True)
    stage(root, staged)
    settings = (root / LOOKS / "settings.toml").read_text(encoding="utf-8")
    address = f"site_url = {json.dumps(base)}\n" if base else ""
    (build / "zensical.toml").write_text(
        settings.replace("[project]\n", f"[project]\n{address}{navigation(sections, root)}", 1), encoding="utf-8"
    )
    command = [generator, "build", "--clean", "--strict", "--config-file", str(build / "zensical.toml")]
    subprocess.run(command, check=True, cwd=build)
    for page in staged.rglob("*.md"):
        shutil.copyfile(page, site / page.relative_to(staged))
    summary = first_paragraph((root / "README.md").read_text(encoding="utf-8"))
    (site / "llms.txt").write_text(llms(sections, summary, base, root), encoding="utf-8")
    (site / "llms-full.txt").write_text(llms_full(sections, staged, root), encoding="utf-8")
    return site


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generator", default="zensical", help="the program that makes HTML of Markdown")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "docs", help="where everything goes")
    asked = parser.parse_args()
    base = os.environ.get("DOCS_URL", "")
    site = make_site(ROOT, asked.build, asked.generator, f"{base.rstrip('/')}/" if base else "")
    sys.path.insert(0, str(ROOT / "scripts"))
    from check_site import check_site

    problems = check_site(site)
    print("\n".join(problems) or f"docs: {site / 'index.html'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
