"""A connection to one of a name's addresses: which is tried, how long, whom TLS trusts, and what it shows."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.guard import Guard
from isthmus.upstream.lean import dial
from isthmus.upstream.lean.dial import Dialer, connect_first, make_context
from isthmus.upstream.wire import Wire
from own_time import turns
from upstream.talking_lines import CLOSE, talking
from upstream.test_wire_answers import OK, ask

CERTIFICATE = Path(__file__).parents[1] / "self_signed.pem"


def serving(seen: dict[str, Any] | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    context.set_alpn_protocols(["h2", "http/1.1"])
    if seen is not None:
        context.sni_callback = lambda _, name, __: seen.update(name=name)
    return context


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an operator has their own authority trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    monkeypatch.setattr(dial, "_contexts", {})


def leading(*addresses: str) -> Callable[[str, int], Any]:
    async def lookup(host: str, port: int) -> list[str]:
        return list(addresses)

    return lookup


def named(url: str, *addresses: str, **more: Any) -> Endpoint:
    """An endpoint whose name leads to these addresses."""
    return Endpoint("mine", url, trust_env=False, allows=lambda _: True, lookup=leading(*addresses), **more)


@pytest.mark.usefixtures("trusting")
async def test_an_authority_that_the_environment_names_is_trusted_and_shown_the_name_and_http_1_1() -> None:
    seen: dict[str, Any] = {}
    async with talking(OK, OK, tls=serving(seen)) as server:
        wire = Wire(named(f"https://localhost:{server.port}/v1", "127.0.0.1"))
        assert [await ask(wire) for _ in range(2)] == [(200, b"{}")] * 2
        assert seen["name"] == "localhost"
        assert server.talk[0].get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
        assert server.used == [1, 1]
        await wire.aclose()


@pytest.mark.usefixtures("trusting")
def test_the_loop_that_the_server_runs_on_does_the_same() -> None:
    uvloop = pytest.importorskip("uvloop", reason="there is none on this system")
    large = b"x" * 3_000_000

    async def main() -> None:
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(large), large)
        for tls in (None, serving()):
            async with talking(OK, answer, CLOSE, OK, tls=tls) as server:
                wire = Wire(named(f"{server.scheme}://localhost:{server.port}/v1", "127.0.0.2", "127.0.0.1"))
                assert await ask(wire) == (200, b"{}")
                incoming = await wire.send(large)
                assert await incoming.whole() == large
                incoming.close()
                assert await ask(wire) == (200, b"{}")  # its connection was dead
                await wire.aclose()
                assert server.used == [1, 1, 1, 2]
                assert server.asked[1][1].endswith(large)

    uvloop.run(main())


@pytest.mark.usefixtures("trusting")
async def test_a_certificate_of_somebody_else_is_refused() -> None:
    async with talking(OK, tls=serving()) as server:
        wire = Wire(named(f"https://other.example:{server.port}/v1", "127.0.0.1"))
        with pytest.raises(UpstreamFailed, match=r"its TLS certificate is not trusted .*other\.example"):
            await ask(wire)
        await wire.aclose()
        assert server.asked == []


async def test_a_certificate_that_nobody_vouches_for_is_refused_unless_told_otherwise() -> None:
    async with talking(OK, tls=serving()) as server:
        wire = Wire(Endpoint("mine", server.url, trust_env=False))
        with pytest.raises(UpstreamFailed, match="its TLS certificate is not trusted"):
            await ask(wire)
        await wire.aclose()
        assert server.asked == []
        careless = Wire(Endpoint("mine", server.url, trust_env=False, verify_tls=False))
        assert await ask(careless) == (200, b"{}")
        await careless.aclose()


async def test_who_does_not_speak_tls_is_told_so() -> None:
    async with talking(OK) as server:
        wire = Wire(Endpoint("mine", server.url.replace("http:", "https:"), trust_env=False))
        asking = asyncio.create_task(ask(wire))
        while not server.talk:
            await turns(1)
        server.talk[0].write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(UpstreamFailed, match=r"TLS failed at `127\.0\.0\.1:\d+`"):
            await asking
        await wire.aclose()


def test_trust_is_strict_unless_told_otherwise() -> None:
    strict, careless = make_context(True), make_context(False)
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert (careless.verify_mode, careless.check_hostname) == (ssl.CERT_NONE, False)
    assert min(strict.minimum_version, careless.minimum_version) >= ssl.TLSVersion.TLSv1_2


async def test_an_address_that_refuses_is_followed_by_the_next() -> None:
    async with talking(OK) as server:
        wire = Wire(named(f"http://several.example:{server.port}/v1", "127.0.0.2", "127.0.0.3", "127.0.0.1"))
        assert await ask(wire) == (200, b"{}")
        await wire.aclose()
        assert b"host: several.example" in server.asked[0][1]


async def test_an_address_that_does_not_answer_does_not_hold_the_next_one_up(monkeypatch: pytest.MonkeyPatch) -> None:
    connect, left = dial._connect, asyncio.Event()

    async def hang(address: str, port: int) -> socket.socket:
        if address != "127.0.0.2":
            return await connect(address, port)
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            left.set()

    monkeypatch.setattr(dial, "_connect", hang)
    monkeypatch.setattr(dial, "_HEAD_START", 0.0)
    async with talking(OK) as server:
        (await connect_first(["127.0.0.2", "127.0.0.1"], server.port)).close()
        await left.wait()  # and nobody goes on trying


async def test_where_all_refuse_it_is_told_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    wire = Wire(named(f"http://several.example:{port}/v1", "127.0.0.2", "127.0.0.1"))
    with pytest.raises(UpstreamFailed, match=rf"Connection refused at `several\.example:{port}`"):
        await ask(wire)
    await wire.aclose()


def test_both_kinds_of_addresses_take_turns() -> None:
    assert dial._in_turn(["::1", "::2", "::3", "1.1.1.1", "2.2.2.2"]) == ["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"]
    assert dial._in_turn(["1.1.1.1", "2.2.2.2"]) == ["1.1.1.1", "2.2.2.2"]


def test_several_failures_are_told_together() -> None:
    told = dial._told_together([ConnectionRefusedError(111, "x"), OSError(113, "y"), OSError(111, "z")])
    assert str(told) == "[Errno 111], [Errno 113]"


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
async def test_an_ipv6_address_is_called() -> None:
    try:
        async with talking(OK, host="::1") as server:
            wire = Wire(Endpoint("mine", f"http://[::1]:{server.port}/v1", trust_env=False))
            assert await ask(wire) == (200, b"{}")
            await wire.aclose()
            assert b"\r\nhost: [::1]:%d\r\n" % server.port in server.asked[0][1]
    except OSError:
        pytest.skip("this machine has no IPv6")


async def test_a_name_that_is_not_found_in_time_is_no_connection() -> None:
    async def lookup(host: str, port: int) -> list[str]:
        await asyncio.get_running_loop().create_future()
        return []

    class Hasty:
        connect, first_byte, idle = 0.05, 60.0, 60.0

    endpoint = Endpoint("mine", "http://slow.example/", trust_env=False, lookup=lookup, patience=Hasty())
    wire = Wire(endpoint)
    with pytest.raises(UpstreamFailed, match=r"cannot be reached: no connection within 0\.05 s"):
        await ask(wire)
    await wire.aclose()


async def test_a_crowd_asks_for_a_name_once_and_it_is_asked_for_again_where_it_led_nowhere() -> None:
    asked: list[str] = []

    async def lookup(host: str, port: int) -> list[str]:
        asked.append(host)
        await asyncio.sleep(0)
        return ["127.0.0.1"]

    dialer = Dialer(Guard(None, lookup), verify_tls=True)
    assert await asyncio.gather(*(dialer._find("a.example", 80) for _ in range(50))) == [["127.0.0.1"]] * 50
    await dialer._find("a.example", 80)
    assert asked == ["a.example"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            await dialer.open(lambda: pytest.fail("nobody is there"), "http", "b.example", port, 5.0)
    assert asked == ["a.example", "b.example", "b.example"]
