"""The surface: which paths there are, which methods they take, and who gets a place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from flowing import PLAIN, Flow
from isthmus.testing import Gate, chat, reply
from isthmus.testing.replies import chat_reply
from routes import ROUTES
from talking import Talk


@pytest.mark.parametrize(("path", "allowed"), ROUTES.items())
def test_another_method_is_a_405_that_lists_those_allowed(flow: Flow, path: str, allowed: str) -> None:
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        if method in allowed:
            continue
        answer = flow.request(method, path)
        assert (answer.status, answer.headers["allow"]) == (405, allowed)
        assert answer.error["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/v1", "/v1/response", "/v1/responses/a/b", "/v1/responses/a/cancel/b", "/v1/chat"])
def test_another_path_is_a_404_in_the_usual_shape(flow: Flow, path: str) -> None:
    answer = flow.get(path)
    assert (answer.status, answer.error["code"]) == (404, "not_found")


def test_a_path_may_end_with_a_slash(flow: Flow) -> None:
    flow.script(chat("ok"))
    assert flow.post("/v1/responses/", {"model": PLAIN, "input": "hi"}).status == 200


def test_head_has_the_headers_of_get_and_no_body(flow: Flow) -> None:
    answer = flow.request("HEAD", "/health")
    assert (answer.status, answer.body) == (200, b"")


HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def test_a_websocket_upgrade_is_a_426_at_once_where_there_are_none(special: Callable[..., Flow]) -> None:
    """Only this answer makes Codex go on over HTTP without trying again for a while."""
    flow = special(store="memory", extra="[server]\nwebsockets = false")
    answer = flow.request("GET", "/v1/responses", headers=HANDSHAKE)
    assert (answer.status, answer.error["code"]) == (426, "upgrade_required")


@pytest.mark.parametrize("missing", ["Upgrade", "Connection", "Sec-WebSocket-Version", "Sec-WebSocket-Key"])
def test_half_a_handshake_is_a_426_too(flow: Flow, missing: str) -> None:
    """A proxy that knows nothing of WebSockets drops some of it: the client goes on over HTTP."""
    left = {name: value for name, value in HANDSHAKE.items() if name != missing}
    answer = flow.request("GET", "/v1/responses", headers=left)
    assert (answer.status, answer.error["code"]) == (426, "upgrade_required")
    assert answer.headers["sec-websocket-version"] == "13"


def test_every_answer_has_an_id_of_its_own(flow: Flow) -> None:
    ids = [flow.get(path).headers["x-request-id"] for path in ("/health", "/health", "/nowhere")]
    assert len(set(ids)) == 3
    assert all(id.startswith("req_") for id in ids)


def test_a_place_is_free_again_when_its_request_is_over(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra="[server]\nmax_concurrent = 1")
    gate = Gate()
    flow.script(reply(chat_reply("held"), after=gate), chat("ok"))
    asked = {"model": PLAIN, "input": "hi"}

    async def both() -> tuple[int, int]:
        first = asyncio.create_task(asyncio.to_thread(Talk(flow.server.url).post, "/v1/responses", asked))
        await asyncio.to_thread(flow.wait_sent)
        refused = await asyncio.to_thread(flow.post, "/v1/responses", asked)
        assert (refused.error["code"], refused.headers["retry-after"]) == ("server_is_overloaded", "1")
        assert (await asyncio.to_thread(flow.get, "/health")).status == 200
        gate.open()
        return (await first).status, refused.status

    assert asyncio.run(both()) == (200, 503)
    assert flow.post("/v1/responses", asked).status == 200
