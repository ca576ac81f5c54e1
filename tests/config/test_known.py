"""What the configuration needs to know of a provider, it finds in the provider's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.config import read_config
from isthmus.config.known import (
    AMBIENT,
    CODEX,
    DEMO,
    ORDER,
    all_names,
    find_known,
    known_key_variables,
    known_names,
    tell_unserved,
    usable_names,
)
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


def test_a_provider_of_the_snapshot_is_enabled_by_its_key_after_those_with_a_file() -> None:
    enabling = known_key_variables()
    assert enabling["NEBIUS_API_KEY"] == "nebius"
    owners = list(enabling.values())
    files = [owner for owner in owners if owner in known_names()]
    assert owners[: len(files)] == files
    assert owners[len(files) :] == sorted(owners[len(files) :])


@pytest.mark.parametrize("variable", sorted(AMBIENT))
def test_what_people_have_for_other_reasons_enables_nothing(variable: str, tmp_path: Path) -> None:
    assert variable not in known_key_variables()
    config = read_config(None, environ={"HOME": str(tmp_path), variable: "t-1"}, cwd=tmp_path).config
    assert list(config.providers) == [DEMO]


@pytest.mark.parametrize(
    "text",
    ["[providers.github-models]\n", '[models]\ndefault = "github-models/openai/gpt-4.1"\n'],
    ids=["in the configuration", "in a model's name"],
)
def test_it_is_used_once_the_provider_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "isthmus.toml").write_text(text)
    reading = read_config(tmp_path / "isthmus.toml", environ={"HOME": str(tmp_path), "GITHUB_TOKEN": "t-1"})
    assert reading.errors == ()
    assert reading.config.providers["github-models"].api_key == "t-1"


@pytest.mark.parametrize(
    ("variable", "house", "others"),
    [
        ("ZHIPU_API_KEY", "zhipu", ["zai-coding-plan", "zhipuai-coding-plan"]),
        ("OPENCODE_API_KEY", "opencode", ["opencode-go"]),
        ("STEPFUN_API_KEY", "stepfun", ["stepfun-ai"]),
        ("XIAOMI_API_KEY", "xiaomi", ["xiaomi-token-plan-cn"]),
    ],
)
def test_a_variable_of_several_enables_the_house_and_the_others_by_name(
    variable: str, house: str, others: list[str], tmp_path: Path
) -> None:
    environ = {"HOME": str(tmp_path), variable: "k-1"}
    assert list(read_config(None, environ=environ, cwd=tmp_path).config.providers) == [house, DEMO]
    for other in others:
        config = read_config(None, overrides={"models.default": f"{other}/m"}, environ=environ, cwd=tmp_path).config
        assert list(config.providers) == [house, other, DEMO]
        assert config.providers[other].api_key == "k-1"


def test_a_variable_of_a_file_is_that_files_also_where_it_needs_none() -> None:
    assert "LLAMA_API_KEY" in load_provider("llama-cpp").endpoint.key_env
    assert "LLAMA_API_KEY" in load_provider("llama").endpoint.key_env
    assert "LLAMA_API_KEY" not in known_key_variables()


def test_own_files_take_the_variables_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "corp.toml").write_text("extends = 'nebius'\n")
    assert known_key_variables([tmp_path])["NEBIUS_API_KEY"] == "corp"


def test_every_name_can_be_loaded_and_comes_once() -> None:
    names = all_names()
    assert len(names) == len(set(names)) > 120
    assert names[: len(known_names())] == known_names()
    assert set(usable_names()) < set(names)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nebius", "set `NEBIUS_API_KEY` in the environment of the gateway, or add `[providers.nebius]` to the"),
        ("deepseek", "set `DEEPSEEK_API_KEY` in the environment of the gateway, or add `[providers.deepseek]`"),
        (
            "github-models",
            "set `GITHUB_MODELS_TOKEN` in the environment of the gateway, or add",
        ),
        ("novita-ai", "set `NOVITA_API_KEY` in the environment of the gateway, or add `[providers.novita]`"),
        ("huggingface", "add `[providers.huggingface]` to the configuration"),
        ("zai-coding-plan", "add `[providers.zai-coding-plan]` to the configuration"),
        ("wafer.ai", 'set `WAFER_API_KEY` in the environment of the gateway, or add `[providers."wafer.ai"]`'),
        ("gitlab", "provider `gitlab` cannot be used: "),
        ("nobody", ""),
    ],
)
def test_what_one_lacks_that_is_known_is_told(name: str, told: str) -> None:
    said = tell_unserved(name)
    assert said.startswith(told)
    assert bool(said) is bool(told)


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
