"""aiohttp's client behind the wire: what it raises is told in words of ours, and none of it is loaded without need."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
import yarl

from isthmus.testing import ScriptedUpstream, reply
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.wire import Wire
from leaking import assert_silent, everything_of
from reaching_out import failure

LONG = "sk-live-0Zq7Kd81mXw4Tn92"
ODD = "f/uncti+on=Key==7Hs2&9Qx"


async def test_a_proxy_is_asked_for_the_whole_address() -> None:
    with ScriptedUpstream.running([reply({"via": "proxy"})]) as proxy:
        wire = Wire(Endpoint("mine", "http://provider.test/v1", query={"v": "1"}, proxy=proxy.url))
        incoming = await wire.send(b"{}")
        assert await incoming.whole() == b'{"via":"proxy"}'
        incoming.close()
        await wire.aclose()
        (request,) = proxy.requests
    assert request.headers["host"] == "provider.test"
    assert request.headers["accept-encoding"] == "gzip, deflate, zstd"


WORDS: dict[str, Callable[[str], Exception]] = {
    "a body that could not be written": lambda url: aiohttp.ClientOSError(
        None, f"Can not write request body for {url}"
    ),
    "a connection that was reset": lambda url: aiohttp.ClientOSError(104, f"Can not write request body for {url}"),
    "a connection that took too long": lambda url: aiohttp.ConnectionTimeoutError(f"Connection timeout to host {url}"),
    "an address that is none": aiohttp.InvalidURL,
    "words that nobody knows": lambda url: aiohttp.ClientConnectionError(f"what is {url}?"),
}
"""What the HTTP library says of the whole address, in its own types."""


@pytest.mark.parametrize("fail", WORDS.values(), ids=list(WORDS))
async def test_the_librarys_words_are_told_without_the_address(
    monkeypatch: pytest.MonkeyPatch, fail: Callable[[str], Exception]
) -> None:
    """These depend on the moment at which a connection breaks, so the library is made to say them."""

    async def refuse(self: aiohttp.ClientSession, method: str, url: str, **options: Any) -> None:
        raise fail(f"{yarl.URL(url).extend_query(options.get('params') or {})}")

    monkeypatch.setattr(aiohttp.ClientSession, "_request", refuse)
    place = f"http://joe:{LONG}@127.0.0.1:1/v1?k={LONG}"
    told = await failure(Endpoint("mine", place, query={"code": ODD}, proxy="http://127.0.0.1:1"))
    assert_silent([ODD, LONG], error=everything_of(told))


async def test_a_process_without_a_free_descriptor_does_not_blame_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: aiohttp.ClientSession, *_: Any, **__: Any) -> None:
        raise aiohttp.ClientOSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(aiohttp.ClientSession, "_request", refuse)
    told = await failure(Endpoint("mine", "http://provider.test/v1", proxy="http://127.0.0.1:1"))
    assert (told.code, told.meaning.eject, "`ulimit -n`" in told.message) == ("upstream_busy", False, True)


def test_the_library_is_loaded_with_the_first_way_through_a_proxy_and_not_before() -> None:
    code = """
import sys
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.wire import Wire
Wire(Endpoint("mine", "https://provider.test/v1", trust_env=False))
print("aiohttp" in sys.modules, "yarl" in sys.modules)
Wire(Endpoint("mine", "https://provider.test/v1", proxy="http://127.0.0.1:1"))
print("aiohttp" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == "False False\nTrue\n"
