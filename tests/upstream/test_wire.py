"""The way to a provider, from the configuration to the bytes: connections, queues, proxies, certificates, framing."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from isthmus import Bridge
from isthmus.client.retry import NO_RETRY
from isthmus.errors import IsthmusError, UpstreamFailed
from isthmus.testing import Gate, ScriptedUpstream, Step, chat, drop, error, reply, silence
from isthmus.testing.replies import chat_reply
from isthmus.testing.script import CUT, Answer
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.probe.probe import probe
from isthmus.upstream.wire import Wire
from one_provider import HELLO, one_provider, say
from reaching_out import failure

STREAMED = {**HELLO, "stream": True}
pytestmark = pytest.mark.usefixtures("either_client")


@pytest.mark.parametrize("drops", [[], [drop()]], ids=["at once", "on a second connection"])
def test_a_large_body_arrives_whole_and_with_its_length(drops: list[Step]) -> None:
    """Some servers take no chunks: it goes out in pieces, and still says how long it is."""
    words = "many é words, " * 800_000  # more than is written, or encoded, in one go
    with ScriptedUpstream.running([chat("a"), *drops, chat("b")]) as upstream:
        with one_provider(upstream, "retries = 0") as (talk, _):
            say(talk)
            assert talk.post("/v1/responses", {"input": words}).json["output_text"] == "b"
        request = upstream.requests[-1]
    assert msgspec.json.decode(request.body)["messages"][-1]["content"] == words
    assert "transfer-encoding" not in request.headers
    assert int(request.headers["content-length"]) > 11_200_000


# ── dead connections ───────────────────────────────────────────────────────────────────────────────


def _held(gate: Gate) -> Step:
    return reply(chat_reply("held"), after=gate)


@pytest.mark.parametrize("body", [HELLO, STREAMED], ids=["whole", "streamed"])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_kept_connection_that_is_dead_is_replaced_at_once(reset: bool, body: dict[str, Any]) -> None:
    """The server closes a connection that idled just as the next request comes: no answer, not even a byte."""
    with ScriptedUpstream.running([chat("a"), drop(reset=reset), chat("b")]) as upstream:
        with one_provider(upstream, "retries = 0") as (talk, gateway):
            say(talk)
            with gateway.standing_still():  # no backoff: nothing here needs time
                if body is HELLO:
                    assert say(talk) == "b"
                else:
                    with talk.streaming("/v1/responses", body) as events:
                        assert list(events)[-1]["response"]["output_text"] == "b"
        first, again, replaced = (request.connection for request in upstream.requests)
        assert first == again != replaced


async def test_however_many_kept_connections_are_dead_one_attempt_is_enough() -> None:
    gate, kept = Gate(), 3
    with ScriptedUpstream.running([*[_held(gate)] * kept, *[drop()] * kept, chat("at last")]) as upstream:
        place = {"base_url": upstream.base_url, "api_key": "k"}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            asked = [asyncio.create_task(bridge.chat("deepseek/m", "hi")) for _ in range(kept)]
            await upstream.received(kept)
            gate.open()
            await asyncio.gather(*asked)
            answer = await bridge.chat("deepseek/m", "hi")
        assert (answer.text, answer.usage.requests) == ("at last", 1)
        assert upstream.connections == kept + 1


def test_a_new_connection_that_is_dropped_is_a_failure() -> None:
    with ScriptedUpstream.running([chat("a"), drop(), drop()]) as upstream:
        with one_provider(upstream, "retries = 0") as (talk, _):
            say(talk)
            answer = talk.post("/v1/responses", HELLO)
        assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")
        assert len(upstream.requests) == 3


def test_a_connection_that_the_server_closed_while_it_idled_is_not_used() -> None:
    with ScriptedUpstream.running([Answer((b"{}",), framing="close"), chat("b")]) as upstream:
        with one_provider(upstream, "retries = 0") as (talk, _):
            talk.post("/v1/responses", HELLO)
            assert say(talk) == "b"
        assert len(upstream.requests) == 2


async def test_the_library_streams_on_after_a_dead_connection_without_an_attempt() -> None:
    with ScriptedUpstream.running([chat("a"), drop(), chat("b")]) as upstream:
        place = {"base_url": upstream.base_url, "api_key": "k"}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            assert (await bridge.chat("deepseek/m", "hi")).text == "a"
            second = await bridge.chat("deepseek/m", "hi")
            assert (second.text, second.usage.requests) == ("b", 1)


async def test_half_a_head_on_a_kept_connection_is_an_answer_and_not_asked_for_again() -> None:
    """Something came: the server is there, and has begun to work."""
    ok = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    counted: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for said in (ok, b"HTTP/1.1 200 OK\r\nx-begun: yes\r\n"):
            head = await reader.readuntil(b"\r\n\r\n")
            counted.append(head)
            await reader.readexactly(2)
            writer.write(said)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        wire = Wire(Endpoint("mine", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", trust_env=False))
        try:
            first = await wire.send(b"{}")
            assert await first.whole() == b"{}"
            first.close()
            with pytest.raises(UpstreamFailed) as failed:
                await wire.send(b"{}")
        finally:
            await wire.aclose()
    assert failed.value.code == "upstream_unreachable"
    assert len(counted) == 2


async def test_no_cookie_of_one_request_goes_along_with_another() -> None:
    answer = reply(chat_reply("hi"), headers={"Set-Cookie": "session=joe; Path=/"})
    with ScriptedUpstream.running([answer, answer]) as upstream:
        wire = Wire(Endpoint("mine", upstream.base_url.replace("127.0.0.1", "localhost"), trust_env=False))
        for _ in range(2):
            (await wire.send(b"{}")).close()
        await wire.aclose()
    assert ["cookie" in request.headers for request in upstream.requests] == [False, False]


# ── proxies and certificates ───────────────────────────────────────────────────────────────────────


def test_direct_means_that_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with ScriptedUpstream.running([chat("straight")]) as upstream, ScriptedUpstream.running([chat("round")]) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        with one_provider(upstream, 'proxy = "direct"') as (talk, _):
            assert say(talk) == "straight"
        with one_provider(upstream) as (talk, _):
            assert say(talk) == "round"
        assert (len(upstream.requests), len(proxy.requests)) == (1, 1)


async def test_a_kind_of_proxy_that_is_not_spoken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "socks5://joe:hush@127.0.0.1:9")
    told = await failure(Endpoint("mine", "http://provider.test/v1"))
    assert told.code == "upstream_unreachable"
    assert "`socks5`" in told.message
    assert "hush" not in told.message


@pytest.mark.parametrize("client", ["provider", "gateway", "probe"])
async def test_every_client_of_ours_goes_the_way_that_the_environment_names(
    client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with ScriptedUpstream.running(default=error(418, "no coffee")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        with pytest.raises(IsthmusError):
            if client == "provider":
                raise await failure(Endpoint("mine", "http://provider.test/v1"))
            if client == "gateway":
                async with Bridge.remote("http://gateway.test", retry=NO_RETRY) as bridge:
                    await bridge.models()
            await probe("http://endpoint.test/v1", model="m")
        assert {request.headers["host"] for request in proxy.requests} <= {
            "provider.test",
            "gateway.test",
            "endpoint.test",
        }
        assert proxy.requests


async def test_a_place_is_given_back_however_an_answer_ends() -> None:
    half = Answer((b"{", CUT), framing="chunked")
    odd = reply({}, headers={"content-encoding": "x"})
    script: list[Step] = [reply({}), reply({}), error(500), drop(), drop(), half, odd]
    with ScriptedUpstream.running(script) as upstream:
        wire = Wire(Endpoint("mine", upstream.base_url, trust_env=False, max_connections=1, max_queued=0))
        for number in range(len(script) - 1):  # the first `drop` is of a kept connection
            with suppress(UpstreamFailed):
                incoming = await wire.send(b"{}")
                assert wire.queue == 1
                try:
                    if number:  # the first is left unread
                        await incoming.whole()
                finally:
                    incoming.close()
                    incoming.close()  # nothing is given back twice
            assert wire.queue == 0
        first = await wire._take_place("")
        assert wire.queue == 1
        first.release()
        await wire.aclose()


async def test_who_leaves_while_it_waits_for_the_head_gives_its_place_back() -> None:
    with ScriptedUpstream.running([silence()]) as upstream:
        wire = Wire(Endpoint("mine", upstream.base_url, trust_env=False, max_connections=1))
        asking = asyncio.create_task(wire.send(b"{}"))
        request = await upstream.received(1)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert wire.queue == 0
        await request.closed.waited(60)
        await wire.aclose()


@contextmanager
def self_signed() -> Iterator[tuple[str, list[str]]]:
    """A TLS server that signed its own certificate, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            body = msgspec.json.encode(chat_reply("over TLS"))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(HTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that does not trust us hangs up: that is what is tested

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).parent / "self_signed.pem")
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.server_address[1]}/v1", asked
        server.shutdown()
        thread.join(60)


