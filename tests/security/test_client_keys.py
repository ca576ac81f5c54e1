"""What a client shows us to be let in stays here: no byte of it reaches whoever is asked on its behalf.

Every door and every dialect, with every header and parameter that credentials travel in, to every kind of place that a
gateway calls: models in three dialects, vectors, images, a search engine, an MCP server, a webhook's receiver.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any, Final
from urllib.parse import quote

import pytest

from isthmus.testing import RecordedRequest, ScriptedUpstream, chat, reply
from serving import running_gateway_server
from socketing import open_socket
from speaking_messages import called, claude, said
from speaking_responses import native
from strict_search import strict
from talking import ANTHROPIC, Talk
from waiting import until

SECRET: Final = "client-credential-5f2a9c71e04b"
OPERATOR: Final = "sk-of-the-operator"
BASIC: Final = b64encode(f"user:{SECRET}".encode()).decode()
SHOWN: Final[dict[str, tuple[dict[str, str], str]]] = {
    "authorization": ({"authorization": f"Bearer {SECRET}"}, ""),
    "x-api-key": ({"x-api-key": SECRET}, ""),
    "api-key": ({"authorization": f"Bearer {SECRET}", "api-key": SECRET, "x-goog-api-key": SECRET}, ""),
    "cookie": ({"x-api-key": SECRET, "cookie": f"session={SECRET}; other={SECRET}"}, ""),
    "proxy-authorization": ({"x-api-key": SECRET, "proxy-authorization": f"Basic {BASIC}"}, ""),
    "query": ({"x-api-key": SECRET}, f"?api_key={SECRET}&key={SECRET}&access_token={SECRET}"),
    "vendors' own": (
        {
            "x-api-key": SECRET,
            "openai-organization": SECRET,
            "openai-project": SECRET,
            "chatgpt-account-id": SECRET,
            "x-amz-security-token": SECRET,
            "x-forwarded-authorization": f"Bearer {SECRET}",
            "referer": f"https://example.org/?token={SECRET}",
        },
        "",
    ),
}
"""How a client shows its key: headers, and what stands behind the path."""
TRACES: Final = tuple({SECRET, BASIC, quote(SECRET), b64encode(SECRET.encode()).decode()[:20]})
MODELS: Final = ("chatty/m", "native/gpt-5", "claude/claude-sonnet-4-5")
TOOLS: Final = [{"type": "web_search"}, {"type": "mcp", "server_label": "world", "require_approval": "never"}]
NUMBERS: Final = count()
"""What was found is remembered: each search is another one."""
SAID: Final = [{"role": "user", "content": "hi"}]
PNG: Final = b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 60).decode()
DOORS: Final[dict[str, tuple[str, dict[str, Any], dict[str, str]]]] = {
    "responses": ("/v1/responses", {"input": "hi"}, {}),
    "responses, streamed": ("/v1/responses", {"input": "hi", "stream": True}, {}),
    "responses, in the background": ("/v1/responses", {"input": "hi", "background": True}, {}),
    "responses, compacted": ("/v1/responses/compact", {"input": SAID}, {}),
    "responses, counted": ("/v1/responses/input_tokens", {"input": "hi"}, {}),
    "chat": ("/v1/chat/completions", {"messages": SAID}, {}),
    "chat, streamed": ("/v1/chat/completions", {"messages": SAID, "stream": True}, {}),
    "messages": ("/v1/messages", {"messages": SAID, "max_tokens": 100}, ANTHROPIC),
    "messages, streamed": ("/v1/messages", {"messages": SAID, "max_tokens": 100, "stream": True}, ANTHROPIC),
    "messages, counted": ("/v1/messages/count_tokens", {"messages": SAID}, ANTHROPIC),
}


@dataclass
class House:
    talk: Talk
    url: str
    places: dict[str, ScriptedUpstream]

    def asked(self) -> dict[str, int]:
        return {name: len(place.requests) for name, place in self.places.items()}

    def check(self) -> None:
        """Nobody was sent a byte of it."""
        for name, place in self.places.items():
            for request in place.requests:
                sent = "\n".join((request.target, *(": ".join(each) for each in request.raw_headers)))
                whole = sent.encode("latin-1", "replace") + b"\n" + request.body
                found = [trace for trace in TRACES if trace.encode() in whole]
                assert not found, f"{name} was sent {found} with {request.method} {request.target}"


def _model(request: RecordedRequest) -> Any:
    """Whoever is given tools calls them once, then answers."""
    path = request.path
    if path.endswith("/embeddings"):
        return reply({"data": [{"index": 0, "embedding": [1.0]}], "usage": {"prompt_tokens": 1, "total_tokens": 1}})
    if path.endswith("/images/generations"):
        return reply({"data": [{"b64_json": PNG}]})
    body = request.body
    calls = [("c1", "web_search", {"query": f"otters {next(NUMBERS)}"}), ("c2", "world__look", {})]
    again = b"web_search" in body and b"call_id" not in body and b"tool_call" not in body and b"tool_use" not in body
    if path.endswith("/chat/completions"):
        return chat(calls=calls)(request) if again else chat("ok")(request)  # type: ignore[operator]
    if path.endswith("/messages"):
        blocks = [called(id, name, **given) for id, name, given in calls] if again else [said("ok")]
        return claude(*blocks)(request)
    if path.endswith("/responses"):
        return native(calls=calls)(request) if again else native("ok")(request)
    return reply({"data": []})


def _mcp(request: RecordedRequest) -> Any:
    message = request.json if request.body else {}
    if request.method != "POST" or "id" not in message:
        return reply({}, status=405 if request.method != "POST" else 202)
    info = {"name": "odd", "version": "1"}
    results: dict[str, Any] = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info},
        "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "seen"}]},
    }
    known = results.get(message["method"])
    unknown = {"error": {"code": -32601, "message": "Method not found"}}
    return reply({"jsonrpc": "2.0", "id": message["id"], **(unknown if known is None else {"result": known})})


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with ExitStack() as stack:
        answers: dict[str, Any] = {
            "model": _model,
            "engine": strict("searxng"),
            "mcp": _mcp,
            "receiver": reply({}),
            "images": _model,
        }
        places = {name: stack.enter_context(ScriptedUpstream.running(default=each)) for name, each in answers.items()}
        model, images = places["model"], places["images"]
        providers = "".join(
            f"[providers.{name}]\nuses = {uses!r}\ndialect = {dialect!r}\nbase_url = {model.base_url!r}\n"
            f"api_key = {OPERATOR!r}\nretries = 0\n"
            for name, uses, dialect in (
                ("chatty", "openai-compatible", "chat"),
                ("native", "openai", "responses"),
                ("claude", "anthropic", "messages"),
            )
        )
        toml = f"""
