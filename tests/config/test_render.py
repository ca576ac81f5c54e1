"""The effective configuration as text."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from isthmus.config import Reading, read_config
from isthmus.config.render import render_json, render_toml, shown_settings

ENVIRON = {
    "DEEPSEEK_API_KEY": "SECRET-1",
    "TEAM": "SECRET-2",
    "GRACE": "7s",
    "ISTHMUS_PROVIDERS_XAI_API_KEY": "SECRET-3",
}
TEXT = """
[server]
port = 9000
grace = "${GRACE}"
[models.aliases]
"gpt-5.5" = "deepseek/deepseek-v4-pro"
[models.fallbacks]
"gpt-5.5" = ["xai/grok"]
[providers.deepseek]
[providers.xai]
[providers.mine]
uses = "openai-compatible"
base_url = "http://${TEAM}.example/v1"
api_keys = ["${DEEPSEEK_API_KEY}", "${TEAM}"]
headers = { X-Team = "${TEAM}", Authorization = "Bearer ${TEAM}", X-Title = "a $${literal}" }
timeouts = { idle = "3m" }
[providers.mine.models."llama*"]
example = "llama-3"
limits = { context = 32768 }
[[providers.two.endpoints]]
base_url = "http://127.0.0.1:1/v1"
api_key = "${TEAM}"
[providers.two]
uses = "vllm"
[webhooks]
allowed_hosts = ["hooks.example"]
[webhooks.endpoints.hook]
url = "https://hooks.example/x"
secret = "${TEAM}"
[store]
url = "memory:"
"""


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    return _read(tmp_path, TEXT)


def _read(tmp_path: Path, text: str) -> Reading:
    (tmp_path / "isthmus.toml").write_text(text)
    (tmp_path / "isthmus.toml").chmod(0o600)
    return read_config(tmp_path, environ={"HOME": str(tmp_path), **ENVIRON})


def test_what_is_printed_reads_back_as_the_same_configuration(reading: Reading, tmp_path: Path) -> None:
    assert reading.errors == ()
    again = _read(tmp_path, render_toml(reading))
    assert again.errors == ()
    assert again.config == reading.config
    assert render_toml(again) == render_toml(reading)


@pytest.mark.parametrize("origins", [False, True])
def test_no_secret_of_the_environment_is_printed(reading: Reading, origins: bool) -> None:
    for text in (render_toml(reading, origins=origins), render_json(reading, origins=origins)):
        assert "SECRET" not in text
        assert "${DEEPSEEK_API_KEY}" in text


def test_literal_secrets_are_hidden(tmp_path: Path) -> None:
    reading = _read(
        tmp_path,
        '[providers.mine]\nuses = "vllm"\napi_key = "LITERAL-1"\nproxy = "http://u:LITERAL-2@p:1"\n'
        'headers = { Authorization = "LITERAL-3", X-Half = "Bearer LITERAL-4-${TEAM}", Cookie = "${X:-LITERAL-5}" }\n',
    )
    for text in (render_toml(reading), render_json(reading)):
        assert "LITERAL" not in text
    assert tomllib.loads(render_toml(reading))["providers"]["mine"]["api_key"] == "<redacted>"


def test_json_and_toml_say_the_same(reading: Reading) -> None:
    assert json.loads(render_json(reading)) == tomllib.loads(render_toml(reading))


def test_each_value_tells_its_origin(reading: Reading, tmp_path: Path) -> None:
    file = tmp_path / "isthmus.toml"
    lines = render_toml(reading, origins=True).splitlines()
    assert f"port = 9000  # file: {file}:3" in lines
    assert 'host = "127.0.0.1"  # default' in lines
    assert 'api_key = "${DEEPSEEK_API_KEY}"  # environment: $DEEPSEEK_API_KEY' in lines
    assert 'api_key = "${ISTHMUS_PROVIDERS_XAI_API_KEY}"  # environment: $ISTHMUS_PROVIDERS_XAI_API_KEY' in lines
    origins = json.loads(render_json(reading, origins=True))["origins"]
    assert origins["server.port"] == f"file: {file}:3"
    assert origins['models.aliases."gpt-5.5"'] == f"file: {file}:6"
    assert origins["log.level"] == "default"
    assert origins["models.default"] == "default: the first provider, `deepseek`"


def test_a_value_that_was_refused_is_not_shown_as_the_files(tmp_path: Path) -> None:
    reading = _read(tmp_path, "[server]\nport = 'x'\n")
    assert "port = 8484  # default" in render_toml(reading, origins=True)


def test_a_query_is_printed_without_its_values_but_for_versions(tmp_path: Path) -> None:
    query = "{ code = 'LITERAL-1', sig = 'LITERAL-2-${TEAM}', api-version = '2024-10-21' }"
    reading = _read(tmp_path, TEXT.replace("timeouts =", f"query = {query}\ntimeouts ="))
    for printed in (render_toml(reading), render_json(reading), repr(reading.config)):
        assert "LITERAL" not in printed
        assert "2024-10-21" in printed
        assert "code" in printed


def test_a_header_is_printed_only_where_its_name_is_harmless(tmp_path: Path) -> None:
    text = (
        """[mcp.mine]\nurl = "https://x.example/mcp"\nheaders = { X-Operator = "LITERAL-1", User-Agent = "mine/1" }\n"""
    )
    reading = _read(tmp_path, text)
    for printed in (render_toml(reading), render_json(reading), str(shown_settings(reading))):
        assert "LITERAL" not in printed
        assert "mine/1" in printed


@pytest.mark.parametrize(
    "section", ['[search]\nbackend = "brave"', '[images]\nurl = "https://x.example/v1"\nmodel = "m"']
)
def test_a_key_from_a_file_is_printed_as_its_file_and_reads_back(tmp_path: Path, section: str) -> None:
    (tmp_path / "there").write_text("SECRET-OF-THE-FILE-WHICH-IS-LONG")
    (tmp_path / "there").chmod(0o600)
    reading = _read(tmp_path, f'{section}\napi_key_file = "there"\n')
    printed = render_toml(reading)
    assert "api_key_file" in printed
    assert "SECRET" not in printed
    assert "<redacted>" not in printed
    assert _read(tmp_path, printed).config == reading.config


def test_secrets_of_webhooks_are_hidden_or_named_by_their_file(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("SECRET-OF-THE-FILE-WHICH-IS-LONG")
    head = '[webhooks]\nallowed_hosts = ["hooks.example"]\n[webhooks.endpoints.hook]\nurl = "https://hooks.example/"\n'
    literal = _read(tmp_path, f'{head}secret = "LITERAL-1"\nprevious_secret = "LITERAL-2"\n')
    assert "LITERAL" not in render_toml(literal) + repr(literal.config)
    file = _read(tmp_path, f'{head}secret_file = "there"\n')
    shown = render_toml(file)
    assert 'secret_file = "there"' in shown
    assert "SECRET-OF" not in shown + repr(file.config)
    assert _read(tmp_path, shown).config.webhooks == file.config.webhooks
