"""`ISTHMUS_*`: every key that a line of text can set has its variable, and what sets none is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.config import read_config
from isthmus.config.environment import known_variables, names_provider, read_variables, sets_provider


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("ISTHMUS_PORT", ("server", "port")),
        ("ISTHMUS_SERVER_API_KEYS", ("server", "api_keys")),
        ("ISTHMUS_SERVER_ALLOW_ORIGINS", ("server", "allow_origins")),
        ("ISTHMUS_PROVIDERS_MY_OWN_API_KEY_FILE", ("providers", "my-own", "api_key_file")),
        ("ISTHMUS_PROVIDERS_MY_OWN_TIMEOUTS_IDLE", ("providers", "my-own", "timeouts", "idle")),
        ("ISTHMUS_PROVIDER_FOLDERS", ("provider_folders",)),
    ],
)
def test_a_variable_is_the_path_in_capitals(name: str, path: tuple[str, ...]) -> None:
    assert known_variables(["my-own"])[name] == (path, False)


def test_tables_of_texts_are_pairs_and_other_tables_have_no_variable() -> None:
    known = known_variables(["x"])
    assert known["ISTHMUS_PROVIDERS_X_HEADERS"] == (("providers", "x", "headers"), True)
    assert "ISTHMUS_PROVIDERS_X_MODELS" not in known
    assert "ISTHMUS_PROVIDERS_X_ENDPOINTS" not in known


def test_an_empty_variable_sets_nothing_and_those_of_clients_are_left_alone() -> None:
    environ = {"ISTHMUS_PORT": " ", "ISTHMUS_API_KEY": "k", "ISTHMUS_BASE_URL": "u", "ISTHMUS_MODEL": "m", "PORT": "1"}
    assert read_variables(environ, []) == ([], [])


def test_the_full_name_comes_after_the_short_one_so_that_it_wins() -> None:
    found, problems = read_variables({"ISTHMUS_SERVER_PORT": "2", "ISTHMUS_PORT": "1"}, [])
    assert problems == []
    assert [variable.value for variable in found] == ["1", "2"]


def test_a_table_is_read_pair_by_pair() -> None:
    found, (problem,) = read_variables({"ISTHMUS_MODELS_ALIASES": "a = p/x, nonsense, b=p/y=z,"}, [])
    assert [(variable.path[-1], variable.value) for variable in found] == [("a", "p/x"), ("b", "p/y=z")]
    assert "list of `name=value`" in problem.text


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("ISTHMUS_SERVER_PROT", "did you mean `ISTHMUS_SERVER_PORT`?"),
        ("ISTHMUS_ZZZZZ", "unset it, or correct its name"),
    ],
)
def test_a_variable_that_sets_nothing_is_told(name: str, fix: str) -> None:
    (_, (problem,)) = read_variables({name: "1"}, [])
    assert (problem.severity, problem.place, problem.fix) == ("warning", f"${name}", fix)


def test_a_provider_of_the_snapshot_has_its_variables(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "ISTHMUS_PROVIDERS_NEBIUS_TIMEOUTS_IDLE": "7s", "NEBIUS_API_KEY": "k"}
    reading = read_config(None, environ=environ, cwd=tmp_path)
    assert reading.problems == ()
    assert reading.config.providers["nebius"].timeouts.idle == 7.0
    assert sets_provider(environ)
    assert names_provider(environ, "nebius")
    assert not names_provider(environ, "novita-ai")
    assert not sets_provider({"ISTHMUS_SERVER_PORT": "1"})
