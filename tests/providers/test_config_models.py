"""Model entries of the user's configuration are the strongest word on a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.config import load_config
from isthmus.errors import ConfigError
from isthmus.providers import load_provider
from isthmus.providers.snapshot import snapshot_head
from isthmus.wiring import http_endpoint


def test_an_entry_overrides_the_file_and_the_users_folder(tmp_path: Path) -> None:
    (tmp_path / "deepseek.toml").write_text("[models.'deepseek-v4-pro']\nlimits = { context = 5000 }\n")
    mine = {"deepseek-v4-*": {"limits": {"context": 4000, "output": 2000}}}
    place = "providers.deepseek in the configuration"
    provider = load_provider("deepseek", [tmp_path], models=mine, place=place)
    facts = provider.capabilities("deepseek-v4-pro")
    assert (facts.limits.context, facts.limits.output) == (4000, 2000)
    assert provider.name == "deepseek"
    assert provider.title == load_provider("deepseek").title
    origin = provider.origins("deepseek-v4-pro")["limits.context"]
    assert origin == 'providers.deepseek in the configuration [models."deepseek-v4-*".limits]'
    assert provider.files == (
        snapshot_head().label,
        "deepseek.toml",
        str(tmp_path / "deepseek.toml"),
        "providers.deepseek in the configuration",
    )


def test_other_models_keep_their_facts() -> None:
    provider = load_provider("deepseek", models={"mine": {"limits": {"context": 4000}}})
    assert provider.capabilities("deepseek-v4-pro") == load_provider("deepseek").capabilities("deepseek-v4-pro")


def test_a_fact_can_be_taken_back() -> None:
    provider = load_provider("deepseek", models={"*": {"parameters": {"temperature": False}}})
    assert "temperature" not in provider.capabilities("deepseek-v4-pro").parameters


def test_an_unknown_fact_is_an_error_that_says_where() -> None:
    with pytest.raises(ConfigError, match=r"here: `models\.x\.limit` is not a known key\. .* `models\.x\.limits`\?"):
        load_provider("deepseek", models={"x": {"limit": 3}}, place="here")


def test_nothing_said_changes_nothing() -> None:
    assert load_provider("deepseek", models={}).files == (snapshot_head().label, "deepseek.toml")


def test_the_cloud_of_ollama_gets_its_key_as_a_bearer(tmp_path: Path) -> None:
    path = tmp_path / "isthmus.toml"
    path.write_text("[providers.ollama]\nendpoint = 'cloud'\n[models]\ndemo = false\n")
    config = load_config(path, environ={"OLLAMA_API_KEY": "ok-1"}).config
    settings = config.providers["ollama"]
    endpoint = http_endpoint("ollama", load_provider("ollama"), settings, "")
    assert endpoint.url == "https://ollama.com/v1/chat/completions"
    assert endpoint.headers["authorization"] == "Bearer ok-1"


def test_a_local_server_gets_no_key_unless_one_is_set(tmp_path: Path) -> None:
    path = tmp_path / "isthmus.toml"
    path.write_text("[providers.ollama]\n[providers.lmstudio]\napi_key = 'mine'\n[models]\ndemo = false\n")
    config = load_config(path, environ={"OLLAMA_API_KEY": "ok-1"}).config
    ollama = http_endpoint("ollama", load_provider("ollama"), config.providers["ollama"], "")
    studio = http_endpoint("lmstudio", load_provider("lmstudio"), config.providers["lmstudio"], "")
    assert "authorization" not in ollama.headers
    assert studio.headers["authorization"] == "Bearer mine"
