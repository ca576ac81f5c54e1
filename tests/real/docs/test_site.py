"""The docs as a site: made strictly, looked at link by link, and read in a real browser, narrow, wide and dark."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from doc_pages import ROOT
from scripted import load_script

MODULES = ROOT / ".venv" / "page"
GENERATOR = Path(sys.prefix) / "docs" / "bin" / "zensical"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
NODE = shutil.which("node")
PAGES = ["index.html", "guides/codex.html", "reference/diagnostics.html"]

make_site = load_script("make_site")
check_site = load_script("check_site").check_site

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not GENERATOR.exists(), reason="needs what `make test-docs` installs"),
]
in_a_browser = pytest.mark.skipif(
    not (NODE and CHROMIUM and MODULES.exists()), reason="needs Node.js, Chromium and `make test-docs`"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_site.make_site(ROOT, tmp_path_factory.mktemp("docs"), str(GENERATOR))


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *said: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join(10)


def browse(scenario: str, url: str, **options: Any) -> Any:
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(Path(__file__).parent / "node" / "site.mjs"), scenario, url, json.dumps(options)],
        env={**os.environ, "PAGE_MODULES": str(MODULES), "CHROMIUM": CHROMIUM},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["trouble"] == []
    return told


def test_every_link_and_anchor_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert len(list(site.rglob("*.html"))) > 100
    assert check_site(site) == []


def test_every_page_of_the_docs_is_in_the_site_and_in_its_navigation(site: Path) -> None:
    front = (site / "contents.html").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        name = make_site.place(page.relative_to(ROOT).as_posix()).removesuffix(".md") + ".html"
        assert (site / name).is_file(), name
        if name != "contents.html":
            assert f'href="./{name}" class="md-nav__link"' in front, name


def test_language_models_get_every_page_as_one_list_and_as_one_text(site: Path) -> None:
    index, whole = (site / "llms.txt").read_text(), (site / "llms-full.txt").read_text()
    targets = [line.split("](")[1].split(")")[0] for line in index.splitlines() if line.startswith("- [")]
    assert len(targets) > 80
    assert all((site / target).is_file() for target in targets)
    assert index.startswith("# Isthmus\n\n> ")
    for target in targets:
        assert (site / target).read_text().strip() in whole, target


@pytest.mark.parametrize("link", ["#there", "#nowhere"])
def test_an_anchor_that_is_not_there_stops_the_build(link: str, tmp_path: Path) -> None:
    """The generator's own eyes, without ours."""
    root = tmp_path / "checkout"
    (root / "docs" / "images").mkdir(parents=True)
    shutil.copytree(ROOT / "scripts" / "site", root / "scripts" / "site")
    (root / "README.md").write_text(f"# Front\n\nWords.\n\n[there](docs/page.md{link})\n")
    (root / "docs" / "README.md").write_text("# All\n\n## Start\n\n- [Page](page.md)\n")
    (root / "docs" / "page.md").write_text("# Page\n\n## There\n")
    if link == "#there":
        assert check_site(make_site.make_site(root, tmp_path / "build", str(GENERATOR))) == []
        return
    with pytest.raises(subprocess.CalledProcessError):
        make_site.make_site(root, tmp_path / "build", str(GENERATOR))


@in_a_browser
def test_pages_fit_their_windows_in_the_light_and_in_the_dark(address: str) -> None:
    shots = os.environ.get("DOCS_SHOTS", "")
    assert browse("looks", address, pages=PAGES, faults=True, shots=shots)["found"] == {}


@in_a_browser
def test_the_front_page_shows_two_commands_and_a_picture_and_leads_to_the_guides(address: str) -> None:
    wide, narrow = browse("walks", address)["told"]
    assert wide["tabs"] == ["Start", "Guides", "Concepts", "Reference", "Decisions", "Project"]
    assert wide["commands"]["bottom"] < 900, "within the first screen"
    for told in (wide, narrow):
        assert len(told["commands"]["text"].strip().splitlines()) == 2
        assert told["pictures"]
        assert all(told["pictures"])
        assert "Use Codex with any model" in told["heading"]


@in_a_browser
@pytest.mark.parametrize("way", ["served", "from a disk"])
def test_a_search_finds_the_page(way: str, address: str, site: Path) -> None:
    url = address if way == "served" else f"{site.as_uri()}/"
    shots = os.environ.get("DOCS_SHOTS", "")
    page = "guides/webhooks.html"
    asked = browse("searches", url, words="webhook signature", expects=page, widths=[1280, 380], shots=shots)
    for told in asked["told"]:
        assert told["address"].startswith(f"{url}{page}"), told
        assert "background response" in told["heading"]
        assert told["marked"] or way == "from a disk", "what was looked for is marked"


@in_a_browser
def test_whoever_likes_it_dark_finds_it_dark_on_the_next_page(address: str) -> None:
    assert browse("darkens", address)["next"] == "slate"
