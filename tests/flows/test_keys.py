"""Keys over HTTP: every route asks for one, every door understands it, nothing is lost when they are switched on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flowing import PLAIN, Flow
from isthmus.testing import chat

KEYED = """
[server]
api_keys = ["sk-one", "sk-two"]
admin_key = "sk-chief"
"""
ROUTES = [
    ("POST", "/v1/responses"),
    ("POST", "/v1/responses/input_tokens"),
    ("GET", "/v1/responses/resp_1"),
    ("DELETE", "/v1/responses/resp_1"),
    ("POST", "/v1/responses/resp_1/cancel"),
    ("GET", "/v1/responses/resp_1/input_items"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/conversations"),
    ("GET", "/v1/conversations/conv_1"),
    ("POST", "/v1/conversations/conv_1"),
    ("DELETE", "/v1/conversations/conv_1"),
    ("GET", "/v1/conversations/conv_1/items"),
    ("POST", "/v1/conversations/conv_1/items"),
    ("GET", "/v1/conversations/conv_1/items/msg_1"),
    ("DELETE", "/v1/conversations/conv_1/items/msg_1"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/x"),
    ("GET", "/ready"),
    ("GET", "/openapi.json"),
    ("GET", "/"),
    ("GET", "/nowhere"),
]


@pytest.mark.parametrize("shown", [{}, {"authorization": "Bearer sk-three"}, {"x-api-key": "sk-on"}])
def test_every_route_asks_for_a_key(special: Callable[..., Flow], shown: dict[str, str]) -> None:
    flow = special(extra=KEYED)
    for method, path in ROUTES:
        refused = flow.request(method, path, {"model": PLAIN, "input": "hi"} if method == "POST" else None, shown)
        assert refused.status == 401, path
        assert refused.error["code"] in ("missing_api_key", "invalid_api_key")
        assert refused.headers["www-authenticate"] == "Bearer"
    assert flow.sent == []
    assert flow.get("/health").status == 200


@pytest.mark.parametrize(
    "shown", [{"authorization": "Bearer sk-one"}, {"x-api-key": "sk-two"}, {"x-api-key": "sk-chief"}]
)
def test_a_known_key_is_let_in_and_sees_what_the_others_made(
    special: Callable[..., Flow], shown: dict[str, str]
) -> None:
    flow = special(extra=KEYED)
    flow.script(chat("ok"), chat("fine"))
    first = flow.create({"model": PLAIN, "input": "hi"}, {"authorization": "Bearer sk-one"})
    assert flow.request("GET", f"/v1/responses/{first['id']}", None, shown).json["id"] == first["id"]
    answer = flow.chat({"model": PLAIN, "messages": [{"role": "user", "content": "hi"}]}, shown)
    assert answer["choices"][0]["message"]["content"] == "fine"


def test_no_key_of_a_client_reaches_the_upstream(special: Callable[..., Flow]) -> None:
    flow = special(extra=KEYED)
    flow.script(chat("ok"))
    flow.create({"model": PLAIN, "input": "hi"}, {"authorization": "Bearer sk-one"})
    assert "sk-one" not in str(flow.upstream.requests[0].headers)


def test_what_was_made_without_keys_is_there_with_them(tmp_path: Path, special: Callable[..., Flow]) -> None:
    before = special()
    before.script(chat("ok"))
    id = before.create({"model": PLAIN, "input": "hi"})["id"]
    before.server.stop()
    after = special(extra=KEYED)
    assert after.request("GET", f"/v1/responses/{id}", None, {"x-api-key": "sk-one"}).status == 200
