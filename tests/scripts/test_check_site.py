"""`scripts/check_site.py`: what a reader of the made site would stumble over is told, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripted import load_script

check_site = load_script("check_site").check_site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "guides").mkdir()
    (tmp_path / "style.css").write_text("body { background: url(a.png) }")
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "guides" / "b.html").write_text('<h2 id="two">Two</h2><a href="../index.html#one">back</a>')
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="style.css"><img src="a.png"><img src="data:image/png;base64,">'
        '<h1 id="one">One</h1><a href="guides/b.html#two">b</a><a href="#one">up</a><a href="https://example.org">out</a>'
    )
    return tmp_path


def test_a_site_that_is_whole_has_no_problem(site: Path) -> None:
    assert check_site(site) == []


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="guides/c.html">c</a>', "the link guides/c.html leads nowhere"),
        ('<a href="guides/b.html#three">c</a>', "the link guides/b.html#three leads nowhere"),
        ('<a href="#nowhere">c</a>', "the link #nowhere leads nowhere"),
        ('<img src="b.png">', "b.png is not there"),
        ('<script src="https://unpkg.com/x"></script>', "https://unpkg.com/x is loaded from elsewhere"),
        ('<link rel="preconnect" href="//fonts.example">', "//fonts.example is loaded from elsewhere"),
    ],
)
def test_what_a_reader_would_stumble_over_is_told(site: Path, html: str, problem: str) -> None:
    (site / "new.html").write_text(html)
    assert check_site(site) == [f"new.html: {problem}"]


def test_a_style_of_others_is_seen(site: Path) -> None:
    (site / "style.css").write_text('@import "https://fonts.example/x.css";')
    assert check_site(site) == ["style.css: a style is loaded from elsewhere"]
