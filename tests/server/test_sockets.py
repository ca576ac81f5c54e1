"""The way in: everything that is checked of a request is checked of a handshake, before the 101."""

from __future__ import annotations

import gc
import json
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from flowing import PLAIN, Flow
from isthmus.server.app import App
from isthmus.testing import Gate, chat, chat_chunks, stream
from raw_http import connect, parse, read_to_end, send_raw
from serving import running_gateway_server
from socketing import open_socket
from waiting import until

CONFIG = '[server]\nport = 0\n{}\n[store]\nurl = "memory:"\n[log]\nlevel = "error"\n'
CERTIFICATE = Path(__file__).parents[1] / "upstream" / "self_signed.pem"
HANDSHAKE = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
ASKED = b"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\n" + HANDSHAKE
HI = {"model": PLAIN, "input": "hi", "store": False}


def refused(url: str, path: str = "/v1/responses", **headers: str) -> tuple[int, str]:
    """Status and code of a handshake that is refused, in the usual shape."""
    with pytest.raises(InvalidStatus) as caught, open_socket(url, path, headers=headers):
        pass
    answer = caught.value.response
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"].startswith("req_")
    return answer.status_code, json.loads(answer.body)["error"]["code"]


def test_a_key_is_asked_for(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra='[server]\napi_keys = ["sk-one"]')
    assert refused(flow.server.url) == (401, "missing_api_key")
    assert refused(flow.server.url, authorization="Bearer sk-two") == (401, "invalid_api_key")
    flow.script(chat("ok"))
    with open_socket(flow.server.url, headers={"authorization": "Bearer sk-one"}) as talk:
        assert talk.answer(HI)["status"] == "completed"


def test_a_foreign_page_and_a_foreign_name_are_kept_out(flow: Flow) -> None:
    assert refused(flow.server.url, origin="https://evil.example") == (403, "foreign_origin")
    answer = send_raw(flow.server.url, b"GET /v1/responses HTTP/1.1\r\nHost: evil.example\r\n" + HANDSHAKE + b"\r\n")
    assert (answer.status, answer.error["code"]) == (403, "foreign_origin")
    with open_socket(flow.server.url, headers={"origin": "http://localhost:3000"}):
        pass


@pytest.mark.parametrize("path", ["/v1/models", "/", "/v1/responses/resp_1", "/nowhere"])
def test_there_is_no_socket_elsewhere(flow: Flow, path: str) -> None:
    assert refused(flow.server.url, path) == (404, "not_found")


@pytest.mark.parametrize("path", ["/responses", "/v1/v1/responses", "//v1/responses/", "/v1/responses?api-version=1"])
def test_the_path_may_be_spelled_as_over_http(flow: Flow, path: str) -> None:
    flow.script(chat("ok"))
    with open_socket(flow.server.url, path) as talk:
        assert talk.answer(HI)["status"] == "completed"


def test_over_tls_below_a_prefix() -> None:
    tls = f'tls_cert = "{CERTIFICATE}"\ntls_key = "{CERTIFICATE}"\npath_prefix = "/isthmus"\nmax_body = 1000'
    with running_gateway_server(CONFIG.format(tls)) as gateway:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with open_socket(gateway.url, "/isthmus/v1/responses", tls=context) as talk:
            body = {"model": "demo/demo", "input": "hi", "store": False}
            first = talk.answer(body)
            assert talk.answer({**body, "previous_response_id": first["id"]})["status"] == "completed"
            talk.ask({**body, "input": "x" * 2000})
            assert talk.closed() == 1009
            assert talk.seen[-1]["error"]["code"] == "payload_too_large"


def test_a_strict_socket_refuses_what_would_be_degraded(flow: Flow) -> None:
    with open_socket(flow.server.url, headers={"Isthmus-Strict": "true"}) as talk:
        assert talk.refused({**HI, "seed": 1, "unknown_thing": 1})[0] == 400
    assert refused(flow.server.url, **{"Isthmus-Strict": "perhaps"})[0] == 400


@pytest.mark.parametrize(
    ("spelling", "kind"), [("open-responses", "invalid_request"), ("openai", "invalid_request_error")]
)
def test_a_socket_is_spoken_to_as_its_handshake_asks(flow: Flow, spelling: str, kind: str) -> None:
    with open_socket(flow.server.url, headers={"Isthmus-Compat": spelling}) as talk:
        talk.ask({**HI, "input": 7})
        assert talk.refusal()["error"]["type"] == kind
        words = "response.reasoning" if spelling == "open-responses" else "response.reasoning_text"
        flow.script(chat("Four.", reasoning="Two and two."))
        talk.ask(HI)
        assert f"{words}.delta" in [event["type"] for event in talk.rest()]
    assert refused(flow.server.url, **{"Isthmus-Compat": "klingon"})[0] == 400


def test_a_gateway_that_drains_takes_no_socket(special: Callable[..., Flow]) -> None:
    flow = special(store="memory")
    flow.server.gateway.draining = True
    assert refused(flow.server.url) == (503, "draining")


