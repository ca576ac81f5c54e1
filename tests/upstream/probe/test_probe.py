"""A probe's questions on the wire: the key, the addresses, and whatever comes back."""

from __future__ import annotations

import asyncio
import itertools
from urllib.parse import quote

import pytest

from isthmus.cli.probe_file import provider_file
from isthmus.errors import UpstreamFailed
from isthmus.testing import Handler, ScriptedUpstream, drop, error, reply, silence
from isthmus.upstream.probe.findings import Findings
from isthmus.upstream.probe.probe import Bounds, probe
from leaking import assert_silent, everything_of
from probed_servers import SERVERS, Server, ask, routes
from raw_server import raw_server


def test_a_key_is_sent_and_never_told() -> None:
    server = Server(key="sk-secret-1")
    found, heard = ask(server, key="sk-secret-1")
    assert found.tools
    text = provider_file(found, name="x", base_url="http://h/v1", key_env="X_API_KEY", day="2026-11-15")
    assert "sk-secret-1" not in text + repr(heard) + repr(found.notes)
    assert 'key_env = ["X_API_KEY"]' in text


def test_a_refused_key_is_said_without_repeating_it() -> None:
    with pytest.raises(UpstreamFailed) as caught:
        ask(Server(key="other"), key="sk-secret-1")
    assert "refuses the key" in caught.value.message
    assert "sk-secret-1" not in caught.value.message


def test_nobody_there_is_said_so() -> None:
    async def run() -> None:
        async with ScriptedUpstream(default=drop(), strict=False) as upstream:
            await probe(upstream.base_url, model="m")

    with pytest.raises(UpstreamFailed, match="cannot be reached"):
        asyncio.run(run())


def test_a_key_that_the_server_repeats_is_not_repeated() -> None:
    key = "sk-live-0Zq7Kd81mXw4Tn92"

    async def refused(words: str) -> str:
        async with ScriptedUpstream(default=error(500, words)) as upstream:
            with pytest.raises(UpstreamFailed) as failed:
                await probe(upstream.base_url, key=key, model="m")
        return everything_of(failed.value)

    for words in (f"no {key}", "x" * 240 + key, " " * 1150 + "x" * 20 + key, quote(key, safe="") + key.upper()):
        assert_silent([key], error=asyncio.run(refused(words)))


async def test_a_server_that_breaks_http_is_not_called_out_of_reach() -> None:
    said = b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 3\r\n\r\nabc"
    told = r"the endpoint breaks the rules of HTTP: .* `br`"
    with raw_server(said) as server, pytest.raises(UpstreamFailed, match=told):
        await probe(server.base_url)


async def test_an_answer_that_breaks_off_is_none() -> None:
    half = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{}"
    with raw_server(half) as server, pytest.raises(UpstreamFailed, match="the endpoint broke off its answer"):
        await probe(server.base_url)


async def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    async with ScriptedUpstream(default=silence()) as upstream:
        with pytest.raises(UpstreamFailed, match="the endpoint did not answer in time"):
            await probe(upstream.base_url, bounds=Bounds(answer_seconds=0.1))


async def test_informational_answers_without_an_end_are_given_up() -> None:
    endless = b"HTTP/1.1 100 Continue\r\n\r\n" * 100
    told = "more than 1000 informational answers"
    with raw_server(endless=endless) as server, pytest.raises(UpstreamFailed, match=told):
        await probe(server.base_url, bounds=Bounds(answer_seconds=20))


async def test_bytes_that_are_no_text_are_no_answer() -> None:
    async with ScriptedUpstream(default=reply(b'{"data": [{"id": "\xff"}]}')) as upstream:
        with pytest.raises(UpstreamFailed, match="names no models"):
            await probe(upstream.base_url)


def test_dead_connections_between_two_questions_are_replaced() -> None:
    """Servers close what idled just as the next question comes: that is no answer to it."""
    server, count = SERVERS["openai"], itertools.count(1)
    handlers = routes(server)
    chat = handlers["/v1/chat/completions"]

    async def run() -> Findings:
        flaky: Handler = lambda request: drop() if next(count) % 2 == 0 else chat  # noqa: E731
        routed = {**handlers, "/v1/chat/completions": flaky}
        async with ScriptedUpstream(default=error(404), routes=routed) as upstream:
            return await probe(upstream.base_url)

    assert asyncio.run(run()).notes == ask(server)[0].notes
