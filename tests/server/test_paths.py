"""Paths that can mean only one thing are served; others are told the right address."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flowing import PLAIN, Flow
from isthmus.server.paths import clean_path, clean_prefix, nothing_there, spellings
from isthmus.testing import chat

ASKED = {"model": PLAIN, "input": "hi"}


@pytest.mark.parametrize(
    "path",
    ["/responses", "//v1/responses", "/v1//responses", "/v1/v1/responses", "/v1/responses/", "//responses//"],
)
def test_a_base_url_that_is_nearly_right_is_served(flow: Flow, path: str) -> None:
    flow.script(chat("ok"))
    assert flow.post(path, ASKED).status == 200


def test_so_are_the_other_doors(flow: Flow) -> None:
    flow.script(chat("ok"))
    assert (
        flow.post("/chat/completions", {"model": PLAIN, "messages": [{"role": "user", "content": "x"}]}).status == 200
    )
    assert flow.get("/models").json["object"] == "list"
    assert flow.get("/v1/v1/models/plain/x").json["id"] == "plain/x"
    assert flow.get("//health").status == 200


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("/api/v1/responses", "/v1/responses"),
        ("/openai/v1/chat/completions", "/v1/chat/completions"),
        ("/openai/deployments/gpt/chat/completions", "/v1/chat/completions"),
        ("/api/v1/responses/resp_1/cancel", "/v1/responses/resp_1/cancel"),
        ("/api/models", "/v1/models"),
        ("/v1/health", "/health"),
    ],
)
def test_a_foreign_path_is_told_the_right_address(flow: Flow, path: str, right: str) -> None:
    answer = flow.post(path, ASKED)
    assert (answer.status, answer.error["code"]) == (404, "not_found")
    assert f"`{flow.server.url}{right}`" in answer.error["message"]
    assert f"`{flow.server.url}/v1`" in answer.error["message"]


@pytest.mark.parametrize("path", ["/v1/completions", "/api/chat"])
def test_another_api_is_named(flow: Flow, path: str) -> None:
    answer = flow.post(path, ASKED)
    assert answer.status == 404
    assert "not served here" in answer.error["message"]
    assert f"{flow.server.url}/v1/chat/completions" in answer.error["message"]


def test_anything_else_is_told_where_the_gateway_is(flow: Flow) -> None:
    assert f"`{flow.server.url}/v1`" in flow.get("/nowhere").error["message"]


def test_below_a_prefix_it_is_served_with_and_without_it(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra='[server]\npath_prefix = "isthmus/"')
    flow.script(chat("ok"), chat("ok"))
    assert flow.post("/isthmus/v1/responses", ASKED).status == 200
    assert flow.post("/v1/responses", ASKED).status == 200
    assert flow.get("/isthmus/health").status == 200
    assert flow.get("/isthmus").json["name"] == "isthmus"
    assert flow.get("/isthmuses/health").status == 404
    assert f"{flow.server.url}/isthmus/v1/responses" in flow.get("/isthmus/api/responses").error["message"]


@pytest.mark.parametrize(("given", "clean"), [("", ""), ("/", ""), ("a", "/a"), ("/a/b/", "/a/b")])
def test_a_prefix_has_one_spelling(given: str, clean: str) -> None:
    assert clean_prefix(given) == clean


@pytest.mark.parametrize(
    ("path", "clean"),
    [("/", "/"), ("//", "/"), ("/a//b/", "/a/b"), ("/p", "/"), ("/p/", "/"), ("/p/v1/x", "/v1/x"), ("/pp", "/pp")],
)
def test_a_path_has_one_spelling(path: str, clean: str) -> None:
    assert clean_path(path, "/p") == clean


def test_the_path_as_it_is_comes_first() -> None:
    assert list(spellings("/v1/v1/models")) == ["/v1/v1/models", "/v1/models"]
    assert list(spellings("/models")) == ["/models", "/v1/models"]
    assert list(spellings("/v1/models")) == ["/v1/models"]


def test_behind_a_proxy_the_address_is_that_of_the_proxy() -> None:
    scope = {"path": "/x/responses", "scheme": "https", "headers": [(b"host", b"ai.example")]}
    assert "`https://ai.example/p/v1/responses`" in nothing_there(scope, "/p").message