def test_a_certificate_that_nobody_vouches_for_is_refused_unless_told_otherwise() -> None:
    with self_signed() as (address, asked):
        with one_provider(address, "retries = 0") as (talk, _):
            answer = talk.post("/v1/responses", HELLO)
            assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")
            assert "certificate" in answer.error["message"]
            assert asked == []
        with one_provider(address, "retries = 0\nverify_tls = false") as (talk, _):
            assert say(talk) == "over TLS"
        assert len(asked) == 1


# ── limits ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_whole_reply_that_never_ends_is_given_up() -> None:
    piece = b" " * 1_000_000
    with ScriptedUpstream.running([reply(b"")], strict=False) as upstream:
        upstream._script.clear()
        endless = Answer(
            (b'{"choices": [', *[piece] * 60), headers={"content-type": "application/json"}, framing="chunked"
        )
        upstream.push(endless)
        with one_provider(upstream) as (talk, _):
            told = talk.post("/v1/responses", HELLO).json
        assert (told["status"], told["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
        [said] = [each for each in told["isthmus"]["diagnostics"] if each["code"] == "bridge.response.answer_cut"]
        assert "longer than 16,000,000 bytes, the limit `limits.max_answer`" in said["message"]
        assert len(upstream.requests) == 1


async def test_somebody_who_asks_for_all_of_it_is_told_when_it_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.upstream.wire.MAX_REPLY", 1000)
    with ScriptedUpstream.running([reply({"word": "x" * 2000})]) as upstream:
        wire = Wire(Endpoint("mine", upstream.base_url, trust_env=False))
        incoming = await wire.send(b"{}")
        try:
            with pytest.raises(UpstreamFailed, match="sent more than 1000 bytes"):
                await incoming.whole()
        finally:
            incoming.close()
            await wire.aclose()
