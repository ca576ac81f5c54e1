"""The pool: which connection is used, how long one is kept, and what is written once."""

from __future__ import annotations

import asyncio

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.upstream.endpoint import Elsewhere, Endpoint
from isthmus.upstream.lean.client import LONGEST_IDLE, LeanClient
from isthmus.upstream.wire import Wire
from own_time import clock, run_in_own_time
from upstream.talking_lines import talking
from upstream.test_wire_answers import OK, ask, endpoint


def test_a_connection_that_nobody_uses_is_closed_after_some_seconds() -> None:
    async def main() -> None:
        async with talking(OK, OK, OK) as server:
            wire = Wire(endpoint(server))
            await ask(wire)
            clock().skip(LONGEST_IDLE - 1)
            assert await ask(wire) == (200, b"{}")
            clock().skip(LONGEST_IDLE - 1)
            await asyncio.sleep(0)
            assert not server.closed[0].is_set()
            clock().skip(2)
            await server.closed[0].wait()
            assert await ask(wire) == (200, b"{}")
            await wire.aclose()
            assert server.used == [1, 1, 2]

    run_in_own_time(main())


async def test_the_one_that_was_used_last_is_used_first() -> None:
    held = [OK[:-1], b"}"]
    async with talking(held, held, OK, OK) as server:
        wire = Wire(endpoint(server))
        first, second = await wire.send(b"{}"), await wire.send(b"{}")
        for each in (first, second):
            await each.whole()
            each.close()
        assert [await ask(wire) for _ in range(2)] == [(200, b"{}")] * 2
        await wire.aclose()
        assert server.used[2:] == [server.used[1]] * 2


async def test_addresses_of_one_house_share_connections_and_not_headers() -> None:
    async with talking(OK, OK) as server:
        other = Elsewhere(f"{server.url}/other", {"x-key": "b"})
        wire = Wire(Endpoint("mine", server.url, {"x-key": "a"}, trust_env=False, others={"responses": other}))
        for dialect in ("", "responses"):
            incoming = await wire.send(b"{}", dialect=dialect)
            await incoming.whole()
            incoming.close()
        await wire.aclose()
        assert server.used == [1, 1]
        (_, one), (_, two) = server.asked
    assert (b"POST /v1 " in one, b"x-key: a" in one) == (True, True)
    assert (b"POST /v1/other " in two, b"x-key: b" in two, b"x-key: a" in two) == (True, True, False)


async def test_only_heads_of_its_own_addresses_are_remembered() -> None:
    async with talking(OK, OK, OK) as server:
        wire = Wire(endpoint(server))
        for url in ("", f"{server.url}/a", f"{server.url}/b"):
            incoming = await wire.send(b"{}", url=url)
            await incoming.whole()
            incoming.close()
        client = wire._client
        assert isinstance(client, LeanClient)
        assert [url for _, url, _ in client._heads] == [server.url]
        assert server.used == [1, 1, 1]
        await wire.aclose()


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\0"])
async def test_a_header_that_holds_more_than_one_line_is_not_sent(value: str) -> None:
    async with talking(OK) as server:
        wire = Wire(endpoint(server))
        with pytest.raises(UpstreamFailed, match="its header `x-word` holds what no header may hold"):
            await wire.send(b"{}", headers={"x-word": value})
        await wire.aclose()
        assert server.connections == 0


async def test_a_server_that_is_gone_before_it_is_asked_is_told_so() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        wire = Wire(Endpoint("mine", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", trust_env=False))
        for _ in range(3):
            with pytest.raises(UpstreamFailed) as failed:
                await ask(wire)
            assert failed.value.code == "upstream_unreachable"
        await wire.aclose()
