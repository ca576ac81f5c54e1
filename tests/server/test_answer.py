"""What every answer says, whichever way it goes out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus.server.answer import Answer
from isthmus.server.exchange import Exchange
from isthmus.server.http import send_bytes
from one_cycle import Scene

RATES = {"x-ratelimit-limit-requests": "10", "x-ratelimit-remaining-requests": "9"}


class Sent:
    def __init__(self) -> None:
        self.messages: list[Any] = []

    async def __call__(self, message: Any) -> None:
        self.messages.append(message)


def exchange_with(*, anthropic: bool = False, client_id: str = "") -> Exchange:
    exchange = Exchange("POST", "/v1/responses")
    exchange.anthropic, exchange.client_id = anthropic, client_id
    return exchange


def heads(exchange: Exchange, more: Any = ()) -> tuple[list[bytes], list[bytes]]:
    """The names of the headers of the same answer, over ASGI and on a connection of ours."""

    async def play() -> tuple[list[bytes], list[bytes]]:
        sent, scene = Sent(), Scene()
        over_asgi, ours = Answer(sent, exchange), Answer(scene.cycle.send, exchange, scene.cycle)
        for answer in (over_asgi, ours):
            answer.more = list(more)
            await send_bytes(answer, 200, b"hi", headers=RATES)
        start, body = sent.messages
        assert (start["status"], body["body"]) == (200, b"hi")
        head, _, told = scene.told.partition(b"\r\n\r\n")
        assert told == b"hi"
        lines = head.split(b"\r\n")[1:]
        return [name for name, _ in start["headers"]], [line.partition(b":")[0] for line in lines]

    return asyncio.run(play())


@pytest.mark.parametrize("anthropic", [False, True])
@pytest.mark.parametrize("client_id", ["", "mine"])
def test_both_ways_say_the_same_in_the_same_order(anthropic: bool, client_id: str) -> None:
    exchange = exchange_with(anthropic=anthropic, client_id=client_id)
    over_asgi, ours = heads(exchange, [(b"vary", b"Origin")])
    assert over_asgi == ours
    assert over_asgi[:6] == [
        *(b"content-type", b"content-length", b"x-ratelimit-limit-requests", b"x-ratelimit-remaining-requests"),
        *(b"x-request-id", b"openai-processing-ms"),
    ]
    assert (b"x-client-request-id" in ours, b"request-id" in ours) == (bool(client_id), anthropic)
    assert any(name.startswith(b"anthropic-ratelimit-") for name in ours) is anthropic
    assert exchange.status == 200


def test_a_refused_handshake_is_told_in_its_own_messages() -> None:
    async def play() -> list[str]:
        sent = Sent()
        await send_bytes(Answer(sent, exchange_with(), before="websocket."), 403, b"no")
        return [message["type"] for message in sent.messages]

    assert asyncio.run(play()) == ["websocket.http.response.start", "websocket.http.response.body"]
