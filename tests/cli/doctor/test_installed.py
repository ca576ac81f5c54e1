"""Versions, the event loop, extras and open files."""

from __future__ import annotations

import importlib.metadata
import resource
import tomllib
from pathlib import Path

import msgspec
import pytest

from isthmus.cli.doctor import installed
from isthmus.cli.doctor.installed import EXTRAS, look_at_limits, look_at_versions
from isthmus.config.schema import Config

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())


def test_every_extra_of_the_project_is_looked_for() -> None:
    wanted = PROJECT["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(wanted) - {"all"}  # which is these
    for name, (_, distribution) in EXTRAS.items():
        assert any(each.startswith(distribution) for each in wanted[name]), name


def test_what_is_not_installed_is_listed_and_no_uvloop_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in ("uvloop", "psycopg"):
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.2.3"

    monkeypatch.setattr(installed, "version", version)
    monkeypatch.setattr(installed, "find_spec", lambda module: None if module == "psycopg" else object())
    _, loop, extras = look_at_versions()
    assert (loop.state, loop.remedy) == ("warning", "`pip install uvloop`")
    assert extras.facts["absent"] == ["postgres"]
    assert extras.facts["installed"]["mcp"] == "1.2.3"


@pytest.mark.parametrize(("hard", "state"), [(100, "warning"), (5_000, "ok"), (resource.RLIM_INFINITY, "ok")])
def test_too_few_open_files_for_all_streams_are_a_warning(
    monkeypatch: pytest.MonkeyPatch, hard: int, state: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, hard))
    config = Config()
    config = msgspec.structs.replace(config, server=msgspec.structs.replace(config.server, max_concurrent=1_000))
    (found,) = look_at_limits(config)
    assert (found.state, found.facts["needed"]) == (state, 2_200)
