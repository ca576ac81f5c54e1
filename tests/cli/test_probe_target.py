"""Whom a probe asks, and which key goes there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isthmus.cli.probe_target import find_target
from isthmus.errors import ConfigError


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.endswith("_API_KEY") or name.startswith("ISTHMUS_")]:
        monkeypatch.delenv(name)


def test_an_address_is_taken_as_it_is() -> None:
    target = find_target("http://h:1/v1/", "", "sk-1", None)
    assert (target.address, target.key, target.provider) == ("http://h:1/v1", "sk-1", None)


def test_a_name_brings_address_facts_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-own")
    target = find_target("deepseek", "", "", None)
    assert target.address.startswith("https://api.deepseek.com")
    assert target.key == "sk-own"
    assert target.provider is not None


def test_a_key_goes_to_its_own_address_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-own")
    assert find_target("deepseek", "http://elsewhere/v1", "", None).key == ""
    assert find_target("deepseek", "http://elsewhere/v1", "sk-given", None).key == "sk-given"


def test_the_configuration_says_where_a_provider_is(tmp_path: Path) -> None:
    text = '[providers.mine]\nuses = "llama-cpp"\nbase_url = "http://box:8080/v1"\napi_key = "sk-box"\n'
    (tmp_path / "isthmus.toml").write_text(text)
    target = find_target("mine", "", "", None)
    assert (target.address, target.key) == ("http://box:8080/v1", "sk-box")
    assert target.provider is not None
    assert target.provider.name == "llama-cpp"


@pytest.mark.parametrize(
    ("asked", "base_url", "words"),
    [
        ("http://h/v1", "http://g/v1", "goes with the name"),
        ("nobody-at-all", "", "nobody-at-all"),
        ("codex", "", "`--base-url`"),
        ("http://me:secret@h/v1", "", "holds a password"),
    ],
    ids=["two addresses", "unknown name", "no address", "password"],
)
def test_mistakes_are_explained(asked: str, base_url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        find_target(asked, base_url, "", None)
