"""What the configuration needs to know of a provider, it finds in the provider's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.config.known import CODEX, DEMO, ORDER, find_known, known_key_variables, known_names
from isthmus.errors import ConfigError
from isthmus.providers import load_provider


def test_every_provider_is_known_in_the_documented_order() -> None:
    names = known_names()
    assert names[: len(ORDER)] == list(ORDER)
    assert names[len(ORDER) :] == sorted(names[len(ORDER) :])
    assert {CODEX, DEMO} <= set(names)


@pytest.mark.parametrize("name", known_names())
def test_a_key_is_needed_exactly_where_the_file_names_one_that_is_not_optional(name: str) -> None:
    known = find_known(name)
    if name == CODEX:
        assert not known.needs_key
        return
    endpoint = load_provider(name).endpoint
    wanted = endpoint.auth != "none" and bool(endpoint.key_env) and not endpoint.key_optional
    assert known.needs_key is wanted
    assert list(known.key_variables) == endpoint.key_env


def test_only_needed_keys_enable_a_provider() -> None:
    enabling = known_key_variables()
    assert enabling["DEEPSEEK_API_KEY"] == "deepseek"
    assert enabling["ZAI_API_KEY"] == "zhipu"  # of another address of its
    assert "VLLM_API_KEY" not in enabling  # a server of one's own may not even run


@pytest.mark.parametrize(("variable", "name"), known_key_variables().items())
def test_a_file_is_read_only_where_the_environment_speaks_of_it(variable: str, name: str) -> None:
    assert known_key_variables((), {variable: "k"})[variable] == name
    assert known_key_variables((), {"HOME": "/"}) == {}


def test_another_address_has_its_own_facts() -> None:
    standard, other = find_known("zhipu"), find_known("zhipu", alternative="zai")
    assert standard.base_url != other.base_url
    assert other.key_variables == ("ZAI_API_KEY",)
    assert find_known("zhipu", alternative="nowhere") == standard


def test_own_files_are_known_too(tmp_path: Path) -> None:
    (tmp_path / "corp.toml").write_text('[endpoint]\nbase_url = "https://corp.example/v1"\nkey_env = ["CORP_KEY"]\n')
    assert "corp" in known_names([tmp_path])
    assert known_key_variables([tmp_path])["CORP_KEY"] == "corp"
    with pytest.raises(ConfigError, match="there is no provider"):
        find_known("corp")
