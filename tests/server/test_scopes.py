"""Scopes at every door: endpoints, models and tools, from the key to the answer."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from isthmus.ports.keys import ENDPOINTS
from isthmus.server.app import create_app
from isthmus.server.routes import Route
from isthmus.server.scopes import OPEN, OPERATOR
from keyed_gateway import Keyed, keyed_gateway
from socketing import open_socket

MODELS = """
default = "demo/demo"
[models.aliases]
fast = "demo/demo-paced"
other = "second/x"
[models.fallbacks]
"demo/demo" = ["second/x"]
[providers.second]
uses = "openai-compatible"
base_url = "http://127.0.0.1:1/v1"
retries = 0
"""
DOORS: dict[str, tuple[str, dict[str, Any]]] = {
    "responses": ("/v1/responses", {"input": "hi"}),
    "input_tokens": ("/v1/responses/input_tokens", {"input": "hi"}),
    "compact": ("/v1/responses/compact", {"input": "hi"}),
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
    "messages": ("/v1/messages", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 10}),
    "count_tokens": ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "hi"}]}),
    "embeddings": ("/v1/embeddings", {"input": "hi"}),
}


@pytest.fixture
def keyed() -> Iterator[Keyed]:
    with keyed_gateway(models=MODELS, extra='[images]\nprovider = "demo"\n') as opened:
        yield opened


def test_every_route_says_which_endpoint_it_is(keyed: Keyed) -> None:
    routes = create_app(keyed.server.gateway).routes
    assert len(routes) > 40
    for path, route in routes.items():
        assert isinstance(route, Route), path
        assert route.endpoint in (*ENDPOINTS, OPEN, OPERATOR), path
    used = {route.endpoint for route in routes.values()}
    assert set(ENDPOINTS) - used <= {"usage"}, "an endpoint that no route is"


def test_a_key_opens_the_endpoints_that_it_names_and_no_others(keyed: Keyed) -> None:
    """From the table of routes itself: every one of them, asked by a key for each endpoint."""
    routes = create_app(keyed.server.gateway).routes
    people = {name: keyed.person(f"only {name}", endpoints=[name]) for name in ENDPOINTS}
    for path, route in routes.items():
        spelled = path.replace("(?P<id>[^/]+)", "x").replace("(?P<item_id>[^/]+)", "y").replace("(?P<id>.+)", "x")
        if "(" in spelled or spelled.startswith("/ui") or route.endpoint in (OPEN, OPERATOR):
            continue
        for name, person in people.items():
            if spelled == "/metrics":
                assert (person.get(spelled).status == 200) is (name == "metrics")
                continue
            for method in route:
                status, code = person.code(method, spelled, {} if method == "POST" else None)
                refused = (status, code) == (403, "not_allowed") or (
                    status == 403 and spelled.startswith("/v1/messages")
                )
                assert refused is (route.endpoint != name), (method, path, name, status, code)


def test_the_refusal_names_the_key_the_endpoint_and_who_to_ask(keyed: Keyed) -> None:
    ann = keyed.person("ann", endpoints=["models", "chat"])
    error = ann.post("/v1/responses", {"input": "hi"}).error
    assert error["message"] == (
        f"the key `ann` (`{ann.id}`) does not open `responses`: it opens `chat`, `models`; ask whoever gave you the key"
    )


def test_an_operators_key_is_not_narrowed(keyed: Keyed) -> None:
    ops = keyed.person("ops", admin=True, endpoints=["models"], models=["none/*"], tools=[])
    assert ops.create({"input": "hi"})["status"] == "completed"
    assert len(ops.get("/v1/models").json["data"]) == len(keyed.chief.get("/v1/models").json["data"])


@pytest.mark.parametrize("door", DOORS)
def test_a_model_that_is_not_open_is_refused_at_every_door(keyed: Keyed, door: str) -> None:
    path, body = DOORS[door]
    ann = keyed.person("ann", models=["demo/*"])
    for model in ("second/x", "other"):
        reply = ann.ask("POST", path, {**body, "model": model}, {"anthropic-version": "2023-06-01"})
        assert reply.status == 403, reply.body
        assert b"may not use the model" in reply.body
        assert b"`second/x`" in reply.body
    for model in ("demo/demo", "fast") if door != "embeddings" else ("demo/demo-embedding",):
        assert ann.post(path, {**body, "model": model}).status == 200


def test_without_a_model_the_default_has_to_be_open(keyed: Keyed) -> None:
    assert keyed.person("ann", models=["fast"]).code("POST", "/v1/responses", {"input": "hi"}) == (403, "not_allowed")
    assert keyed.person("bob", models=["demo/demo"]).create({"input": "hi"})["status"] == "completed"


def test_the_list_of_models_shows_what_the_key_may_use(keyed: Keyed) -> None:
    def names(person: Any, **headers: str) -> set[str]:
        return {each["id"] for each in person.ask("GET", "/v1/models", None, headers).json["data"]}

    every = names(keyed.chief)
    assert {"fast", "other", "demo/demo"} <= every
    ann = keyed.person("ann", models=["demo/*"])
    assert names(ann) == {name for name in every if name.startswith("demo/") or name == "fast"}
    shown = names(ann, **{"anthropic-version": "2023-06-01"})
    assert shown
    assert not any("second" in name or "other" in name for name in shown)
    assert names(keyed.person("bob", models=["other"])) == {"other"}
    assert ann.get("/v1/models/fast").status == 200
    assert ann.code("GET", "/v1/models/other") == (403, "not_allowed")


def test_a_fallback_that_is_not_open_is_not_tried(keyed: Keyed) -> None:
    """The demo fails on demand; the one behind it cannot be reached, and says so where it is asked."""
    asked = {"input": "hi [[demo: error 500]]", "model": "demo/demo"}
    everybody = keyed.person("all").post("/v1/responses", asked)
    assert "second" in everybody.error["message"]
    narrowed = keyed.person("ann", models=["demo/*"]).post("/v1/responses", asked)
    assert "second" not in narrowed.error["message"]


def test_images_and_search_have_doors_of_their_own(keyed: Keyed) -> None:
    ann = keyed.person("ann", models=["second/*"], tools=[])
    assert ann.code("POST", "/v1/images/generations", {"prompt": "a cat"}) == (403, "not_allowed")
    assert ann.code("POST", "/v1/alpha/search", {"id": "1", "commands": {}}) == (403, "not_allowed")
    bob = keyed.person("bob", models=["demo/*"])
    drawn = bob.post("/v1/images/generations", {"prompt": "a cat"})
    assert drawn.status == 200, drawn.body
    assert base64.b64decode(drawn.json["data"][0]["b64_json"])


@pytest.mark.parametrize("tools", [[], ["mcp:docs"]])
def test_a_tool_that_is_not_open_is_left_out_with_a_decision(tools: list[str]) -> None:
    with keyed_gateway(extra='[search]\nbackend = "demo"\n') as keyed:
        asked = {"input": "hi", "tools": [{"type": "web_search"}], "model": "demo/demo"}
        ann, bob = keyed.person("ann", tools=tools), keyed.person("bob", tools=["web_search"])
        told = ann.create(asked)["isthmus"]["diagnostics"]
        (one,) = [each for each in told if each["path"].startswith("tools[0]")]
        assert one["action"] == "ignored"
        assert f"the key `ann` (`{ann.id}`) may not use `web_search`" in one["message"]
        assert "may not use" not in str(bob.create(asked).get("isthmus"))
        searching = {**asked, "input": 'Look: [[demo: call web_search {"query": "isthmus"}]]'}
        assert "web_search_call" in [item["type"] for item in bob.create(searching)["output"]]
        assert "not among the tools: none" in ann.post("/v1/responses", searching).error["message"]
        strict = ann.ask("POST", "/v1/responses", asked, {"isthmus-strict": "true"})
        assert strict.status == 400, strict.body


def test_a_socket_is_opened_and_each_frame_answered_for_who_may(keyed: Keyed) -> None:
    ann = keyed.person("ann", models=["demo/*"])
    with open_socket(keyed.server.url, headers=ann.headers) as socket:
        assert socket.answer({"input": "hi", "model": "demo/demo"})["status"] == "completed"
        assert socket.refused({"input": "hi", "model": "other"})[:2] == (403, "not_allowed")
        keyed.chief.post(f"/v1/isthmus/keys/{ann.id}", {"models": ["second/*"]})
        assert socket.refused({"input": "hi", "model": "demo/demo"})[:2] == (403, "not_allowed")
        keyed.chief.post(f"/v1/isthmus/keys/{ann.id}", {"models": None})
        assert socket.answer({"input": "hi", "model": "demo/demo"})["status"] == "completed"
        keyed.chief.ask("DELETE", f"/v1/isthmus/keys/{ann.id}")
        assert socket.refused({"input": "hi", "model": "demo/demo"})[:2] == (401, "invalid_api_key")
        assert socket.closed()


@pytest.mark.parametrize("endpoints", [["chat"], ["responses"]])
def test_a_handshake_needs_a_key_that_opens_responses(keyed: Keyed, endpoints: list[str]) -> None:
    ann = keyed.person("ann", endpoints=endpoints)
    if endpoints == ["responses"]:
        with open_socket(keyed.server.url, headers=ann.headers) as socket:
            assert socket.answer({"input": "hi"})["status"] == "completed"
            keyed.chief.post(f"/v1/isthmus/keys/{ann.id}", {"endpoints": ["chat"]})
            assert socket.refused({"input": "hi"})[:2] == (403, "not_allowed")
        return
    for headers, status in ((ann.headers, "403"), ({}, "401"), ({"x-api-key": "ik_nobody"}, "401")):
        with pytest.raises(Exception, match=status), open_socket(keyed.server.url, headers=headers):
            pass


def test_words_to_a_running_response_need_a_key_in_force_too(keyed: Keyed) -> None:
    ann = keyed.person("ann")
    with open_socket(keyed.server.url, headers=ann.headers) as socket:
        socket.ask({"input": "lorem 2000 [[demo: pace 50]]", "model": "demo/demo"})
        socket.until("response.output_text.delta")
        keyed.chief.ask("DELETE", f"/v1/isthmus/keys/{ann.id}")
        socket.send({"type": "response.steer", "input": "stop"})
        while (frame := socket.next())["type"] != "error":
            assert frame["type"] != "response.completed"
        assert (frame["status"], frame["error"]["code"]) == (401, "invalid_api_key")