[models]
demo = false
default = "chatty/m"
[server]
port = 0
api_keys = ["{SECRET}"]
[store]
url = "memory:"
[log]
level = "error"
[search]
backend = "searxng"
url = "{places["engine"].url}"
[images]
url = "{images.base_url}"
model = "m"
[mcp.world]
url = "{places["mcp"].url}/mcp"
[webhooks]
private_hosts = ["127.0.0.1:{places["receiver"].port}"]
[webhooks.endpoints.hook]
url = "{places["receiver"].url}/hook"
secret = "whsec_dGhlIHNlY3JldCBvZiB0aGUgcmVjZWl2ZXIhISE="
{providers}
"""
        gateway = stack.enter_context(running_gateway_server(toml))
        yield House(Talk(gateway.url), gateway.url, places)


shown_as = pytest.mark.parametrize("shown", SHOWN)


@shown_as
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("model", MODELS)
def test_no_model_is_sent_it(house: House, model: str, door: str, shown: str) -> None:
    path, body, more = DOORS[door]
    headers, query = SHOWN[shown]
    before = house.asked()["model"]
    answer = house.talk.post(path + query, {"model": model, **body}, {**headers, **more})
    assert answer.status == 200, answer.body
    if "background" in door:
        id = answer.json["id"]
        until(
            lambda: house.talk.request("GET", f"/v1/responses/{id}", None, headers).json["status"] == "completed",
            "it was not made",
        )
    assert house.asked()["model"] == before + ("counted" not in door)
    house.check()


@shown_as
@pytest.mark.parametrize("model", MODELS)
def test_no_tool_that_runs_here_is_sent_it(house: House, model: str, shown: str) -> None:
    headers, query = SHOWN[shown]
    before = house.asked()
    body = {"model": model, "input": "look", "tools": TOOLS, "store": False}
    answer = house.talk.post(f"/v1/responses{query}", body, headers)
    assert answer.status == 200, answer.body
    if model == "chatty/m":  # the others search and ask servers themselves
        after = house.asked()
        assert after["engine"] > before["engine"]
        assert after["mcp"] > before["mcp"]
    house.check()


@shown_as
def test_neither_vectors_nor_images_nor_a_search_take_it_along(house: House, shown: str) -> None:
    headers, query = SHOWN[shown]
    before = house.asked()
    search = {"commands": {"search_query": [{"q": f"otters {next(NUMBERS)}"}]}, "model": "m", "id": "s", "input": []}
    asked = {
        "/v1/embeddings": {"model": "native/text-embedding-3-small", "input": "hi"},
        "/v1/images/generations": {"prompt": "a cat"},
        "/v1/alpha/search": search,
    }
    for path, body in asked.items():
        answer = house.talk.post(path + query, body, headers)
        assert answer.status == 200, answer.body
    after = house.asked()
    assert all(after[name] > before[name] for name in ("model", "images", "engine"))
    house.check()


@shown_as
def test_a_websocket_keeps_what_its_handshake_showed(house: House, shown: str) -> None:
    headers, query = SHOWN[shown]
    before = house.asked()["model"]
    with open_socket(house.url, f"/v1/responses{query}", headers=headers) as socket:
        for model in MODELS:
            socket.ask({"model": model, "input": "hi", "store": False})
            socket.rest()
    assert house.asked()["model"] == before + len(MODELS)
    house.check()


def test_everybody_was_asked_with_the_operators_key(house: House) -> None:
    """So that the tests above have looked at something."""
    asked = [request for request in house.places["model"].requests if request.method == "POST"]
    assert {request.path.rsplit("/v1/")[-1] for request in asked} >= {"chat/completions", "responses", "messages"}
    shown = {
        value for request in asked for name, value in request.headers.items() if name in ("authorization", "x-api-key")
    }
    assert shown == {f"Bearer {OPERATOR}", OPERATOR}
    until(lambda: len(house.places["receiver"].requests) > 0, "nobody was told of a background response")
    house.check()
    assert json.dumps([request.target for request in asked]).count("?") == 0
