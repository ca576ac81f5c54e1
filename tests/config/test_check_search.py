"""An engine that cannot be asked is found before the start, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.config import check_search as room
from isthmus.config import load_config, read_config
from isthmus.errors import ConfigError
from isthmus.values.problems import dotted


def problems(tmp_path: Path, text: str, **environ: str) -> list[tuple[str, str, str]]:
    file = tmp_path / "isthmus.toml"
    file.write_text(f"[search]\n{text}\n")
    file.chmod(0o600)
    found = read_config(file, environ={"HOME": str(tmp_path), **environ}).problems
    return [(problem.severity, dotted(problem.key), f"{problem.message}. {problem.fix}") for problem in found]


@pytest.mark.parametrize(
    "text",
    [
        'backend = "demo"',
        'backend = "demo"\nopen_pages = true',
        'backend = "searxng"\nurl = "http://127.0.0.1:8888"',
        'backend = "brave"\napi_key = "k"',
        'backend = "brave"\nurl = "https://proxy.example/brave"',
        'backend = "tavily"\napi_key = "k"\nopen_pages = true\nlocation.country = "DE"',
    ],
)
def test_a_sound_section_has_no_problems(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "severity", "key", "says"),
    [
        ("timeout = 3", "warning", "search.backend", "is missing, so that nothing else in `[search]` counts"),
        ('backend = "searxng"', "error", "search.url", "is missing"),
        ('backend = "searxng"\nurl = "here"', "error", "search.url", "must be a URL with http or https"),
        ('backend = "searxng"\nurl = "http://h/?k=1"', "error", "search.url", "has a query or a fragment"),
        ('backend = "brave"', "error", "search.api_key", "set `BRAVE_API_KEY` or `BRAVE_SEARCH_API_KEY`"),
        ('backend = "brave"\napi_key = "a\\nb"', "error", "search.api_key", "characters that a header cannot carry"),
        (
            'backend = "brave"\napi_key = "k"\nurl = "http://proxy.example"',
            "warning",
            "search.url",
            "sends the key over plain HTTP",
        ),
        ('backend = "demo"\nlocation.country = "Germany"', "error", "search.location.country", "two letters"),
        ('backend = "braev"', "error", "search.backend", "brave"),
    ],
)
def test_a_problem_names_the_key_and_the_fix(tmp_path: Path, text: str, severity: str, key: str, says: str) -> None:
    ((found, at, words),) = problems(tmp_path, text)
    assert (found, at) == (severity, key)
    assert says in words


def test_pages_without_what_reads_them_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "find_spec", lambda name: None)
    text = 'backend = "searxng"\nurl = "http://127.0.0.1:8888"\nopen_pages = true'
    ((severity, key, words),) = problems(tmp_path, text)
    assert (severity, key) == ("error", "search.open_pages")
    assert 'pip install "isthmus[pages]"' in words


def test_a_key_of_the_environment_goes_to_the_engines_own_address_alone(tmp_path: Path) -> None:
    file = tmp_path / "isthmus.toml"
    environ = {"HOME": str(tmp_path), "TAVILY_API_KEY": "from-outside"}
    for text, key in (
        ('backend = "tavily"', "from-outside"),
        ('backend = "tavily"\nurl = "https://api.tavily.com"', "from-outside"),
        ('backend = "tavily"\nurl = "https://elsewhere.example"', ""),
        ('backend = "tavily"\napi_key = "own"', "own"),
        ('backend = "exa"\napi_key = "own"', "own"),
        ("", ""),
    ):
        file.write_text(f"[search]\n{text}\n")
        file.chmod(0o600)
        assert load_config(file, environ=environ).config.search.api_key == key


def test_a_key_and_a_file_with_one_exclude_each_other(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k\n")
    assert any(
        "excludes `api_key`" in words
        for _, _, words in problems(tmp_path, 'backend = "brave"\napi_key = "k"\napi_key_file = "key"')
    )


def test_the_key_is_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text('[search]\nbackend = "brave"\napi_key = "the-very-secret"\n')
    file.chmod(0o600)
    loaded = load_config(file, environ={"HOME": str(tmp_path)}).config
    assert loaded.search.api_key == "the-very-secret"
    assert "the-very-secret" not in repr(loaded)
    with pytest.raises(ConfigError):
        load_config(tmp_path / "nothing.toml", environ={"HOME": str(tmp_path)})