def test_nothing_that_a_client_offers_is_taken_up() -> None:
    """Codex offers compression, and a header of its beta; the SDK has neither. All go on without."""
    offers = b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\nSec-WebSocket-Protocol: a, b\r\n"
    beta = b"OpenAI-Beta: responses_websockets=2026-02-06\r\n"
    with running_gateway_server(CONFIG.format("")) as gateway, connect(gateway.url) as client:
        client.sendall(ASKED + offers + beta + b"\r\n")
        answer = parse(client.recv(4096))
        assert answer.status == 101
        assert not {"sec-websocket-extensions", "sec-websocket-protocol"} & answer.headers.keys()


def test_a_ping_is_answered_while_a_response_is_being_made(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([*chat_chunks("busy")[:2], gate, *chat_chunks("busy")[2:]]))
    with open_socket(flow.server.url) as talk:
        talk.ask(HI)
        talk.until("response.output_text.delta")
        assert talk.connection.ping(b"still there?").wait(60)
        gate.open()
        talk.rest(begun=1)


def test_a_head_that_is_too_large_is_a_431() -> None:
    with running_gateway_server(CONFIG.format("")) as gateway:
        line = b"X-Filler: " + b"x" * 10_000 + b"\r\n"
        answer = send_raw(gateway.url, ASKED, *[line] * 8, b"\r\n")
        assert (answer.status, answer.error["code"]) == (431, "head_too_large")


def test_a_head_within_the_limit_is_granted_whatever_the_library_thinks_of_it() -> None:
    """It takes lines of 8 kB and 128 headers."""
    with running_gateway_server(CONFIG.format("")) as gateway, connect(gateway.url) as client:
        many = b"".join(b"X-%d: 1\r\n" % number for number in range(300))
        client.sendall(ASKED + b"X-Long: " + b"x" * 40_000 + b"\r\n" + many + b"\r\n")
        assert parse(client.recv(4096)).status == 101


def test_a_head_that_never_comes_is_a_408() -> None:
    with running_gateway_server(CONFIG.format("head_timeout = 0.1")) as gateway:
        assert send_raw(gateway.url, ASKED + b"X-Endless: ").status == 408


def test_a_handshake_behind_a_request_that_is_being_answered_is_refused(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([*chat_chunks("half")[:2], gate], done=False))
    body = json.dumps({**HI, "stream": True}).encode()
    post = b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    with connect(flow.server.url) as client:
        client.sendall(post + body)
        flow.wait_sent()
        client.sendall(ASKED + b"\r\n")
        assert b" 101 " not in read_to_end(client).body
    flow.wait_sent().closed.wait()
    gate.open()


def test_an_idle_socket_makes_room_for_whoever_asks(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra="[server]\nmax_connections = 2")
    gate = Gate()
    flow.script(stream([*chat_chunks("busy")[:2], gate, *chat_chunks("busy")[2:]]))
    with open_socket(flow.server.url) as busy, open_socket(flow.server.url) as idle:
        busy.ask(HI)
        busy.until("response.output_text.delta")
        assert flow.get("/health").status == 200
        assert idle.closed() == 1013
        assert idle.seen[-1]["error"]["code"] == "server_is_overloaded"
        gate.open()
        assert busy.rest(begun=1)[-1]["type"] == "response.completed"


def test_a_socket_that_is_busy_makes_none(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra="[server]\nmax_connections = 1")
    gate = Gate()
    flow.script(stream([*chat_chunks("busy")[:2], gate, *chat_chunks("busy")[2:]]))
    with open_socket(flow.server.url) as busy:
        busy.ask(HI)
        busy.until("response.output_text.delta")
        assert flow.get("/health").status == 503
        gate.open()
        busy.rest(begun=1)


def test_places_are_shared_with_those_who_ask_over_http(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra="[server]\nmax_concurrent = 1")
    gate = Gate()
    flow.script(stream([*chat_chunks("busy")[:2], gate, *chat_chunks("busy")[2:]]))
    with open_socket(flow.server.url) as talk:
        talk.ask(HI, "a")
        talk.until("response.output_text.delta", "a")
        assert talk.refused(HI, "b") == (503, "server_is_overloaded", None)
        assert flow.post("/v1/responses", HI).error["code"] == "server_is_overloaded"
        gate.open()
        talk.rest("a", begun=1)


def test_nothing_is_left_of_sockets_that_are_gone(special: Callable[..., Flow]) -> None:
    flow = special(store="memory")
    app: Any = None
    with ExitStack() as stack:
        sockets = [stack.enter_context(open_socket(flow.server.url)) for _ in range(3)]
        flow.script(*[chat("ok")] * 3)
        for socket in sockets:
            socket.answer(HI)
        (app,) = [each for each in gc.get_objects() if type(each) is App and each._gateway is flow.server.gateway]
        assert (len(app.guests.sockets), app.guests.sockets._local.size > 0) == (3, True)
    until(lambda: len(app.guests.sockets) == 0)
    assert (app.guests.sockets._local.size, app._room.held, app._room.active) == (0, 0, 0)
