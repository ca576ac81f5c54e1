"""The guide to web search shows configurations that are whole, and a program that prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from doc_pages import ROOT
from isthmus.config import load_config
from isthmus.config.schema import Search
from isthmus.providers.search import load_search, search_names
from serving import running_gateway_server

PAGE = (ROOT / "docs" / "guides" / "web-search.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def test_its_configurations_are_whole(tmp_path: Path) -> None:
    file = tmp_path / "isthmus.toml"
    for text in blocks("toml"):
        file.write_text(text)
        file.chmod(0o600)
        reading = load_config(file, environ={"HOME": str(tmp_path), "BRAVE_API_KEY": "k"})
        assert reading.warnings == ()
        assert reading.config.search.backend in ("searxng", "brave")


def test_its_program_prints_what_it_shows() -> None:
    config = '[server]\nport = 0\n[store]\nurl = "memory:"\n[search]\nbackend = "demo"\n'
    (program,), (shown,) = blocks("python"), blocks("text")
    with running_gateway_server(config) as gateway, contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program.replace("http://127.0.0.1:8484", gateway.url), {})
    assert printed.getvalue() == shown


def test_its_table_has_every_engine_with_its_key() -> None:
    for name in search_names():
        (row,) = re.findall(rf"^\| `{name}` \| (.*?) \|", PAGE, re.MULTILINE)
        facts = load_search(name)
        assert row == f"`{facts.key_env[0]}`" if facts.key_env else row.startswith("none")


def test_its_numbers_are_the_defaults() -> None:
    assert f"`keep`\n({Search().keep / 60:g} minutes)" in PAGE
