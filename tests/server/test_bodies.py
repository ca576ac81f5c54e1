"""A request body that does not come: its place is given up, and the client is told why."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

import pytest

from isthmus.errors import RequestRefused
from isthmus.server.http import SLOWEST_BODY, read_body
from isthmus.server.options import ServerOptions
from own_time import clock, run_in_own_time, turns
from serving import GatewayThread, running_gateway_server

CONFIG = '[server]\nport = 0\n[store]\nurl = "memory:"\n[log]\nlevel = "error"\n'
BODY = b'{"input": "Say hello"}'


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[GatewayThread]:
    monkeypatch.setattr("isthmus.server.serve.ServerOptions", partial(ServerOptions, body_patience=0.1))
    with running_gateway_server(CONFIG) as server:
        yield server


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions", "/v1/responses/input_tokens"])
@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"Content-Length: 22\r\n\r\n", id="nothing came"),
        pytest.param(b"Content-Length: 22\r\n\r\n" + BODY[:9], id="a part came"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n9\r\n" + BODY[:9] + b"\r\n", id="chunks without an end"),
    ],
)
def test_a_body_that_never_ends_is_a_408_and_the_connection_is_closed(
    impatient: GatewayThread, path: str, begun: bytes
) -> None:
    where = urlsplit(impatient.url)
    with socket.create_connection((where.hostname, where.port), timeout=60) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode() + begun)
        told = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = told.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in head.lower()
    error = json.loads(body)["error"]
    assert (error["code"], error["type"]) == ("request_timeout", "invalid_request_error")
    assert "request body" in error["message"]


def test_a_large_body_has_more_time_than_a_small_one() -> None:
    """It comes at twice the slowest pace, ten times as long as a small one may take."""
    piece = b"x" * (SLOWEST_BODY // 50)  # worth 20 ms, comes every 10 ms
    sent = 0

    async def receive() -> dict[str, object]:
        nonlocal sent
        await _ten_milliseconds()
        sent += 1
        return {"type": "http.request", "body": piece, "more_body": sent < 50}

    async def read() -> bytes:
        clock().stop_clock()
        return await read_body({"headers": []}, receive, 10**6, 0.05)

    assert len(run_in_own_time(read())) == 50 * len(piece)


def test_a_trickle_is_given_up() -> None:
    async def receive() -> dict[str, object]:
        await _ten_milliseconds()
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def read() -> bytes:
        clock().stop_clock()
        return await read_body({"headers": []}, receive, 10**6, 0.05)

    with pytest.raises(RequestRefused, match=r"stopped after [456] bytes") as refused:
        run_in_own_time(read())
    assert refused.value.code == "request_timeout"


async def _ten_milliseconds() -> None:
    clock().skip(0.01)
    await turns()
