"""HTTP proxies of the environment, found as every other tool finds them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from isthmus.upstream.proxies import environment_proxy, proxy_fault

PROXY = "http://proxy.local:3128"


@pytest.mark.parametrize(
    ("environment", "url", "expected"),
    [
        ({}, "https://api.example.com/v1", None),
        ({"https_proxy": PROXY}, "https://api.example.com/v1", PROXY),
        ({"HTTPS_PROXY": PROXY}, "https://api.example.com/v1", PROXY),
        ({"http_proxy": PROXY}, "https://api.example.com/v1", None),
        ({"http_proxy": PROXY}, "http://api.example.com/v1", PROXY),
        ({"https_proxy": PROXY, "no_proxy": "example.com"}, "https://api.example.com/v1", None),
        ({"https_proxy": PROXY, "no_proxy": "*"}, "https://api.example.com/v1", None),
        ({"http_proxy": PROXY, "no_proxy": "127.0.0.1,localhost"}, "http://127.0.0.1:8080/v1", None),
        ({"https_proxy": PROXY, "no_proxy": "other.org"}, "https://api.example.com/v1", PROXY),
    ],
    ids=["none", "https", "upper case", "another scheme", "http", "no_proxy", "no_proxy *", "loopback", "other host"],
)
def test_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, expected: str | None
) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert environment_proxy(url) == expected


def test_where_the_environment_names_none_nothing_is_loaded_to_find_it() -> None:
    code = (
        "import sys; from isthmus.upstream.proxies import environment_proxy as find\n"
        "assert find('https://api.example.com') is None; print('urllib.request' in sys.modules)\n"
        "import os; os.environ['HTTPS_PROXY'] = 'http://proxy.local'; print(find('https://api.example.com'))"
    )
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run([sys.executable, "-c", code], env=kept, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "http://proxy.local"]


def test_the_settings_of_macos_and_windows_are_asked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": PROXY})
    assert environment_proxy("https://api.example.com") == PROXY


@pytest.mark.parametrize("proxy", [None, PROXY, "https://proxy.local", "HTTP://proxy.local", "proxy.local:3128"])
def test_what_http_is_spoken_to_has_no_fault(proxy: str | None) -> None:
    assert proxy_fault(proxy) is None


def test_another_kind_of_proxy_is_named_without_its_password() -> None:
    told = proxy_fault("socks5://joe:hush@127.0.0.1:1080")
    assert told is not None
    assert "`socks5`" in told
    assert "hush" not in told
