"""This machine is this machine by every name it has, and by no name that only looks like one; keys stay at home."""

from __future__ import annotations

import pytest

from isthmus.addresses import (
    behind,
    fault_of_call,
    fault_of_visit,
    fill_gaps,
    gaps_of,
    is_local,
    is_loopback,
    is_public,
    may_get_key,
    misfit,
)

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


AZURE = "https://${NAME}.openai.azure.com/openai/v1"
VERTEX = "https://${WHERE}-aiplatform.googleapis.com/v1/projects/${PROJECT}/locations/${WHERE}/endpoints/openapi"
OWN_HOST = "https://${HOST}/serving/v1"
WHOLE = "${BASE}/ai-gateway/v1"


def test_the_gaps_of_an_address_are_named_once() -> None:
    assert gaps_of(VERTEX) == ("WHERE", "PROJECT")
    assert gaps_of("https://api.example.org/v1") == ()


@pytest.mark.parametrize(
    ("address", "values", "filled"),
    [
        (AZURE, {"NAME": "acme-1"}, "https://acme-1.openai.azure.com/openai/v1"),
        (
            VERTEX,
            {"WHERE": "europe-west4", "PROJECT": "example.com:p-1"},
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/example.com:p-1/locations/europe-west4/"
            "endpoints/openapi",
        ),
        (OWN_HOST, {"HOST": "adb-1.2.azuredatabricks.net"}, "https://adb-1.2.azuredatabricks.net/serving/v1"),
        (WHOLE, {"BASE": "https://x.neon.tech/a"}, "https://x.neon.tech/a/ai-gateway/v1"),
    ],
)
def test_what_fits_fills_the_gaps(address: str, values: dict[str, str], filled: str) -> None:
    assert fill_gaps(address, values) == filled


MISFITS = (
    *("evil.example", "evil.example/", "evil.example/x?", "evil.example#", "a/b", "a@evil.example", "a:1@evil.example"),
    *("evil.example:443", "a\\b", "a b", "a\n", "", ".", "..", "%2e%2e", "a%2fb", "-a", "a-", "x" * 64, "ä", "${NAME}"),
)


@pytest.mark.parametrize("value", MISFITS)
def test_no_value_leads_to_another_host(value: str) -> None:
    filled = fill_gaps(AZURE, {"NAME": value})
    assert filled == AZURE
    assert not may_get_key(filled, "https://evil.example/openai/v1")
    assert misfit(AZURE, "NAME", value)


@pytest.mark.parametrize("value", ["a/b", "..", ".", "a?b", "a#b", "a@b", "a b", "a%2fb", "", "a\\b"])
def test_no_value_leads_out_of_its_place_in_the_path(value: str) -> None:
    assert "${PROJECT}" in fill_gaps(VERTEX, {"PROJECT": value})


@pytest.mark.parametrize("value", ["https://h", "h:1", "u@h", "h/x", "", "."])
def test_a_host_is_a_name_and_nothing_else(value: str) -> None:
    assert fill_gaps(OWN_HOST, {"HOST": value}) == OWN_HOST


@pytest.mark.parametrize("value", ["h", "https://u@h", "https://h?x", "ftp://h", "https://", "https://h/#"])
def test_a_whole_address_is_one_that_a_request_can_go_to(value: str) -> None:
    assert fill_gaps(WHOLE, {"BASE": value}) == WHOLE


@pytest.mark.parametrize(
    ("base", "path", "full"),
    [
        ("http://h:1/v1", "models", "http://h:1/v1/models"),
        ("http://h:1/v1/", "/props", "http://h:1/props"),
        ("http://h:1/api", "/props", "http://h:1/api/props"),
    ],
)
def test_a_path_from_the_root_leaves_the_version_out(base: str, path: str, full: str) -> None:
    assert behind(base, path) == full


PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
NOT_PUBLIC = [
    *("127.0.0.1", "0.0.0.0", "10.0.0.1", "172.20.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1"),
    *("240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:10.0.0.1"),
    *(
        "64:ff9b::a00:1",
        "64:ff9b:1::8.8.8.8",
        "2002:a00:1::",
        "2001:0:7f00:1::1",
        "2001:db8::1",
        "",
        "localhost",
        "8.8",
    ),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_the_internet_at_large_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_no_network_of_ours_is_public(address: str) -> None:
    assert not is_public(address)


ALLOWED = ["hooks.example.org", "Other.Example.org:8443", "*.wild.example", "8.8.8.8", "10.0.0.5", "localhost"]
PRIVATE = ["127.0.0.1:9000", "[::1]:9000", "inside.example", "10.0.0.9", "localhost:80", "*.wild.example"]


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.org/x?y=1",
        "https://HOOKS.example.org./x",
        "https://hooks.example.org:443/",
        "https://other.example.org:8443/",
        "https://a.wild.example/",
        "https://a.b.wild.example/",
        "https://8.8.8.8/",
        "http://127.0.0.1:9000/hook",
        "https://127.0.0.1:9000/hook",
        "http://[::1]:9000/",
        "http://localhost/",
        "https://inside.example/",
        "https://10.0.0.9/",
    ],
)
def test_who_was_named_may_be_called(url: str) -> None:
    assert fault_of_call(url, ALLOWED, PRIVATE) is None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "a whole address"),
        ("hooks.example.org/x", "a whole address"),
        ("ftp://hooks.example.org/", "a whole address"),
        ("file:///etc/passwd", "a whole address"),
        ("gopher://hooks.example.org/", "a whole address"),
        ("https:///x", "a whole address"),
        ("https://hooks.example.org/a b", "a whole address"),
        ("https://[", "is no address"),
        ("https://hooks.example.org:99999/", "is no address"),
        ("https://user:word@hooks.example.org/", "has a user or a password"),
        ("http://hooks.example.org/", "must begin with `https`"),
        ("http://inside.example:80/", "must begin with `https`"),
        ("https://elsewhere.example/", "leads to `elsewhere.example`, which `allowed_hosts` does not name"),
        ("https://hooks.example.org.evil.example/", "does not name"),
        ("https://xhooks.example.org/", "does not name"),
        ("https://hooks.example.org:8443/", "leads to `hooks.example.org:8443`"),
        ("https://other.example.org/", "does not name"),
        ("https://wild.example/", "does not name"),
        ("https://notwild.example/", "does not name"),
        ("https://10.0.0.5/", "is private, and `private_hosts` does not name it"),
        ("https://localhost/", "is private, and `private_hosts` does not name it"),
        ("http://127.0.0.1:9001/", "must begin with `https`"),
        ("https://127.0.0.1:9001/", "does not name"),
        ("https://[::ffff:127.0.0.1]/", "does not name"),
        ("https://169.254.169.254/latest/meta-data", "does not name"),
    ],
)
def test_nobody_else_is_called(url: str, says: str) -> None:
    found = fault_of_call(url, ALLOWED, PRIVATE)
    assert found is not None
    assert says in found


@pytest.mark.parametrize("url", ["http://10.0.0.9:80/", "http://inside.example:443/"])
def test_over_http_only_this_machine_is_called(url: str) -> None:
    found = fault_of_call(url, [], ["10.0.0.9:80", "inside.example:443"])
    assert found is not None
    assert "anybody on the way" in found


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("https://cdn.example/a.png?sig=1", None),
        ("https://cdn.example:443/a.png", None),
        ("https://93.184.216.34/a.png", None),
        ("http://cdn.example/a.png", "does not begin with `https://`"),
        ("https:///a.png", "does not begin with `https://`"),
        ("cdn.example/a.png", "does not begin with `https://`"),
        ("https://user@cdn.example/", "has a user or a password in it, which are not sent"),
        ("https://cdn.example:8443/", "names the port 8443; only the usual one of https is visited"),
        ("https://127.0.0.1/", "leads to this machine, or into a private network"),
        ("https://[::ffff:10.0.0.1]/", "leads to this machine, or into a private network"),
        ("https://localhost./", "leads to this machine, or into a private network"),
        ("https://cdn.example/\n", "is no address"),
        ("https://[::1/", "is no address"),
    ],
)
def test_what_somebody_else_names_is_visited_only_in_public(url: str, fault: str | None) -> None:
    assert fault_of_visit(url) == fault
