"""Receivers that nobody may call, and secrets that protect nothing, are found before the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.config import load_config, read_config
from isthmus.config.check_webhooks import secret_bytes
from isthmus.errors import ConfigError
from isthmus.values.problems import dotted

SECRET = "whsec_dGhlIHNlY3JldCBvZiB0aGUgcmVjZWl2ZXIhISE="
HOOK = f'[webhooks]\nallowed_hosts = ["hooks.example.org"]\n[webhooks.endpoints.a]\nsecret = "{SECRET}"\n'
SOUND = f'{HOOK}url = "https://hooks.example.org/x"\n'


def problems(tmp_path: Path, text: str) -> list[tuple[str, str, str]]:
    file = tmp_path / "isthmus.toml"
    file.write_text(text)
    file.chmod(0o600)
    found = read_config(file, environ={"HOME": str(tmp_path)}).problems
    return [(problem.severity, dotted(problem.key), f"{problem.message}. {problem.fix}") for problem in found]


def test_a_sound_receiver_has_no_problems(tmp_path: Path) -> None:
    assert problems(tmp_path, SOUND) == []


@pytest.mark.parametrize(
    ("text", "severity", "key", "says"),
    [
        pytest.param(HOOK, "error", "webhooks.endpoints.a.url", "is missing", id="no address"),
        pytest.param(
            HOOK + 'url = "https://evil.example/"',
            "error",
            "webhooks.endpoints.a.url",
            "leads to `evil.example`, which `allowed_hosts` does not name",
            id="a host that nobody named",
        ),
        pytest.param(
            HOOK + 'url = "http://hooks.example.org/"',
            "error",
            "webhooks.endpoints.a.url",
            "must begin with `https`",
            id="plain http",
        ),
        pytest.param(
            SOUND.replace(f'secret = "{SECRET}"\n', ""),
            "error",
            "webhooks.endpoints.a.secret",
            "echo whsec_$(openssl rand -base64 32)",
            id="no secret",
        ),
        pytest.param(
            SOUND.replace(SECRET, "whsec_@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@"),
            "error",
            "webhooks.endpoints.a.secret",
            "the rest is no base64",
            id="no base64",
        ),
        pytest.param(
            SOUND.replace(SECRET, "short"),
            "warning",
            "webhooks.endpoints.a.secret",
            "has 5 bytes",
            id="a secret that can be guessed",
        ),
        pytest.param(
            SOUND + 'previous_secret = "whsec_AAAA"',
            "warning",
            "webhooks.endpoints.a.previous_secret",
            "has 3 bytes",
            id="one that could be guessed before",
        ),
        pytest.param(
            SOUND + 'events = ["response.created"]',
            "error",
            "webhooks.endpoints.a.events[0]",
            "response.completed",
            id="an event that there is not",
        ),
        pytest.param(
            SOUND + 'secret_file = "there"',
            "error",
            "webhooks.endpoints.a.secret_file",
            "excludes `secret`",
            id="two secrets",
        ),
    ],
)
def test_a_problem_is_told_with_its_fix(tmp_path: Path, text: str, severity: str, key: str, says: str) -> None:
    (tmp_path / "there").write_text(SECRET)
    (found,) = problems(tmp_path, text)
    assert found[:2] == (severity, key)
    assert says in found[2]


def test_a_secret_comes_from_a_file_or_a_variable(tmp_path: Path) -> None:
    (tmp_path / "there").write_text(f"{SECRET}\n")
    file = tmp_path / "isthmus.toml"
    for line in ('secret_file = "there"', 'secret = "${HOOK_SECRET}"'):
        file.write_text(SOUND.replace(f'secret = "{SECRET}"', line))
        environ = {"HOME": str(tmp_path), "HOOK_SECRET": SECRET}
        assert load_config(file, environ=environ).config.webhooks.endpoints["a"].secret == SECRET
    file.write_text(SOUND.replace(f'secret = "{SECRET}"', 'secret_file = "not there"'))
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(file, environ={"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("secret", "key"),
    [
        ("whsec_aGVsbG8=", b"hello"),
        ("whsec_aGVsbG8", b"hello"),
        ("any text, as it is", b"any text, as it is"),
        ("aGVsbG8=", b"aGVsbG8="),
        ("whsec_", None),
        ("whsec_no base64", None),
    ],
)
def test_a_secret_is_base64_if_it_says_so(secret: str, key: bytes | None) -> None:
    assert secret_bytes(secret) == key
