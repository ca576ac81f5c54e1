"""A client that goes while it waits for one answer: its connection says so, and nobody has to wait for it."""

from __future__ import annotations

import asyncio
import socket
from typing import Any
from urllib.parse import urlsplit

from isthmus.server.leaving import LEAVING, Leaving, leaving_of
from isthmus.testing import Gate, ScriptedUpstream, chat, chat_reply, reply
from serving import running_gateway_server
from talking import Talk

CONFIG = """
[server]
port = 0
[models]
demo = false
default = "up/m"
[providers.up]
uses = "openai-compatible"
base_url = "{}"
retries = 0
[store]
url = "memory:"
[log]
level = "error"
"""


def test_it_is_told_once_it_goes() -> None:
    leaving, told = Leaving(), []
    leaving.then(lambda: told.append("gone"))
    assert told == []
    leaving.tell()
    assert (told, leaving.gone) == (["gone"], True)


def test_who_asks_too_late_is_told_at_once() -> None:
    leaving, told = Leaving(), []
    leaving.tell()
    leaving.then(lambda: told.append("gone"))
    assert told == ["gone"]


def test_who_has_its_answer_is_not_told() -> None:
    leaving, told = Leaving(), []
    leaving.then(lambda: told.append("gone"))
    leaving.then(None)
    leaving.tell()
    assert told == []


def test_another_server_tells_nothing() -> None:
    scope: dict[str, Any] = {}
    assert leaving_of(scope) is None
    scope[LEAVING] = leaving = Leaving()
    assert leaving_of(scope) is leaving


def test_a_client_that_goes_stops_its_request_without_a_task_that_waits_for_that() -> None:
    gate, names = Gate(), list[str]()

    async def look() -> None:
        names.extend(str(task.get_coro()) for task in asyncio.all_tasks())

    with (
        ScriptedUpstream.running([reply(chat_reply("late"), after=gate), chat("next")]) as upstream,
        running_gateway_server(CONFIG.format(upstream.base_url)) as gateway,
    ):
        address = urlsplit(gateway.url)
        with socket.create_connection((address.hostname, address.port)) as client:
            body = b'{"input": "hi"}'
            head = f"POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            upstream.wait_received(1)
            gateway.do(look())
        upstream.requests[0].closed.wait()
        gate.open()
        assert Talk(gateway.url).create({"input": "again"})["output_text"] == "next"
    assert names
    assert not [name for name in names if "_Company" in name]
