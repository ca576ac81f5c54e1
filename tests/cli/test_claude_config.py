"""Our variables in Claude Code's settings: in and out again, and whatever else is in the file keeps its bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.cli.claude_config import Record, apply_setup, has_setup, undo_setup
from isthmus.cli.claude_keys import Settings
from isthmus.errors import ConfigError
from json_documents import json_objects

SETTINGS = Settings("http://127.0.0.1:8484", "isthmus", "deepseek/deepseek-v4-pro", "deepseek/deepseek-flash")
OTHER = Settings("https://elsewhere", 'key "ü"', "zhipu/glm-5.3", "zhipu/glm-5.3", 200_000, 8_192)
OURS = tuple(SETTINGS.variables)

FILES = {
    "missing or empty": "",
    "blank": " \n\n",
    "blank with a byte order mark": "\ufeff",
    "empty object": "{}",
    "empty object with space": "{\n\n}\n",
    "no env": '{\n  "model": "opus",\n  "permissions": {"allow": ["Bash(ls)"]}\n}\n',
    "empty env": '{"env": { }, "model": "opus"}',
    "own variables": '{\n\t"env": {\n\t\t"PATH": "/bin",\n\t\t"ANTHROPIC_MODEL": "opus"\n\t}\n}',
    "another gateway": '{"env":{"ANTHROPIC_BASE_URL":"https://h","ANTHROPIC_AUTH_TOKEN":"sk-\\u00e9","X":"1"}}',
    "a key and a cloud": '{"env": {"ANTHROPIC_API_KEY": "sk-ant", "CLAUDE_CODE_USE_BEDROCK": "1"}}',
    "windows lines and byte order mark": '\ufeff{\r\n  "theme": "dark",\r\n  "env": {\r\n    "A": "b"\r\n  }\r\n}\r\n',
    "env first": '{"env": {"A": "b"}, "z": 1}',
    "env twice": '{"env": {"A": "1"}, "env": {"ANTHROPIC_MODEL": "x", "ANTHROPIC_MODEL": "y"}}',
    "unknown keys": '{"$schema": "https://x", "later": {"env": {"ANTHROPIC_MODEL": "not ours"}}, "n": 1e400}',
}


def variables(text: str) -> dict[str, str]:
    env: dict[str, str] = json.loads(text.removeprefix("\ufeff"))["env"]
    return env


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_setup_keeps_every_other_setting_and_undo_restores_every_byte(text: str) -> None:
    new, record = apply_setup(text, SETTINGS, "x")
    before = json.loads(text.removeprefix("\ufeff").strip() or "{}")
    after = json.loads(new.removeprefix("\ufeff"))
    env = after.pop("env")
    own = before.pop("env", {})
    assert after == before
    assert {name: env[name] for name in SETTINGS.variables} == SETTINGS.variables
    assert {name: value for name, value in env.items() if name not in record.wrote} == {
        name: value for name, value in own.items() if name not in record.wrote
    }
    assert has_setup(new, record, "x")
    assert undo_setup(new, record, "x") == text
    assert not has_setup(text, record, "x")
    assert undo_setup(text, record, "x") == text


def test_keys_and_clouds_that_lead_past_the_gateway_are_blanked_and_come_back() -> None:
    text = FILES["a key and a cloud"]
    new, record = apply_setup(text, SETTINGS, "x")
    assert (variables(new)["ANTHROPIC_API_KEY"], variables(new)["CLAUDE_CODE_USE_BEDROCK"]) == ("", "")
    assert undo_setup(new, record, "x") == text


@given(json_objects(values=("ANTHROPIC_MODEL", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_MAX_OUTPUT_TOKENS")))
@settings(max_examples=150, deadline=None)
def test_any_document_comes_back_byte_for_byte(text: str) -> None:
    new, record = apply_setup(text, SETTINGS, "x")
    assert variables(new)["ANTHROPIC_MODEL"] == "deepseek/deepseek-v4-pro"
    assert undo_setup(new, record, "x") == text
    again, other = apply_setup(undo_setup(new, record, "x"), OTHER, "x")
    assert variables(again)["ANTHROPIC_AUTH_TOKEN"] == 'key "ü"'
    assert undo_setup(again, other, "x") == text


@given(json_objects(values=("ANTHROPIC_MODEL", "ANTHROPIC_BASE_URL")), st.sampled_from([None, 2]))
@settings(max_examples=100, deadline=None)
def test_what_claude_code_writes_since_then_stays_however_it_writes_the_file(text: str, indent: int | None) -> None:
    new, record = apply_setup(text, SETTINGS, "x")
    said = json.loads(new)
    said["permissions"] = {"allow": ["Bash(ls)"]}
    said["env"] = {"MINE": "1", **said["env"], "LATE": "2"}
    left = json.loads(undo_setup(json.dumps(said, indent=indent), record, "x"))
    before = json.loads(text)
    assert left.pop("permissions") == {"allow": ["Bash(ls)"]}
    assert left.pop("env") == {"MINE": "1", **before.pop("env", {}), "LATE": "2"}
    before.pop("permissions", None)
    assert left == before


def test_what_the_user_has_set_anew_is_the_users() -> None:
    text = '{"env": {"ANTHROPIC_BASE_URL": "https://old", "A": "b"}}'
    new, record = apply_setup(text, SETTINGS, "x")
    said = json.loads(new)
    said["env"] |= {
        "ANTHROPIC_BASE_URL": "https://mine",
        "ANTHROPIC_MODEL": "mine",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "5",
    }
    left = variables(undo_setup(json.dumps(said), record, "x"))
    assert left == {
        "ANTHROPIC_BASE_URL": "https://mine",
        "A": "b",
        "ANTHROPIC_MODEL": "mine",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "5",
    }


def test_a_model_that_was_picked_for_the_gateway_goes_with_it() -> None:
    new, record = apply_setup('{"env": {"ANTHROPIC_MODEL": "opus"}}', SETTINGS, "x")
    picked = new.replace('"ANTHROPIC_MODEL": "deepseek/deepseek-v4-pro"', '"ANTHROPIC_MODEL": "zhipu/glm-5"')
    assert picked != new
    assert undo_setup(picked, record, "x") == '{"env": {"ANTHROPIC_MODEL": "opus"}}'


def test_variables_that_somebody_has_removed_are_no_trouble() -> None:
    _, record = apply_setup('{"a": 1}', SETTINGS, "x")
    assert undo_setup('{"a": 1}', record, "x") == '{"a": 1}'
    assert not has_setup('{"a": 1}', record, "x")
    assert not has_setup("", Record(wrote={"A": "b"}), "x")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1,\n "b" 2}', "is not valid JSON at line 2"),
        ("[]", "is no JSON object"),
        ('{"env": []}', "`env` in `my.json` is no object"),
        ('{"env": null}', "`env` in `my.json` is no object"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_place(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        apply_setup(text, SETTINGS, "my.json")
    with pytest.raises(ConfigError, match=words):
        undo_setup(text, Record(wrote={"A": "b"}), "my.json")
