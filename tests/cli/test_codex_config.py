"""Our lines in Codex's configuration: in and out again without touching anything else."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.cli.codex_config import Settings, apply_setup, has_setup, overrides, undo_setup
from isthmus.errors import ConfigError

SETTINGS = Settings("http://127.0.0.1:8484/v1", "deepseek/deepseek-v4-pro", "/home/me/.codex/isthmus-models.json")

FILES = {
    "empty": "",
    "comments only": "# mine\n",
    "own model": '# mine\nmodel = "gpt-5.5"  # the usual one\nmodel_provider="openai"\n\n[tui]\ntheme = "dark"\n',
    "no last newline": 'model = "gpt-5.5"\n[tui]\ntheme = "dark"',
    "windows lines": 'model = "gpt-5.5"\r\n\r\n[tui]\r\ntheme = "dark"\r\n',
    "other providers": '[model_providers.local]\nname = "Local"\nbase_url = "http://localhost:1/v1"\n',
    "quoted key": '"model" = "gpt-5.5"\n',
    "model in a table": '[profiles.fast]\nmodel = "gpt-5.5"\n',
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_setup_keeps_every_other_setting_and_undo_restores_every_byte(text: str) -> None:
    new = apply_setup(text, SETTINGS)
    before, after = tomllib.loads(text), tomllib.loads(new)
    assert (after["model"], after["model_provider"]) == ("deepseek/deepseek-v4-pro", "isthmus")
    assert after["model_providers"]["isthmus"]["base_url"] == "http://127.0.0.1:8484/v1"
    ours = {"model", "model_provider", "model_catalog_json", "model_providers"}
    assert {k: v for k, v in after.items() if k not in ours} == {k: v for k, v in before.items() if k not in ours}
    assert undo_setup(new) == text


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_second_setup_replaces_the_first(text: str) -> None:
    once = apply_setup(text, SETTINGS)
    assert apply_setup(once, SETTINGS) == once
    other = Settings("http://elsewhere/v1", "zhipu/glm-5.3", "/x.json", key_env="ISTHMUS_KEY")
    twice = apply_setup(once, other)
    assert tomllib.loads(twice)["model_providers"]["isthmus"]["env_key"] == "ISTHMUS_KEY"
    assert undo_setup(twice) == text


def test_what_the_user_adds_after_the_setup_stays_when_it_is_undone() -> None:
    added = '\n[mcp_servers.mine]\ncommand = "x"\n'
    assert undo_setup(apply_setup("# mine\n", SETTINGS) + added) == "# mine\n" + added


@pytest.mark.parametrize(
    "text",
    ['instructions = """\nmodel = "not a key"\n"""\n', 'model_providers = { local = { name = "Local" } }\n'],
    ids=["a key inside a text", "an inline table"],
)
def test_a_file_that_cannot_be_added_to_safely_is_left_alone(text: str) -> None:
    tomllib.loads(text)
    with pytest.raises(ConfigError, match="Codex configuration"):
        apply_setup(text, SETTINGS)


def test_a_broken_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="not valid TOML"):
        apply_setup("model = \n", SETTINGS)


@given(
    st.lists(
        st.sampled_from(['model = "a"', "# c", "", 'x = 1 # "y"', '  model_provider = "b"', 'note = "model = 1"']),
        unique=True,
    ),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
@settings(max_examples=150, deadline=None)
def test_undo_is_the_exact_inverse(lines: list[str], ends: bool, newline: str) -> None:
    text = newline.join(lines) + (newline if ends else "")
    new = apply_setup(text, SETTINGS)
    assert has_setup(new)
    assert undo_setup(new) == text


def test_overrides_say_the_same_for_one_run() -> None:
    arguments = overrides(Settings("http://h/v1", 'odd"model', "C:\\models.json"))
    assert arguments[::2] == ["-c"] * (len(arguments) // 2)
    read = tomllib.loads("\n".join(arguments[1::2]))
    assert read["model"] == 'odd"model'
    assert read["model_catalog_json"] == "C:\\models.json"
    assert read["model_providers"]["isthmus"] == {"name": "Isthmus", "base_url": "http://h/v1", "wire_api": "responses"}
