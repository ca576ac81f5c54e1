"""No way out leads to this machine, its neighbours or a cloud's metadata; each is asked the same questions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from security.internet import PUBLIC, Internet, an_internet, redirect
from security.ways import WAYS, Way

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src" / "isthmus"
EACH: Final = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
PRIVATE: Final = (
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::"),
)
ODD_NUMBERS: Final = ("2130706433", "127.1", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "localhost", "a.localhost")


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Internet]:
    with an_internet(monkeypatch) as made:
        made.leads("public.example", PUBLIC)
        for name in ODD_NUMBERS:  # as the system takes them
            made.leads(name, "127.0.0.1")
        yield made


def host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


@EACH
async def test_a_public_host_is_reached(way: Way, internet: Internet) -> None:
    """Or all that follows would prove nothing."""
    server = await internet.serve()
    async with server:
        assert await way.go("https://public.example/there") == ""
    assert internet.connected == [PUBLIC]
    assert b" /there " in internet.requests[0]


@EACH
@pytest.mark.parametrize("address", PRIVATE)
async def test_an_address_of_ours_is_not_called(way: Way, internet: Internet, address: str) -> None:
    assert await way.go(f"https://{host(address)}/")
    assert internet.connected == []


@EACH
@pytest.mark.parametrize("name", ODD_NUMBERS)
async def test_another_spelling_of_this_machine_is_not_called(way: Way, internet: Internet, name: str) -> None:
    assert await way.go(f"https://{name}/")
    assert internet.connected == []


@EACH
@pytest.mark.parametrize("address", PRIVATE)
async def test_a_name_that_leads_there_is_not_called(way: Way, internet: Internet, address: str) -> None:
    internet.leads("inside.example", address)
    assert await way.go("https://inside.example/")
    assert internet.looked_up == ["inside.example"]
    assert internet.connected == []


@EACH
async def test_of_several_addresses_only_the_public_one_is_called(way: Way, internet: Internet) -> None:
    internet.leads("both.example", ["127.0.0.1", PUBLIC, "::1"])
    server = await internet.serve()
    async with server:
        assert await way.go("https://both.example/") == ""
    assert internet.connected == [PUBLIC]


@EACH
async def test_a_name_that_changes_its_mind_is_called_where_it_was_looked_at(way: Way, internet: Internet) -> None:
    """DNS rebinding: public when it is looked at, private a moment later."""
    internet.leads("rebinding.example", PUBLIC, "127.0.0.1", "169.254.169.254")
    server = await internet.serve()
    async with server:
        assert await way.go("https://rebinding.example/") == ""
        assert internet.connected == [PUBLIC]
        assert await way.go("https://rebinding.example/")
        assert await way.go("https://rebinding.example/")
    assert internet.connected == [PUBLIC]


@EACH
@pytest.mark.parametrize("port", [22, 80, 6379, 8080, 8443])
async def test_no_other_port_is_called(way: Way, internet: Internet, port: int) -> None:
    assert await way.go(f"https://public.example:{port}/")
    assert internet.connected == []


@EACH
@pytest.mark.parametrize(
    "url",
    [
        *("http://public.example/", "ftp://public.example/", "file:///etc/passwd", "gopher://public.example:70/_"),
        *(
            "ws://public.example/",
            "unix:///var/run/docker.sock",
            "data:text/plain,x",
            "//public.example/",
            "/etc/passwd",
        ),
        *("https://user:password@public.example/", "https:///x", "https://public.example /", "https://[::1/", ""),
    ],
)
async def test_nothing_but_https_is_spoken(way: Way, internet: Internet, url: str) -> None:
    if way.plain and url.startswith("http:"):
        url = url.replace("//public.example", "//public.example:443")  # not with another one's port
    assert await way.go(url)
    assert internet.connected == []


@EACH
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "to",
    [
        *("https://127.0.0.1/", "https://169.254.169.254/latest/meta-data", "https://[::1]/", "https://[fe80::1]/"),
        *("http://public.example/", "https://inside.example/", "https://public.example:6379/", "file:///etc/passwd"),
    ],
)
async def test_no_redirect_leads_there(way: Way, internet: Internet, status: int, to: str) -> None:
    if way.plain:
        to = to.replace("http://public.example", "http://127.0.0.1")
    internet.leads("inside.example", "10.0.0.1")
    internet.answer = redirect(to, status)
    server = await internet.serve()
    async with server:
        assert await way.go("https://public.example/")
    assert internet.connected == [PUBLIC]
    assert len(internet.requests) == 1


@pytest.mark.parametrize("way", [way for way in WAYS if way.redirects == "checked"], ids=lambda way: way.name)
async def test_a_redirect_to_a_public_place_is_followed_a_few_times(way: Way, internet: Internet) -> None:
    internet.leads("elsewhere.example", PUBLIC)

    def answer(head: bytes) -> bytes:
        if b"elsewhere.example" in head:
            return b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
        return redirect("https://elsewhere.example/")

    internet.answer = answer
    server = await internet.serve()
    async with server:
        assert await way.go("https://public.example/") == ""
        internet.requests.clear()
        internet.answer = redirect("https://public.example/")
        assert await way.go("https://public.example/")
    assert 1 < len(internet.requests) < 10


# ── none is forgotten ──────────────────────────────────────────────────────────────────────────────────

OPENS: Final = re.compile(
    r"\bWire\(|\bVisitor\(|\bEndpoint\(|ClientSession\(|AsyncClient\(|open_connection\(|create_connection\(|urlopen\("
)
"""What a way out is opened with."""
OPERATORS_OWN: Final = {
    "upstream/lean/dial.py": "the wire's own connections",
    "upstream/proxied/client.py": "the wire's connections to a proxy",
    "upstream/reach.py": "connects to a configured provider, and sends nothing",
    "upstream/http.py": "a configured provider",
    "upstream/asking.py": "a configured provider, asked about its models",
    "upstream/knock.py": "a configured provider that is tested",
    "upstream/notice.py": "the loopback alone, at the address of a provider's file (see `test_notice.py`)",
    "cli/doctor/gateways.py": "the gateway that an operator looks at",
    "upstream/remote.py": "the gateway that a `Bridge` was given",
    "upstream/probe/probe.py": "the address that an operator probes",
    "upstream/search/engine.py": "the search engine that `[search]` names (see `test_search_engines.py`)",
    "upstream/sign/open.py": "where a cloud gives the tokens that requests are signed with",
    "tools/mcp_session.py": "a server that the program of a `Bridge` names",
    "wiring_endpoints.py": "makes the endpoints of configured providers",
}
"""Who opens one where the operator alone says which address is called."""


def test_whoever_opens_a_way_out_is_in_the_table() -> None:
    rows = {module for way in WAYS for module in way.modules}
    opening = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if OPENS.search(ast.unparse(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert opening - rows - set(OPERATORS_OWN) == set(), "give it a row in `ways.py`, or say whose address it calls"
    assert (rows | set(OPERATORS_OWN)) - opening == set(), "these open nothing any more: take them off the list"


def test_every_way_is_told_where_people_look() -> None:
    page = (ROOT / "docs" / "concepts" / "ways-out.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| \*\*(\w[\w ]*)\*\* \|", page, re.MULTILINE))
    assert {way.name for way in WAYS} <= told
