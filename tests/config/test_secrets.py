"""The scrubber's list: every secret of a configuration, wherever in it it stands."""

from __future__ import annotations

from pathlib import Path

from isthmus.config import load_config
from isthmus.config.secrets import configured_secrets

TOML = """
[server]
api_keys = ["client-key-1234"]
admin_key = "admin-key-1234"
[store]
url = "sqlite:x.db"
[providers.one]
uses = "openai-compatible"
base_url = "https://joe:address-word-1@example.com/v1?sig=address-query-1"
api_keys = ["many-1234", "many-5678"]
headers = { X-Token = "Bearer header-1234", User-Agent = "not-a-secret" }
query = { code = "query-1234", api-version = "2024-10-21" }
proxy = "http://me:proxy-word-1@proxy:3128"
[[providers.two.endpoints]]
base_url = "https://example.com/v1"
api_key = "place-1234"
headers = { authorization = "Basic YW5uOmJhc2ljLXdvcmQtMQ==" }
[providers.deepseek]
[providers.two]
uses = "openai-compatible"
"""


def test_every_secret_is_known_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text(TOML)
    config = load_config(file, environ={"DEEPSEEK_API_KEY": "from-the-environment"}).config
    values = {secret.value for secret in configured_secrets(config)}
    assert values >= {
        *("client-key-1234", "admin-key-1234", "many-1234", "many-5678", "header-1234", "query-1234", "place-1234"),
        *("address-word-1", "address-query-1", "proxy-word-1", "basic-word-1", "from-the-environment"),
    }
    assert not values & {"not-a-secret", "2024-10-21", "openai-compatible", "sqlite:x.db", "https://example.com/v1"}


def test_of_a_database_the_passwords_are_secret_and_the_rest_is_not(tmp_path: Path) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text(
        "[store]\nurl = 'postgresql://postgres:data%40word-1@db.example/kept?sslmode=verify-full&sslpassword=key-word-1'\n"
        "envelope_key = 'an-envelope-key-of-all'\n"
    )
    file.chmod(0o600)
    values = {secret.value for secret in configured_secrets(load_config(file, environ={}).config)}
    assert values >= {"data@word-1", "key-word-1", "an-envelope-key-of-all"}
    assert not values & {"postgres", "verify-full"}
