"""This machine is this machine by every name it has, and by no name that only looks like one; keys stay at home."""

from __future__ import annotations

import pytest

from isthmus.addresses import is_local, is_loopback, may_get_key

LOOPBACK = [
    *("127.0.0.1", "127.0.0.2", "127.255.0.9", "::1", "[::1]", "::ffff:127.0.0.1"),
    *("localhost", "LocalHost", "localhost.", "a.localhost"),
]
ELSEWHERE = [
    *("127.evil.example", "127.0.0.1.evil.example", "localhost.evil.example"),
    *("0.0.0.0", "::", "10.0.0.1", "", "1", "[::"),
]


@pytest.mark.parametrize("host", LOOPBACK)
def test_the_loopback_has_many_names(host: str) -> None:
    assert is_loopback(host)
    bare = host.strip("[]")
    assert is_local(f"http://[{bare}]:1/v1" if ":" in bare else f"http://{bare}:1/v1")


@pytest.mark.parametrize("host", [*ELSEWHERE, None])
def test_what_only_looks_like_it_is_not(host: str | None) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.evil.example/v1",
        "https://api.deepseek.com",
        "http://10.0.0.1:8000/v1",
        "http://[",
        "http://[::1",
    ],
)
def test_another_machine_is_not_local(url: str) -> None:
    assert not is_local(url)


@pytest.mark.parametrize("url", ["", "http://0.0.0.0:1", "http://[::]:1", "http://host.docker.internal:11434/v1"])
def test_this_machine_by_its_other_names_or_none_yet(url: str) -> None:
    assert is_local(url)


@pytest.mark.parametrize(
    ("own", "url", "may"),
    [
        pytest.param("https://api.x.ai/v1", "", True, id="its own"),
        pytest.param("https://api.x.ai/v1", "https://api.x.ai/beta", True, id="another path"),
        pytest.param("https://api.x.ai/v1", "https://API.x.ai:8443/v1", True, id="another port, other letters"),
        pytest.param("https://api.x.ai/v1", "https://api.x.ai.evil.example/v1", False, id="a longer name"),
        pytest.param("https://api.x.ai/v1", "https://x.ai/v1", False, id="a shorter name"),
        pytest.param("https://api.x.ai/v1", "http://127.0.0.1:1/v1", False, id="this machine"),
        pytest.param("https://api.x.ai/v1", "http://[", False, id="no address"),
        pytest.param("http://[", "http://[", False, id="no address twice"),
        pytest.param("http://localhost:8000/v1", "https://far.example/v1", True, id="a server of the user's own"),
        pytest.param("http://127.evil.example/v1", "https://far.example/v1", False, id="no server of the user's own"),
    ],
)
def test_a_key_goes_only_to_the_host_that_it_is_for(own: str, url: str, may: bool) -> None:
    assert may_get_key(own, url) is may
