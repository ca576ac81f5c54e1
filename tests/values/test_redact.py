"""Secrets are hidden by name, by look and inside URLs; the rest is shown."""

from __future__ import annotations

import pytest

from isthmus.values.redact import HIDDEN, is_secret_key, redact


@pytest.mark.parametrize(
    "key",
    [
        *("api_key", "api_keys", "apiKey", "APIKEY", "x-goog-api-key", "X-Api-Key", "Ocp-Apim-Subscription-Key"),
        *("Authorization", "Proxy-Authorization", "access_token", "X-Auth-Token", "client_secret", "password"),
        *("Cookie", "sig", "key", "sslpassword"),
    ],
)
def test_a_name_tells_a_secret(key: str) -> None:
    assert is_secret_key(key)
    assert redact(key, "value") == HIDDEN
    assert redact(key, ["a", ""]) == [HIDDEN, ""]


@pytest.mark.parametrize(
    "key", ["keep_days", "max_tokens", "reasoning_tokens", "url", "models", "monkey", "host", "api-version", "author"]
)
def test_a_name_tells_no_secret(key: str) -> None:
    assert not is_secret_key(key)
    assert redact(key, "value") == "value"


@pytest.mark.parametrize(
    "value",
    ["Bearer abc", "sk-abcdefgh", "gsk_abcdefgh", "eyJhbGciOiJIUzI1NiJ9", "0123456789abcdef0123456789abcdef"],
)
def test_a_value_that_looks_like_a_secret_is_hidden_under_any_name(value: str) -> None:
    assert redact("X-Custom", value) == HIDDEN


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://me:pw@host/db", f"postgres://me:{HIDDEN}@host/db"),
        ("postgres://me:p@w@host/db", f"postgres://me:{HIDDEN}@host/db"),
        ("http://:pw@proxy:3128", f"http://:{HIDDEN}@proxy:3128"),
        ("https://averylongtokenasuser@host/", f"https://{HIDDEN}@host/"),
        ("https://h/v1?api_key=abc&x=1", f"https://h/v1?api_key={HIDDEN}&x=1"),
        ("https://api.deepseek.com/v1", "https://api.deepseek.com/v1"),
        ("sqlite:/data/a.db", "sqlite:/data/a.db"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert redact("url", url) == shown


def test_tables_are_shown_inside_out() -> None:
    headers = {"Authorization": "x", "X-Team": "a", "X-Title": "t"}
    given = {"headers": headers, "list": [{"api_key": "x", "n": 1}], "token": 12345}
    assert redact("", given) == {
        "headers": {"Authorization": HIDDEN, "X-Team": HIDDEN, "X-Title": "t"},
        "list": [{"api_key": HIDDEN, "n": 1}],
        "token": HIDDEN,
    }


def test_of_a_query_only_what_is_harmless_is_shown() -> None:
    given = {"query": {"code": "abc", "api-version": "2024-10-21", "n": 7, "empty": ""}}
    assert redact("", given) == {"query": {"code": HIDDEN, "api-version": "2024-10-21", "n": HIDDEN, "empty": ""}}
