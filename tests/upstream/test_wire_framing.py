"""Answers that break HTTP, as bytes on a socket: each ends at once, and is called what it is."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest

from isthmus import Bridge
from isthmus.bridge.deltas import Text
from isthmus.client.retry import NO_RETRY
from isthmus.errors import UpstreamFailed
from isthmus.testing.fold import plan_for
from isthmus.testing.replies import chat_reply
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.http import HttpBackend
from isthmus.upstream.wire import Wire
from one_provider import HELLO, one_provider
from own_time import turns
from raw_server import raw_server
from reaching_out import failure

pytestmark = pytest.mark.usefixtures("either_client")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
FAULTS: dict[str, tuple[bytes, str]] = {
    "br": (HEAD + b"content-encoding: br\r\ncontent-length: 3\r\n\r\nabc", "compressed as `br`"),
    "an unknown encoding": (HEAD + b"content-encoding: snappy\r\ncontent-length: 3\r\n\r\nabc", "as `snappy`"),
    "broken gzip": (HEAD + b"content-encoding: gzip\r\ncontent-length: 20\r\n\r\n" + b"x" * 20, "be unpacked"),
    "a broken chunk": (CHUNKED + b"zz\r\nabc\r\n", "the chunks of its answer are broken"),
    "no length": (HEAD + b"content-length: x\r\n\r\n{}", "its `content-length` is wrong"),
    "two lengths": (HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}", "its `content-length` is wrong"),
    "too long": (HEAD + b"content-length: 2\r\n\r\n{} and more", "longer than its `content-length`"),
    "a huge header": (HEAD + b"x: " + b"y" * 20_000 + b"\r\n\r\n", "headers are too long"),
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "is not HTTP"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_an_answer_that_breaks_http_is_called_so_not_out_of_reach(case: str) -> None:
    said, words = FAULTS[case]
    with raw_server(said) as server, one_provider(server.base_url, "retries = 0") as (talk, _):
        told = talk.post("/v1/responses", HELLO).json["error"]
    assert told["code"] == "upstream_malformed"
    assert told["message"].startswith("provider `main` breaks the rules of HTTP: ")
    assert words in told["message"]
    assert "cannot be reached" not in told["message"]


async def test_a_chunk_that_breaks_inside_a_stream_ends_it_at_once() -> None:
    """The HTTP library tells nobody: the reader would wait for all of `timeouts.idle`."""
    gate = threading.Event()
    event = b'data: {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}\n\n'
    first = CHUNKED + b"%x\r\n%b\r\n" % (len(event), event)
    with raw_server(first, gate, b"zz\r\nabc\r\n", threading.Event()) as server:
        backend = HttpBackend(Endpoint("mine", server.base_url, trust_env=False, patience=Patience(idle=20)))
        heard: list[Any] = []
        with pytest.raises(UpstreamFailed) as failed:
            async with backend.send(plan_for(), {}) as answer:
                async for deltas in answer:
                    heard += deltas
                    gate.set()
        await backend.aclose()
    assert Text("Hel") in heard
    assert (failed.value.code, "the chunks of its answer are broken" in failed.value.message) == (
        "upstream_malformed",
        True,
    )


async def test_informational_answers_without_an_end_are_given_up() -> None:
    with raw_server(endless=b"HTTP/1.1 100 Continue\r\n\r\n" * 100) as server:
        endpoint = Endpoint("mine", server.base_url, trust_env=False, patience=Patience(first_byte=20))
        told = await failure(endpoint)
    assert (told.code, "more than 1000 informational answers" in told.message) == ("upstream_malformed", True)


async def test_a_few_informational_answers_are_fine() -> None:
    body = msgspec.json.encode(chat_reply("after all"))
    early = b"HTTP/1.1 102 Processing\r\n\r\n" * 200 + b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    with raw_server(early, HEAD + b"content-length: %d\r\n\r\n%b" % (len(body), body)) as server:
        place = {"base_url": server.base_url, "api_key": "k"}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            assert (await bridge.chat("deepseek/m", "hi", stream=False)).text == "after all"


DONE = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize("end", [b"", DONE], ids=["in the middle", "behind `[DONE]`"])
async def test_what_came_before_a_stream_broke_off_is_told_to_a_slow_reader_too(end: bytes, either_client: str) -> None:
    """It lies in the buffer when the connection is gone; the HTTP library would only give the error."""
    event = b'data: {"choices": [{"index": 0, "delta": {"content": "%b"}}]}\n\n'
    said = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in [event % b"Hel", event % b"lo", end] if each)
    gate = threading.Event()
    with raw_server(CHUNKED, gate, said) as server:
        wire = Wire(Endpoint("mine", server.base_url, trust_env=False))
        incoming = await wire.send(b"{}")
        gate.set()
        answer: Any = incoming._answer
        while (answer.error if either_client == "lean" else answer._content.exception()) is None:
            await turns(1)
        heard = await incoming.read()
        assert heard == (event % b"Hel") + (event % b"lo") + end
        with pytest.raises(UpstreamFailed, match="broke off its answer"):
            await incoming.read()
        incoming.close()
        await wire.aclose()
