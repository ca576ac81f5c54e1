from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from isthmus.errors import ConfigError
from isthmus.store.memory import MemoryStore
from isthmus.store.open import database_path, open_store


@pytest.mark.parametrize("url", ["memory:", "memory://", "MEMORY:"])
def test_memory_urls_open_the_memory_store(url: str) -> None:
    assert isinstance(open_store(url), MemoryStore)


def test_a_relative_path_starts_at_the_given_folder(tmp_path: Path) -> None:
    asyncio.run(open_store("sqlite:here.db", relative_to=tmp_path).aclose())
    assert (tmp_path / "here.db").exists()


def test_a_relative_path_starts_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(open_store("sqlite:here.db", durability="power").aclose())
    assert (tmp_path / "here.db").exists()


@pytest.mark.parametrize("form", ["sqlite://{}", "sqlite:{}", "SQLite://{}"])
def test_an_absolute_path_is_taken_as_it_is(form: str, tmp_path: Path) -> None:
    path = tmp_path / "a name with spaces.db"
    asyncio.run(open_store(form.format(path), relative_to=Path("/nowhere")).aclose())
    assert path.exists()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "use `memory:`"),
        ("isthmus.db", "use `memory:`"),
        ("redis://localhost", "use `memory:`"),
        ("memory:x", "use `memory:`"),
        ("sqlite:", "name the file"),
        ("sqlite:a\0b", "name the file"),
        ("sqlite::memory:", "use `memory:`"),
        ("sqlite://relative.db", "three slashes"),
        ("postgres://localhost/x", "comes later"),
        ("postgresql://localhost/x", "comes later"),
    ],
)
def test_a_url_that_cannot_be_used_says_what_to_write(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        open_store(url)
    assert refused.value.param == "store.url"


def test_an_unknown_durability_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"`store\.durability` is `hope`"):
        open_store("memory:", durability="hope")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:x.db", "x.db"),
        ("sqlite:///a/x.db", "/a/x.db"),
        ("sqlite:///C:/data/x.db", "C:/data/x.db"),  # Windows
        ("SQLite:x.db", "x.db"),
        ("memory:", None),
    ],
)
def test_the_key_lies_beside_the_file_that_is_opened(url: str, path: str | None) -> None:
    assert database_path(url) == (Path(path) if path else None)
